"""Transactions that read some lists and append to others. A list is a partition, read as committed."""

from random import Random

from goqueue.client import ClientError, Consumer, Producer
from goqueue.model.errors import GoQueueError
from goqueue.testing.simulation import Process
from goqueue.testing.virtual_loop import let_pass
from tests.sim.storms.stage import REQUEST, Stage, Work, again_and_again
from tools.nemesis.history import Asking

WRITERS = 2
TOPIC, LISTS = "storm-lists", 3
ABORTED_SHARE = 0.15
Reads = list[tuple[str, list[str]]]


class ChangedMyMind(Exception):
    """Why a transaction is aborted."""


class Transactions:
    name = "transactions"

    async def prepare(self, stage: Stage) -> None:
        await stage.make_topic(TOPIC, LISTS)

    def works(self, stage: Stage) -> dict[str, Work]:
        return {f"transactor-{number}": lambda me: self._write(stage, me) for number in range(WRITERS)}

    async def _write(self, stage: Stage, me: Process) -> None:
        number = 0

        async def life() -> None:
            nonlocal number
            async with (
                Consumer(stage.servers, TOPIC, request_timeout=REQUEST, **me.ports) as source,
                self._producer(stage, me) as producer,
            ):
                while not stage.is_ending:
                    number += 1
                    steps = _appends(me.name, number, me.dice)
                    asking = stage.book.begin(me.name, "transaction", steps=steps)
                    reads = await _portion(source)
                    await self._run_one(producer, steps, reads, asking, me.dice)
                    await let_pass(me.dice.uniform(0.02, 0.3))

        await again_and_again(stage, life)

    def _producer(self, stage: Stage, me: Process) -> Producer:
        return Producer(
            stage.servers,
            transactional_id=f"storm-{me.name}",
            transaction_timeout="15s",
            delivery_timeout="8s",
            request_timeout=REQUEST,
            **me.ports,
        )

    async def _run_one(
        self, producer: Producer, steps: list[list[str]], reads: Reads, asking: Asking, dice: Random
    ) -> None:
        has_asked = False
        try:
            async with producer.transaction():
                for _, key, value in steps:
                    await producer.send(TOPIC, value.encode(), partition=int(key))
                if dice.random() < ABORTED_SHARE:
                    raise ChangedMyMind
                has_asked = True
        except ChangedMyMind:
            asking.fail("aborted on purpose")
        except (ClientError, GoQueueError, OSError) as error:
            # Whoever has not asked for a commit knows: if nothing else, the first step of its successor aborts it.
            (asking.unknown if has_asked else asking.fail)(error)
            raise
        else:
            asking.ok(reads=reads)

    async def finish(self, stage: Stage) -> None:
        for number in range(WRITERS):
            me = stage.process(f"transactor-{number}")

            async def end(me: Process = me) -> None:
                async with self._producer(stage, me):  # its first step ends what the last life left open
                    pass

            await me.spawn(end())
        found = await stage.read_all(TOPIC, LISTS)
        reads = [(str(number), [value for _, value in records]) for number, records in found.items()]
        stage.book.begin("lists-end", "transaction", steps=[], final=True, door="end").ok(reads=reads)


async def _portion(source: Consumer) -> Reads:
    records: dict[str, list[str]] = {}
    for message in await source.poll(timeout="50ms"):
        records.setdefault(str(message.partition), []).append((message.value or b"").decode())
    return sorted(records.items())


def _appends(name: str, number: int, dice: Random) -> list[list[str]]:
    """To one, two or three lists, in any order; sometimes twice to one."""
    keys = dice.sample(range(LISTS), dice.randint(1, LISTS))
    if dice.random() < 0.3:
        keys.append(keys[0])
    return [["append", str(key), f"{name}:{number}:{place}"] for place, key in enumerate(keys)]

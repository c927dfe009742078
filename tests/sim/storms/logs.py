"""Idempotent producers with acks=all, several records at once, and a reader that follows them."""

import asyncio

from goqueue.client import ClientError, Consumer, Producer
from goqueue.client.errors import DeliveryTimeout
from goqueue.model.errors import GoQueueError
from goqueue.testing.simulation import Process
from goqueue.testing.virtual_loop import let_pass
from tests.sim.storms.stage import REQUEST, Stage, Work, again_and_again
from tools.nemesis.history import Asking

WRITERS = 2
TOPIC, PARTITIONS = "storm-log", 3


class Logs:
    name = "logs"

    async def prepare(self, stage: Stage) -> None:
        await stage.make_topic(TOPIC, PARTITIONS)

    def works(self, stage: Stage) -> dict[str, Work]:
        found: dict[str, Work] = {f"writer-{number}": lambda me: self._write(stage, me) for number in range(WRITERS)}
        return found | {"log-reader": lambda me: self._follow(stage, me)}

    async def _write(self, stage: Stage, me: Process) -> None:
        """What was given up may still arrive: whoever comes after it is another process to the checker."""
        lives = number = 0

        async def life() -> None:
            nonlocal lives, number
            lives += 1
            async with Producer(stage.servers, delivery_timeout="10s", request_timeout=REQUEST, **me.ports) as producer:
                while not stage.is_ending:
                    sends = []
                    for _ in range(me.dice.randint(1, 3)):
                        number += 1
                        value, partition = f"{me.name}:{number}", me.dice.randrange(PARTITIONS)
                        about = {"topic": TOPIC, "partition": partition, "value": value}
                        asking = stage.book.begin(f"{me.name}.{lives}", "send", **about)
                        sends.append(self._send(producer, asking, value, partition))
                    if not all(await asyncio.gather(*sends)):
                        return
                    await let_pass(me.dice.uniform(0.05, 0.25))

        await again_and_again(stage, life)

    async def _send(self, producer: Producer, asking: Asking, value: str, partition: int) -> bool:
        try:
            receipt = await producer.send(TOPIC, value.encode(), partition=partition)
        except DeliveryTimeout as error:
            (asking.unknown if error.may_be_stored else asking.fail)(error)
        except (ClientError, GoQueueError) as error:
            asking.unknown(error)
        else:
            asking.ok(offset=receipt.offset)
            return True
        return False

    async def _follow(self, stage: Stage, me: Process) -> None:
        async def life() -> None:
            async with Consumer(stage.servers, TOPIC, request_timeout=REQUEST, **me.ports) as consumer:
                while not stage.is_ending:
                    asking = [
                        stage.book.begin(me.name, "read", topic=TOPIC, partition=each) for each in range(PARTITIONS)
                    ]
                    records: dict[int, list[tuple[int, str]]] = {}
                    for message in await consumer.poll(timeout="1s"):
                        records.setdefault(message.partition, []).append((message.offset, _text(message.value)))
                    for number, each in enumerate(asking):
                        if number in records:
                            each.ok(records=records[number])
                        else:
                            each.unknown("nothing came")

        await again_and_again(stage, life)

    async def finish(self, stage: Stage) -> None:
        for number, records in (await stage.read_all(TOPIC, PARTITIONS)).items():
            asking = stage.book.begin("log-end", "read", topic=TOPIC, partition=number, final=True, start=0, door="end")
            asking.ok(records=records)


def _text(value: bytes | None) -> str:
    return (value or b"").decode()

"""A node with all that is used of it, in trouble: programs that produce, consume, work and transact go on while links
are cut, connections reset, clocks set, the process killed and the power lost. When all is well again, everything has
to be there, once, and nothing may be stuck.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from goqueue.client import Admin, ClientError, Consumer, Job, Producer, RetryLater, Worker
from goqueue.model.errors import GoQueueError
from goqueue.testing.simulation import Process, Simulation
from goqueue.testing.virtual_loop import let_pass
from goqueue.testing.virtual_network import ANYWHERE, Weather

T = TypeVar("T")

CALM = Weather(slow=0)
ROUGH = Weather(delay_ms=(0.5, 30.0), slow=0.05, slow_ms=(50.0, 1500.0), split=0.5)
SEEDS = range(1, 31)
"""Each is another course of events."""
MESSAGES = 25
"""Of each kind."""
TROUBLE_S = 12.0
QUIET_S_MAX = 240.0
"""When the trouble is over, whoever is not done by then is stuck."""
REQUEST = "3s"
TOPICS: dict[str, dict[str, Any]] = {
    "stream": {"partitions": 3},
    "source": {"partitions": 2},
    "sink": {"partitions": 2},
    "jobs": {"partitions": 2, "lease_ms": 4000, "attempts_max": 200, "retry_backoff_max_ms": 1000},
    "later": {"partitions": 2},
    "web": {"partitions": 2, "dedup_ms": 86_400_000, "lease_ms": 4000, "attempts_max": 200},
}


class Storm:
    def __init__(self, simulation: Simulation) -> None:
        self._sim = simulation
        self._node = simulation.nodes[0]
        self._dice = simulation.dice("storm")
        self._starts: Counter[str] = Counter()
        self._programs: dict[str, Process] = {}
        self._is_over = False
        self.acked: dict[str, list[bytes]] = {name: [] for name in TOPICS}
        """By topic: what a producer was told is there, in the order in which it was told."""
        self.seen: Counter[bytes] = Counter()
        """What the consumers of the group got from `stream`."""
        self.settled: dict[str, Counter[bytes]] = {"jobs": Counter(), "web": Counter()}
        """By topic: what workers were told is settled."""
        self.unknown: dict[str, set[bytes]] = {"jobs": set(), "web": set()}
        """What may be settled: no answer came."""
        self.problems: list[str] = []

    # -- the whole of it

    async def run(self) -> None:
        await self._make_topics()
        writers = [self._start(name, program) for name, program in self._writers().items()]
        for name, program in self._readers().items():
            self._start(name, program)
        await self._trouble()
        await self._calm()
        await self._until("producers", lambda: all(task.done() for task in writers))
        for task in writers:
            if task.done():
                task.result()
        await self._until("consumers", lambda: set(self.acked["stream"]) <= set(self.seen))
        await self._until("workers", lambda: all(self._is_settled(topic) for topic in self.settled))
        await self._until_transformed()
        self._is_over = True
        await self._check()

    def _writers(self) -> dict[str, Callable[[Process], Coroutine[Any, Any, None]]]:
        return {
            "writer-1": lambda me: self._produce(me, "stream"),
            "writer-2": lambda me: self._produce(me, "stream"),
            "feeder": lambda me: self._produce(me, "source"),
            "boss": lambda me: self._produce(me, "jobs"),
            "planner": lambda me: self._produce(me, "later", delay=True),
            "page": self._publish,
        }

    def _readers(self) -> dict[str, Callable[[Process], Coroutine[Any, Any, None]]]:
        return {
            "reader-1": self._consume,
            "reader-2": self._consume,
            "transformer": self._transform,
            "worker-1": self._work,
            "worker-2": self._work,
            "web-worker": self._receive,
        }

    def _start(self, name: str, program: Callable[[Process], Coroutine[Any, Any, None]]) -> "asyncio.Task[Any]":
        self._starts[name] += 1
        me = self._programs[name] = self._sim.process(name, self._starts[name])
        return me.spawn(program(me))

    async def _make_topics(self) -> None:
        me = self._sim.process("operator")

        async def make() -> None:
            async with Admin(self._node.http, **me.ports) as admin:
                for name, options in TOPICS.items():
                    await admin.create_topic(name, **options)

        await me.spawn(make())

    async def _until(self, who: str, is_done: Callable[[], bool]) -> None:
        deadline_s = self._sim.loop.time() + QUIET_S_MAX
        while not is_done():
            if self._sim.loop.time() > deadline_s:
                raise AssertionError(f"{who} are stuck {QUIET_S_MAX:.0f} s after all was well again")
            await let_pass(0.5)

    # -- trouble

    async def _trouble(self) -> None:
        dice, end_s = self._dice, self._sim.loop.time() + TROUBLE_S
        self._sim.network.weather = ROUGH if dice.random() < 0.5 else Weather()
        kinds = [self._cut, self._cut, self._cut_one_way, self._reset, self._set_clock]
        kinds += [self._kill, self._lose_power, self._fail_on_disk, self._fail_at_start, self._restart]
        kinds += [self._kill_reader]
        while self._sim.loop.time() < end_s:
            await let_pass(dice.uniform(0.05, 2.0))
            await dice.choice(kinds)()

    async def _calm(self) -> None:
        self._sim.network.weather = CALM
        self._sim.network.heal()
        self._node.disk.crash_at(None)
        if not self._node.is_up:
            await self._node.start()

    async def _cut(self) -> None:
        who = self._dice.choice([*self._programs, ANYWHERE])
        self._sim.network.cut(who, self._node.name)
        await self._a_while()
        self._sim.network.heal(who, self._node.name)

    async def _cut_one_way(self) -> None:
        pair = [self._dice.choice(list(self._programs)), self._node.name]
        self._dice.shuffle(pair)
        self._sim.network.cut(*pair, both_ways=False)
        await self._a_while()
        self._sim.network.heal(*pair)

    async def _reset(self) -> None:
        self._sim.network.reset(self._dice.choice([*self._programs, self._node.name]))

    async def _kill(self) -> None:
        self._node.crash("kill")
        await self._back()

    async def _lose_power(self) -> None:
        self._node.crash("power")
        await self._back()

    async def _fail_on_disk(self) -> None:
        self._node.crash_at(self._dice.randint(1, 60))
        await self._a_while()
        if self._node.is_up:
            self._node.disk.crash_at(None)
        else:
            await self._back()

    async def _fail_at_start(self) -> None:
        """Once more, while it recovers from the last time."""
        self._node.crash("power")
        self._node.crash_at(self._dice.randint(1, 80))
        await self._back()
        if not self._node.is_up:
            await self._back()
        self._node.disk.crash_at(None)

    async def _restart(self) -> None:
        await self._node.stop()
        await self._back()

    async def _kill_reader(self) -> None:
        """And start it again: what it had in hand goes to others, and what it had begun is aborted."""
        readers = self._readers()
        name = self._dice.choice(list(readers))
        self._programs[name].kill()
        self._start(name, readers[name])

    async def _set_clock(self) -> None:
        self._node.set_clock(self._dice.choice([-3_600_000, -2000, 1500, 60_000, 3_600_000]))

    async def _back(self) -> None:
        await let_pass(self._dice.uniform(0.0, 2.0))
        await self._node.start()

    async def _a_while(self) -> None:
        await let_pass(self._dice.choice([0.05, 0.5, 3.0]) * self._dice.uniform(0.5, 2.0))

    # -- programs

    async def _produce(self, me: Process, topic: str, *, delay: bool = False) -> None:
        async def open_it() -> Producer:
            return await Producer(self._node.kafka, delivery_timeout="1h", request_timeout=REQUEST, **me.ports).start()

        producer = await patiently(open_it)
        for number in range(MESSAGES):
            value = f"{me.name}:{number}".encode()
            await producer.send(topic, value, key=b"%d" % (number % 5), delay="2s" if delay else None)
            self.acked[topic].append(value)
            await let_pass(me.dice.uniform(0, 0.6))
        await producer.close()

    async def _publish(self, me: Process) -> None:
        async with Admin(self._node.http, timeout=REQUEST, **me.ports) as admin:
            for number in range(MESSAGES):
                value = f"{me.name}:{number}"

                async def publish(value: str = value) -> None:
                    (result,) = await admin.publish("web", [{"value": value, "dedup_id": value}])
                    if result.offset < 0:
                        raise ClientError(str(result))

                await patiently(publish)
                self.acked["web"].append(value.encode())
                await let_pass(me.dice.uniform(0, 0.6))

    async def _consume(self, me: Process) -> None:
        async def consume() -> None:
            async with Consumer(
                self._node.kafka, "stream", group="readers", request_timeout=REQUEST, **me.ports
            ) as consumer:
                async for message in consumer:
                    assert message.value is not None
                    self.seen[message.value] += 1

        await self._again_and_again(consume)

    async def _transform(self, me: Process) -> None:
        async def transform() -> None:
            async with (
                Producer(
                    self._node.kafka,
                    transactional_id="transformer",
                    request_timeout=REQUEST,
                    transaction_timeout="10s",
                    **me.ports,
                ) as producer,
                Consumer(
                    self._node.kafka,
                    "source",
                    group="transformers",
                    auto_commit=False,
                    request_timeout=REQUEST,
                    **me.ports,
                ) as consumer,
            ):
                while True:
                    messages = await consumer.poll(3)
                    async with producer.transaction():
                        for message in messages:
                            await producer.send("sink", message.value, key=message.key)
                        await producer.send_offsets(consumer)
                        if me.dice.random() < 0.2:
                            raise ChangedMyMind

        await self._again_and_again(transform)

    async def _work(self, me: Process) -> None:
        async def work() -> None:
            worker = Worker(self._node.kafka, "jobs", group="crew", concurrency=3, **me.ports)

            @worker.handle
            async def handle(job: Job) -> None:
                await self._do(me.dice, "jobs", job.value or b"", job.ack)

            await worker.run()

        await self._again_and_again(work)

    async def _receive(self, me: Process) -> None:
        async def receive() -> None:
            async with Admin(self._node.http, timeout=REQUEST, **me.ports) as admin:
                while True:
                    for message in await admin.receive("web", "crew", limit=3, wait_ms=500):

                        async def ack(receipt: str = message.receipt_handle) -> None:
                            (result,) = await admin.settle([receipt])
                            if not result.success:
                                raise ClientError(str(result.error))

                        await self._do(me.dice, "web", (message.value or "").encode(), ack)

        await self._again_and_again(receive)

    async def _do(self, dice: Random, topic: str, value: bytes, ack: Callable[[], Awaitable[None]]) -> None:
        await let_pass(dice.uniform(0, 0.05))
        if dice.random() < 0.1:
            raise RetryLater("not today")
        self.unknown[topic].add(value)  # and stays so, if no answer comes or this program is killed
        await ack()
        if self.settled[topic][value]:
            self.problems.append(f"{value!r} of {topic} was settled twice")
        self.settled[topic][value] += 1

    async def _again_and_again(self, program: Callable[[], Awaitable[None]]) -> None:
        while not self._is_over:
            try:
                await program()
            except (GoQueueError, ChangedMyMind):
                await let_pass(0.2)

    # -- the reckoning

    def _is_settled(self, topic: str) -> bool:
        return set(self.acked[topic]) <= self.settled[topic].keys() | self.unknown[topic]

    async def _until_transformed(self) -> None:
        deadline_s = self._sim.loop.time() + QUIET_S_MAX
        while not set(self.acked["source"]) <= set(await self._read("sink")):
            if self._sim.loop.time() > deadline_s:
                raise AssertionError(f"the transformer is stuck {QUIET_S_MAX:.0f} s after all was well again")

    async def _check(self) -> None:
        assert self.problems == [], self.problems
        assert self._sim.loop.exceptions == []
        for topic in TOPICS:
            there = await self._read(topic)
            once = Counter(self.acked["source" if topic == "sink" else topic])
            assert Counter(there) == once, f"{topic}: lost {once - Counter(there)}, too many {Counter(there) - once}"
        assert set(self.seen) == set(self.acked["stream"])

    async def _read(self, topic: str) -> list[bytes]:
        """All that is in a topic and committed."""
        me = self._sim.process(f"auditor of {topic}")

        async def read() -> list[bytes]:
            found: list[bytes] = []
            async with Consumer(self._node.kafka, topic, **me.ports) as consumer:
                while messages := await consumer.poll(timeout="5s"):
                    found += [message.value or b"" for message in messages]
            return found

        return await me.spawn(read())


class ChangedMyMind(Exception):
    """Why a transaction is aborted."""


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await attempt()
        except ClientError:
            await let_pass(0.2)


async def storm(simulation: Simulation) -> None:
    await Storm(simulation).run()

"""Our own consumer against the real process: in groups, through crashes, beside other libraries."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer

from goqueue.client import Consumer, Message, Producer
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node
from tests.integration.topics import NO_REBOOTSTRAP, group_offsets
from tests.unit.testing.loops import in_loop

PARTITIONS = 6
Place = tuple[str, int]


async def until(is_done: Callable[[], bool]) -> None:
    """For what other tasks bring about."""
    async with asyncio.timeout(DEADLINE_S):
        while not is_done():
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.01)


class Reader:
    """One member of a group, reading in a task of its own."""

    def __init__(self, name: str, seen: list[tuple[str, Message]], *settings: Any, **options: Any) -> None:
        self.name = name
        self._seen = seen
        self.consumer = Consumer(*settings, on_assigned=self._got, on_revoked=self._gave, **options)
        self.changes: list[tuple[str, set[Place]]] = []
        self.task: asyncio.Task[None] | None = None

    def _got(self, places: set[Place]) -> None:
        self.changes.append(("got", places))

    def _gave(self, places: set[Place]) -> None:
        self.changes.append(("gave", places))

    async def start(self) -> "Reader":
        await self.consumer.start()
        self.task = asyncio.ensure_future(self._read())
        return self

    async def _read(self) -> None:
        async for message in self.consumer:
            self._seen.append((self.name, message))

    async def stop(self) -> None:
        """In the middle of waiting for a message, so that all before it are processed."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.consumer.close()


def places_of(topic: str) -> set[Place]:
    return {(topic, partition) for partition in range(PARTITIONS)}


def test_three_members_share_and_every_message_comes_once(node: Node, make_topic: CreateTopic, group: str) -> None:
    """On a join, members whose partitions do not move keep receiving."""
    topic = make_topic(PARTITIONS)

    @in_loop
    async def scenario() -> None:
        seen: list[tuple[str, Message]] = []
        sent: list[bytes] = []

        async def produce(producer: Producer, is_over: asyncio.Event) -> None:
            while not is_over.is_set():
                sent.append(b"%d" % len(sent))
                await producer.send(topic, sent[-1], partition=len(sent) % PARTITIONS)

        def member(number: int) -> Reader:
            return Reader(f"member {number}", seen, node.address, topic, group=group)

        is_over = asyncio.Event()
        async with Producer(node.address, linger_ms=0) as producer, asyncio.TaskGroup() as tasks:
            tasks.create_task(produce(producer, is_over))
            members = [await member(0).start()]
            await until(lambda: members[0].consumer.assignment == places_of(topic))
            for number in (1, 2):
                members.append(await member(number).start())
                share = PARTITIONS // len(members)
                await until(lambda share=share: all(len(one.consumer.assignment) == share for one in members))  # type: ignore[misc]
            here = len(seen)
            await until(lambda: {name for name, _ in seen[here:]} == {one.name for one in members})
            assert set().union(*(one.consumer.assignment for one in members)) == places_of(topic)
            await members[1].stop()
            rest = [members[0], members[2]]
            await until(lambda: all(len(one.consumer.assignment) == PARTITIONS // 2 for one in rest))
            is_over.set()
        await until(lambda: len(seen) >= len(sent))
        for one in rest:
            await one.stop()
        assert sorted(int(message.value or b"") for _, message in seen) == list(range(len(sent)))
        kept = places_of(topic).difference(*(places for kind, places in members[0].changes[:-1] if kind == "gave"))
        assert len(kept) == PARTITIONS // 3, "the others never left their first owner"
        for partition in range(PARTITIONS):
            offsets = [message.offset for _, message in seen if message.partition == partition]
            assert offsets == sorted(offsets)

    scenario()
    assert sum(group_offsets(node, group).values()) > 0


def test_kill_9_of_the_broker_loses_and_doubles_nothing(own_node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(PARTITIONS)

    @in_loop
    async def scenario() -> None:
        seen: list[tuple[str, Message]] = []
        async with Producer(own_node.address) as producer:
            members = [await Reader(f"{n}", seen, own_node.address, topic, group=group).start() for n in range(2)]
            await until(lambda: all(len(one.consumer.assignment) == PARTITIONS // 2 for one in members))
            for turn in range(3):
                await producer.send_many(topic, [b"%d" % (turn * 1000 + number) for number in range(1000)])
                await until(lambda turn=turn: len(seen) > turn * 1000 + 500)  # type: ignore[misc]
                await asyncio.to_thread(own_node.kill)
                await asyncio.to_thread(own_node.start)
            await until(lambda: len(seen) >= 3000)
            await producer.send(topic, b"3000")
            await until(lambda: len(seen) >= 3001)
            for one in members:
                await one.stop()
        assert sorted(int(message.value or b"") for _, message in seen) == list(range(3001))

    scenario()
    assert sum(group_offsets(own_node, group).values()) == 3001


def test_a_consumer_that_comes_back_goes_on(own_node: Node, make_topic: CreateTopic, group: str) -> None:
    """What was committed holds after kill -9 and a restart."""
    topic = make_topic(PARTITIONS)

    @in_loop
    async def scenario() -> None:
        async with Producer(own_node.address) as producer:
            await producer.send_many(topic, [b"%d" % number for number in range(600)])
        seen: list[int] = []
        for _ in range(3):
            async with Consumer(own_node.address, topic, group=group) as consumer:
                seen += [int((await anext(consumer)).value or b"") for _ in range(200)]
            await asyncio.to_thread(own_node.kill)
            await asyncio.to_thread(own_node.start)
        assert sorted(seen) == list(range(600))

    scenario()


def confluent_produce(node: Node, topic: str, keys: list[bytes]) -> dict[bytes, int]:
    """Which partition each key went to."""
    found: dict[bytes, int] = {}

    def delivered(error: object, message: Any) -> None:
        assert error is None, error
        found[message.key()] = message.partition()

    producer = ConfluentProducer(
        {"bootstrap.servers": node.address, "partitioner": "murmur2_random", "log_level": 0, **NO_REBOOTSTRAP}
    )
    for key in keys:
        producer.produce(topic, key=key, value=b"theirs", on_delivery=delivered)
    assert producer.flush(DEADLINE_S) == 0
    return found


def test_one_topic_with_confluent_kafka(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(PARTITIONS)
    keys = [b"customer-%d" % number for number in range(200)]
    theirs = confluent_produce(node, topic, keys)

    @in_loop
    async def scenario() -> None:
        async with Producer(node.address, partitioner="murmur2", compression="lz4") as producer:
            receipts = await producer.send_many(topic, [{"value": b"ours", "key": key} for key in keys])
        assert {key: receipt.partition for key, receipt in zip(keys, receipts)} == theirs
        async with Consumer(node.address, topic) as consumer:
            messages = [await anext(consumer) for _ in range(400)]
        assert sorted((one.value, one.key) for one in messages) == sorted(
            (value, key) for key in keys for value in (b"ours", b"theirs")
        )

    scenario()


def test_one_group_with_confluent_kafka(node: Node, make_topic: CreateTopic, group: str) -> None:
    """Both as members of KIP-848: half of the partitions each, and each message once."""
    topic = make_topic(PARTITIONS)
    settings = {
        "bootstrap.servers": node.address,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **NO_REBOOTSTRAP,
    }
    theirs: list[bytes | None] = []

    @in_loop
    async def scenario() -> None:
        other = ConfluentConsumer(settings)
        other.subscribe([topic])

        def poll() -> None:
            message = other.poll(0.02)
            if message is not None and message.error() is None:
                theirs.append(message.value())

        async with Consumer(node.address, topic, group=group) as consumer, Producer(node.address) as producer:
            while len(consumer.assignment) != PARTITIONS // 2 or len(other.assignment()) != PARTITIONS // 2:
                await asyncio.to_thread(poll)
            await producer.send_many(topic, [b"%d" % number for number in range(600)])
            ours = [await anext(consumer) for _ in range(300)]
            while len(theirs) < 300:
                await asyncio.to_thread(poll)
            everything = [one.value for one in ours] + theirs
            assert sorted(int(value or b"") for value in everything) == list(range(600))
            await asyncio.to_thread(other.close)

    scenario()


def test_uvloop_serves_as_well(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(PARTITIONS)

    async def scenario() -> None:
        async with asyncio.timeout(DEADLINE_S), Producer(node.address) as producer:
            await producer.send_many(topic, [bytes(1000) + b"%d" % number for number in range(3000)])
            async with Consumer(node.address, topic, group=group) as consumer:
                messages = [await anext(consumer) for _ in range(3000)]
        assert sorted(int((one.value or b"")[1000:]) for one in messages) == list(range(3000))

    uvloop.run(scenario())


@pytest.mark.parametrize("kind", ["os", "disk"])
def test_ours_reads_what_ours_sends(node: Node, make_topic: CreateTopic, kind: str) -> None:
    """From both ends at once, so that Fetch is parked again and again."""
    topic = make_topic(PARTITIONS, durability=kind)

    @in_loop
    async def scenario() -> None:
        async with Consumer(node.address, topic) as consumer, Producer(node.address, linger_ms=0) as producer:
            for number in range(200):
                receipt = await producer.send(topic, b"%d" % number)
                message = await anext(consumer)
                assert (message.partition, message.offset, message.value) == (
                    receipt.partition,
                    receipt.offset,
                    b"%d" % number,
                )

    scenario()

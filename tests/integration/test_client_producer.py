"""Our own producer against the real process: every message once, whatever happens in between."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from goqueue.client import ConnectionLost, DeliveryFailed, DeliveryTimeout, Producer, Receipt
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.topics import end_offsets
from tests.unit.testing.loops import in_loop

PARTITIONS = 3
KILLS = 3
BETWEEN_KILLS = 1000


def stored(node: Node, topic: str) -> dict[tuple[int, int], bytes | None]:
    """All values of a topic by partition and offset, as another library reads them."""
    ends = {(topic, number): end for number, end in end_offsets(node, topic, PARTITIONS).items()}
    return {(one.partition, one.offset): one.value for one in Confluent.read(node.address, ends)}


class Load:
    """Posts numbered messages until it is told to stop."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.receipts: list[asyncio.Future[Receipt]] = []
        self.acknowledged = 0
        self._enough: tuple[int, asyncio.Event] | None = None
        self.is_over = False

    async def run(self) -> None:
        while not self.is_over:
            value = b"%d" % len(self.receipts)
            future = await self._producer.post(self._topic, value, key=value if len(self.receipts) % 2 else None)
            future.add_done_callback(self._acknowledge)
            self.receipts.append(future)

    def _acknowledge(self, future: "asyncio.Future[Receipt]") -> None:
        self.acknowledged += 1
        if self._enough is not None and self.acknowledged >= self._enough[0]:
            self._enough[1].set()

    async def wait_for_more(self, messages: int) -> None:
        event = asyncio.Event()
        self._enough = (self.acknowledged + messages, event)
        await event.wait()


@pytest.mark.parametrize("durability", ["disk", "os"])
def test_kill_9_under_load_loses_and_doubles_nothing(own_node: Node, make_topic: CreateTopic, durability: str) -> None:
    topic = make_topic(PARTITIONS, durability=durability)

    @in_loop
    async def scenario() -> None:
        async with Producer(own_node.address, buffer_bytes_max=200_000) as producer:
            load = Load(producer, topic)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(load.run())
                for _ in range(KILLS):
                    await load.wait_for_more(BETWEEN_KILLS)
                    await asyncio.to_thread(own_node.kill)
                    await asyncio.to_thread(own_node.start)
                await load.wait_for_more(BETWEEN_KILLS)
                load.is_over = True
            await producer.flush()
        receipts.extend(future.result() for future in load.receipts)

    receipts: list[Receipt] = []
    scenario()
    found = stored(own_node, topic)
    sent = {(one.partition, one.offset): b"%d" % number for number, one in enumerate(receipts)}
    assert len(sent) == len(receipts) >= BETWEEN_KILLS * (KILLS + 1)
    assert found == sent
    for partition in range(PARTITIONS):
        numbers = [int(found[place] or b"-1") for place in sorted(found) if place[0] == partition]
        assert numbers == sorted(numbers), f"partition {partition} is out of order"


def test_a_cancelled_send_tears_no_batch(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(PARTITIONS)

    @in_loop
    async def scenario() -> None:
        async with Producer(node.address, linger_ms=500) as producer:
            sends = [
                asyncio.ensure_future(producer.send(topic, b"%d" % number, partition=number % PARTITIONS))
                for number in range(90)
            ]
            await asyncio.gather(*(producer.send(topic, b"first %d" % n, partition=n) for n in range(PARTITIONS)))
            more = [asyncio.ensure_future(producer.send(topic, b"more %d" % number)) for number in range(60)]
            await asyncio.wait(more, timeout=0.001)  # all are accepted by now, and none has gone out
            await producer.post(topic, b"last", partition=0)
            for number, send in enumerate([*sends, *more]):
                if number % 3 == 0:
                    send.cancel()
            await asyncio.wait([*sends, *more])
            assert all(send.cancelled() or send.result().topic == topic for send in [*sends, *more])

    scenario()
    expected = (
        [b"%d" % n for n in range(90)] + [b"first %d" % n for n in range(3)] + [b"more %d" % n for n in range(60)]
    )
    assert Counter(stored(node, topic).values()) == Counter([*expected, b"last"])


def test_close_completes_all_that_was_accepted(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(PARTITIONS)
    values = [b"%d" % number for number in range(5000)]

    @in_loop
    async def scenario() -> None:
        producer = await Producer(node.address, linger_ms=60_000).start()
        futures = [await producer.post(topic, value) for value in values]
        await producer.close()
        await producer.close()
        assert all(future.done() and future.result().offset >= 0 for future in futures)

    scenario()
    assert sorted(stored(node, topic).values(), key=lambda one: int(one or b"")) == values


def test_without_a_broker_delivery_ends_with_an_error(own_node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(PARTITIONS)

    @in_loop
    async def scenario() -> None:
        async with Producer(own_node.address, delivery_timeout="2s") as producer:
            await producer.send(topic, b"stored", partition=0)
            await asyncio.to_thread(own_node.kill)
            with pytest.raises(DeliveryTimeout, match="not acknowledged within 2 s"):
                await producer.send(topic, b"lost", partition=0)
            await producer.post(topic, b"lost too", partition=1)
            with pytest.raises(DeliveryFailed, match="1 message could not be delivered"):
                await producer.flush()
            await asyncio.to_thread(own_node.start)
            while True:
                with suppress(DeliveryTimeout):  # the node may take its time to start
                    assert (await producer.send(topic, b"again", partition=0)).offset >= 1
                    break

    scenario()
    found = stored(own_node, topic)
    assert (found[0, 0], list(found.values())[-1]) == (b"stored", b"again")


def test_nobody_there_is_a_clear_error() -> None:
    @in_loop
    async def scenario() -> None:
        with pytest.raises(ConnectionLost, match=r"cannot connect to 127\.0\.0\.1:1: "):
            await Producer("127.0.0.1:1", request_timeout="200ms").start()

    scenario()

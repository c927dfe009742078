"""The producer against a broker in the same process."""

import asyncio
from collections import Counter

import pytest

from goqueue.client import (
    BrokerRefused,
    Closed,
    DeliveryFailed,
    InvalidArgument,
    MessageTooLarge,
    NewMessage,
    Producer,
    UnknownTopic,
)
from goqueue.model.errors import InvalidMoment, InvalidName
from goqueue.records.partitioners import Partitioner, partition_for
from goqueue.testing import MemoryBroker, broker
from goqueue.testing.memory_node import MemoryNode
from tests.unit.testing.loops import in_loop


async def values(b: MemoryBroker, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in await b.read(topic)]


def batches(b: MemoryBroker) -> int:
    return b.broker.publisher.batches


@in_loop
async def test_a_sent_message_is_there_with_all_it_has() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, clock=None) as producer:
        await b.create_topic("orders", partitions=3)
        receipt = await producer.send(
            "orders", b"three apples", key=b"k", headers={"a": b"1", "b": None}, partition=2, timestamp=77
        )
        assert (receipt.topic, receipt.partition, receipt.offset, receipt.timestamp) == ("orders", 2, 0, 77)
        (record,) = await b.read("orders")
        assert (record.partition, record.offset, record.timestamp) == (2, 0, 77)
        assert (record.key, record.value, record.header_pairs) == (b"k", b"three apples", [("a", b"1"), ("b", None)])
        empty = await producer.send("orders", None, key=b"k", partition=2)
        assert [(one.offset, one.value) for one in await b.read("orders", 2, empty.offset)] == [(1, None)]


@in_loop
async def test_a_hundred_messages_are_a_batch() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, linger_ms=60_000) as producer:
        await b.create_topic("orders")
        before = batches(b)
        receipts = await producer.send_many("orders", [b"%d" % number for number in range(300)])
        assert batches(b) - before == 3
        assert [receipt.offset for receipt in receipts] == list(range(300))
        assert await values(b) == [b"%d" % number for number in range(300)]


@in_loop
async def test_64_kb_are_a_batch() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, linger_ms=60_000) as producer:
        await b.create_topic("orders")
        before = batches(b)
        futures = [await producer.post("orders", bytes(20_000)) for _ in range(10)]
        await asyncio.gather(*futures[:9])
        assert batches(b) - before == 3
        large = await producer.post("orders", bytes(100_000))
        await asyncio.gather(futures[9], large)
        assert batches(b) - before == 5


@in_loop
async def test_a_batch_goes_out_after_the_linger() -> None:
    """No other message comes, and none is needed."""
    async with broker(kafka=True) as b, Producer(b.kafka, linger_ms=50) as producer:
        await b.create_topic("orders", partitions=2)
        await producer.send("orders", b"the topic is known from now on")
        before = batches(b)
        await asyncio.gather(*(producer.send("orders", b"%d" % number) for number in range(10)))
        assert batches(b) - before == 2


@in_loop
async def test_without_linger_a_message_goes_out_at_once() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, linger_ms=0) as producer:
        await b.create_topic("orders")
        before = batches(b)
        for number in range(3):
            await producer.send("orders", b"%d" % number)
        assert batches(b) - before == 3


@pytest.mark.parametrize("partitions", [1, 2, 3, 7])
def test_messages_without_a_key_spread_evenly(partitions: int) -> None:
    """Two topics in turns."""

    @in_loop
    async def scenario() -> None:
        async with broker(kafka=True) as b, Producer(b.kafka) as producer:
            for topic in ("a", "b"):
                await b.create_topic(topic, partitions=partitions)
            for number in range(101):
                await producer.post("a", b"%d" % number)
                await producer.post("b", b"%d" % number)
            await producer.flush()
            for topic in ("a", "b"):
                counts = Counter(record.partition for record in await b.read(topic))
                assert len(counts) == partitions
                assert max(counts.values()) - min(counts.values()) <= 1

    scenario()


@in_loop
async def test_a_key_has_one_partition() -> None:
    keys = [b"customer-%d" % number for number in range(50)]
    async with broker(kafka=True) as b:
        await b.create_topic("orders", partitions=5)
        for name in ("murmur3", "murmur2", "crc32"):
            async with Producer(b.kafka, partitioner=name) as producer:
                receipts = await producer.send_many("orders", [{"value": b"", "key": key} for key in keys])
            expected = [partition_for(key, 5, Partitioner(name)) for key in keys]
            assert [receipt.partition for receipt in receipts] == expected
        async with Producer(b.kafka, partitioner="round_robin") as producer:
            receipts = await producer.send_many("orders", [{"value": b"", "key": b"same"}] * 10)
            assert [receipt.partition for receipt in receipts] == [0, 1, 2, 3, 4] * 2


@in_loop
async def test_a_key_goes_where_its_topic_says_unless_the_producer_knows_better() -> None:
    keys = [b"customer-%d" % number for number in range(50)]
    messages: list[NewMessage] = [{"value": b"", "key": key} for key in keys]
    async with broker(kafka=True) as b:
        await b.create_topic("plain", partitions=5)
        for kind in (Partitioner.MURMUR3, Partitioner.CRC32):
            await b.create_topic(kind.value, partitions=5, partitioner=kind.value)
        await b.create_topic("turns", partitions=5, partitioner="round_robin")
        async with Producer(b.kafka) as producer:
            for topic, kind in (
                ("plain", Partitioner.MURMUR2),
                ("murmur3", Partitioner.MURMUR3),
                ("crc32", Partitioner.CRC32),
            ):
                receipts = await producer.send_many(topic, messages)
                assert [receipt.partition for receipt in receipts] == [partition_for(key, 5, kind) for key in keys]
            receipts = await producer.send_many("turns", [{"value": b"", "key": b"same"}] * 10)
            assert [receipt.partition for receipt in receipts] == [0, 1, 2, 3, 4] * 2
        async with Producer(b.kafka, partitioner="murmur2") as producer:
            receipts = await producer.send_many("crc32", messages)
            assert [receipt.partition for receipt in receipts] == [partition_for(key, 5) for key in keys]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read_back(compression: str) -> None:
    @in_loop
    async def scenario() -> None:
        async with broker(kafka=True) as b, Producer(b.kafka, compression=compression) as producer:  # type: ignore[arg-type]
            await b.create_topic("orders")
            sent = [b"%d" % number * 20 for number in range(150)]
            await producer.send_many("orders", sent)
            assert await values(b) == sent

    scenario()


@in_loop
async def test_wishes_are_granted() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka) as producer:
        await b.create_topic("orders")
        await asyncio.gather(
            producer.send("orders", b"low", priority="low"),
            producer.send("orders", b"normal"),
            producer.send("orders", b"critical", priority=0),
            producer.send("orders", b"later", delay="1h"),
            producer.send("orders", b"then", at=b.now_ms + 7_200_000, priority="high"),
        )
        messages = await b.receive("orders", max_messages=10)
        assert [(one.value, one.priority) for one in messages] == [
            (b"critical", "critical"),
            (b"normal", "normal"),
            (b"low", "low"),
        ]
        for message in messages:
            await message.ack()
        await b.advance("1h")
        (later,) = await b.receive("orders")
        assert later.value == b"later"
        await later.ack()
        await b.advance("1h")
        assert [(one.value, one.priority) for one in await b.receive("orders")] == [(b"then", "high")]


@in_loop
async def test_what_cannot_be_is_refused_at_once() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, message_bytes_max=1000) as producer:
        await b.create_topic("orders", partitions=2)
        for wrong in (
            {"value": "text"},
            {"value": b"", "key": 7},
            {"value": b"", "headers": [("a", "text")]},
            {"value": b"", "headers": [("a",)]},
            {"value": b"", "priority": "urgent"},
            {"value": b"", "priority": 5},
            {"value": b"", "partition": 2},
            {"value": b"", "timestamp": -1},
            {"value": b"", "delay": "1s", "at": "+1h"},
        ):
            with pytest.raises(InvalidArgument):
                await producer.send("orders", **wrong)
        with pytest.raises(InvalidMoment):
            await producer.send("orders", b"", delay="soon")
        with pytest.raises(MessageTooLarge, match="at most 1000"):
            await producer.send("orders", bytes(1000))
        with pytest.raises(InvalidName):
            await producer.send("../escape", b"")
        assert await values(b) == []


@pytest.mark.parametrize(
    "option",
    [{"linger_ms": -1}, {"batch_messages_max": 0}, {"compression": "rar"}, {"partitioner": "dice"}, {"servers": "a:b"},
     {"delivery_timeout": "soon"}],
)  # fmt: skip
def test_an_option_that_cannot_be_is_refused(option: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Producer(**option)  # type: ignore[arg-type]


@in_loop
async def test_a_topic_that_nobody_makes_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryNode, "creates_topics", False)
    async with broker(kafka=True) as b, Producer(b.kafka) as producer:
        with pytest.raises(UnknownTopic, match="there is no topic 'orders'"):
            await producer.send("orders", b"")
        await b.create_topic("orders")
        assert (await producer.send("orders", b"")).offset == 0


@in_loop
async def test_one_bad_message_does_not_spoil_its_batch() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka) as producer:
        await b.create_topic("latest", cleanup_policy="compact")
        messages = [{"value": b"%d" % number, "key": None if number in (3, 50) else b"k"} for number in range(80)]
        futures = [await producer.post("latest", **one) for one in messages]  # type: ignore[arg-type]
        with pytest.raises(DeliveryFailed, match="2 messages could not be delivered"):
            await producer.flush()
        failed = [number for number, future in enumerate(futures) if future.exception() is not None]
        assert failed == [3, 50]
        assert isinstance(futures[3].exception(), BrokerRefused)
        found = [record.value for record in await b.read("latest")]
        assert found == [b"%d" % number for number in range(80) if number not in (3, 50)]
        await producer.flush()
        assert (await producer.send("latest", b"more", key=b"k")).offset == 78


@in_loop
async def test_a_failure_is_told_once_to_whoever_waits() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka) as producer:
        await b.create_topic("latest", cleanup_policy="compact")
        with pytest.raises(BrokerRefused, match="takes only records with a key"):
            await producer.send("latest", b"")
        with pytest.raises(BrokerRefused):
            await producer.send_many("latest", [{"value": b"", "key": b"k"}, b""])
        await producer.flush()


@in_loop
async def test_sending_waits_while_the_buffer_is_full() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, buffer_bytes_max=3000, linger_ms=60_000) as producer:
        await b.create_topic("orders")
        for _ in range(2):
            await producer.post("orders", bytes(1000))
        third = asyncio.ensure_future(producer.post("orders", bytes(1000)))
        fourth = asyncio.ensure_future(producer.post("orders", b"small"))
        await asyncio.wait([third, fourth], timeout=0.05)
        assert not third.done()
        assert not fourth.done(), "it would fit, but must not overtake"
        await producer.flush()
        await asyncio.gather(third, fourth)
        await producer.flush()
        assert [len(value or b"") for value in await values(b)] == [1000, 1000, 1000, 5]
        with pytest.raises(MessageTooLarge):
            await producer.send("orders", bytes(3000))


@in_loop
async def test_after_close_nothing_is_accepted() -> None:
    async with broker(kafka=True) as b:
        await b.create_topic("orders")
        producer = Producer(b.kafka, buffer_bytes_max=1500, linger_ms=60_000)
        with pytest.raises(Closed, match="was not started"):
            await producer.send("orders", b"")
        await producer.start()
        await producer.post("orders", bytes(1000))
        waiting = asyncio.ensure_future(producer.send("orders", bytes(1000)))
        await asyncio.wait([waiting], timeout=0.02)
        await producer.close()
        with pytest.raises(Closed):
            await waiting
        with pytest.raises(Closed):
            await producer.send("orders", b"")
        assert len(await values(b)) == 1


@in_loop
async def test_a_crash_in_between_changes_nothing() -> None:
    """The disk keeps what was acknowledged; what was not is sent again, and stored once."""
    async with broker(kafka=True, clock="real") as b, Producer(b.kafka) as producer:
        await b.create_topic("orders", partitions=2)
        futures = []
        for number in range(3000):
            futures.append(await producer.post("orders", b"%d" % number))
            if number in (700, 1900):
                await b.crash()
                await b.restart()
        await producer.flush()
        receipts = [future.result() for future in futures]
        found = {(one.partition, one.offset): one.value for one in await b.read("orders")}
        assert found == {(one.partition, one.offset): b"%d" % number for number, one in enumerate(receipts)}
        assert len(found) == 3000


@in_loop
async def test_new_partitions_are_used() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka) as producer:
        await b.create_topic("orders", partitions=1)
        await producer.send("orders", b"")
        producer._routes["orders"].grow(3)
        with pytest.raises(InvalidArgument, match="0 to 2"):
            await producer.send("orders", b"", partition=3)


@in_loop
async def test_a_receipt_says_which_durability_was_reached() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, clock=None) as producer:
        for durability in ("disk", "os"):
            await b.create_topic(durability, durability=durability)
            receipts = [await producer.send(durability, b"x") for _ in range(3)]  # the first goes another way
            receipts.append(await producer.send(durability, b"x", delay="1h"))
            assert [each.durability for each in receipts] == [durability] * 4

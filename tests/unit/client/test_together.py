"""Writers that leave their transactions open, and what ends them together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from goqueue.client import Fenced
from goqueue.client.cluster import Cluster
from goqueue.client.errors import BrokerRefused, ClientError, Closed
from goqueue.client.open_writer import OpenWriter
from goqueue.client.together import LeftOpen, abort_together, commit_together, family
from goqueue.model.codes import Code
from goqueue.records.build import NewRecord, build_batch
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop

MINUTE_MS = 60_000


def batch(*values: bytes) -> bytearray:
    records: list[NewRecord] = [(1000, None, value, []) for value in values]
    return build_batch(records, producer_id=0, producer_epoch=0, base_sequence=0, transactional=True)


@asynccontextmanager
async def cluster(b: MemoryBroker) -> AsyncIterator[Cluster]:
    made = Cluster(b.kafka)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


async def write(c: Cluster, name: str, *values: bytes, topic: str = "orders", timeout_ms: int = MINUTE_MS) -> LeftOpen:
    await c.topic(topic)
    writer = OpenWriter(c, family("job") + name, timeout_ms)
    await writer.start()
    for partition in range(2):
        for value in values:
            await writer.send(topic, partition, batch(value, value), 2)
    left = await writer.leave_open()
    await writer.close()
    assert left is not None
    return left


async def values(b: MemoryBroker) -> list[bytes]:
    return sorted(record.value or b"" for record in await b.read("orders"))


@in_loop
async def test_what_many_writers_left_open_is_seen_at_once_and_once() -> None:
    async with broker(kafka=True) as b, cluster(b) as c:
        await b.create_topic("orders", partitions=2)
        left = await asyncio.gather(*(write(c, str(number), b"%d" % number, b"x") for number in range(3)))
        await write(c, "0-failed", b"never")
        assert await values(b) == []
        assert await commit_together(c, "job", 0, left)
        expected = sorted([b"0", b"1", b"2", b"x", b"x", b"x"] * 4)
        assert await values(b) == expected
        assert not await commit_together(c, "job", 0, left), "asked again"
        assert not await commit_together(c, "job", 0, [await write(c, "0", b"again")])
        assert await values(b) == expected
        assert await commit_together(c, "job", 1, [await write(c, "0", b"next")], is_last=True)
        assert await values(b) == sorted([*expected, *[b"next"] * 4])


@in_loop
async def test_one_writer_that_is_gone_keeps_all_from_being_committed() -> None:
    async with broker(kafka=True) as b, cluster(b) as c:
        await b.create_topic("orders", partitions=2)
        left = [await write(c, str(number), b"%d" % number) for number in range(2)]
        again = await write(c, "1", b"another attempt")
        with pytest.raises(Fenced, match="nothing is committed: transaction 'job/1' is not open"):
            await commit_together(c, "job", 0, left)
        assert await values(b) == []
        assert await commit_together(c, "job", 0, [left[0], again])
        assert await values(b) == sorted([b"0", b"another attempt"] * 4)


@in_loop
async def test_given_up_nothing_is_seen_and_a_writer_that_goes_on_is_refused() -> None:
    async with broker(kafka=True) as b, cluster(b) as c:
        await b.create_topic("orders", partitions=2)
        await c.topic("orders")
        await write(c, "0", b"never")
        writer = OpenWriter(c, "job/1", MINUTE_MS)
        with pytest.raises(Closed):
            await writer.send("orders", 0, batch(b"too early"), 1)
        await writer.start()
        assert await writer.leave_open() is None
        await writer.send("orders", 0, batch(b"never"), 1)
        assert await writer.leave_open() is not None
        await abort_together(c, "job")
        await writer.send("orders", 0, batch(b"too late"), 1)
        with pytest.raises(ClientError):
            await writer.leave_open()
        await writer.abort()
        await writer.close()
        assert await values(b) == []


@in_loop
async def test_a_writer_aborts_what_it_cannot_finish() -> None:
    async with broker(kafka=True) as b, cluster(b) as c:
        await b.create_topic("orders", partitions=2)
        await b.create_topic("latest", cleanup_policy="compact")
        for topic in ("orders", "latest"):
            await c.topic(topic)
        writer = OpenWriter(c, "job/0", MINUTE_MS)
        await writer.start()
        await writer.send("orders", 0, batch(b"never"), 1)
        await writer.send("latest", 0, batch(b"without a key"), 1)
        with pytest.raises(BrokerRefused, match="takes only records with a key") as refused:
            await writer.leave_open()
        assert refused.value.code is Code.INVALID_RECORD
        await writer.abort()
        await writer.close()
        await b.publish("orders", b"seen")
        assert await values(b) == [b"seen"]


@in_loop
async def test_a_crash_between_writing_and_committing_is_ridden_out() -> None:
    async with broker(kafka=True, clock="real") as b, cluster(b) as c:
        await b.create_topic("orders", partitions=2)
        left = [await write(c, str(number), b"%d" % number) for number in range(2)]
        await b.crash()
        await b.restart()
        assert await commit_together(c, "job", 0, left)
        await b.crash()
        await b.restart()
        assert not await commit_together(c, "job", 0, left)
        assert await values(b) == sorted([b"0", b"1"] * 4)

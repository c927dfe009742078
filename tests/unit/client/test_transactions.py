"""Transactions of our own producer: all or nothing, one owner at a time."""

import asyncio
from contextlib import suppress

import pytest

from goqueue.client import Consumer, DeliveryFailed, Fenced, InvalidArgument, Producer, TransactionAborted
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop


async def values(b: MemoryBroker, topic: str = "orders") -> list[bytes]:
    return sorted(record.value or b"" for record in await b.read(topic))


@in_loop
async def test_what_is_committed_is_seen_and_what_is_aborted_never() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, transactional_id="t") as producer:
        await b.create_topic("orders", partitions=3)
        expected = []
        for turn in range(6):
            sent = [b"%d-%03d" % (turn, number) for number in range(150)]
            with suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_many("orders", sent)
                    if turn % 2:
                        raise ZeroDivisionError
            if turn % 2 == 0:
                expected += sent
            assert await values(b) == expected


@in_loop
async def test_posts_that_have_not_gone_out_are_aborted_too() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, transactional_id="t", linger_ms=60_000) as producer:
        await b.create_topic("orders")
        with suppress(ZeroDivisionError):
            async with producer.transaction():
                future = await producer.post("orders", b"never")
                raise ZeroDivisionError
        assert isinstance(future.exception(), TransactionAborted)
        async with producer.transaction():
            await producer.post("orders", b"seen")
        assert await values(b) == [b"seen"]
        await producer.flush()


@in_loop
async def test_what_cannot_be_delivered_aborts_all() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, transactional_id="t") as producer:
        await b.create_topic("orders")
        await b.create_topic("latest", cleanup_policy="compact")

        async def fails() -> None:
            async with producer.transaction():
                await producer.send("orders", b"with the other")
                await producer.post("latest", b"without a key")

        with pytest.raises(DeliveryFailed, match="takes only records with a key"):
            await fails()
        assert await values(b) == []
        async with producer.transaction():
            await producer.send("orders", b"again")
        assert await values(b) == [b"again"]


@in_loop
async def test_cancelled_is_aborted() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, transactional_id="t") as producer:
        await b.create_topic("orders")
        is_sent = asyncio.Event()

        async def work() -> None:
            async with producer.transaction():
                await producer.send("orders", b"never")
                is_sent.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(work())
        await is_sent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with producer.transaction():
            await producer.send("orders", b"seen")
        assert await values(b) == [b"seen"]


@in_loop
async def test_a_second_producer_takes_over() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, transactional_id="t") as old:
        await b.create_topic("orders")

        async def overtaken() -> None:
            async with old.transaction():
                await old.send("orders", b"never")
                async with Producer(b.kafka, transactional_id="t") as new:
                    async with new.transaction():
                        await new.send("orders", b"seen")
                    await old.send("orders", b"never either")

        with pytest.raises(Fenced):
            await overtaken()
        with pytest.raises(Fenced):
            async with old.transaction():
                pass
        assert await values(b) == [b"seen"]


@in_loop
async def test_offsets_are_part_of_it() -> None:
    async with broker(kafka=True) as b, Producer(b.kafka, transactional_id="t") as producer:
        await b.create_topic("orders")
        await b.create_topic("bills")
        for number in range(10):
            await b.publish("orders", b"%d" % number)
        for turn in range(3):
            async with Consumer(b.kafka, "orders", group="g", auto_commit=False) as consumer:
                with suppress(ZeroDivisionError):
                    async with producer.transaction():
                        for _ in range(5):
                            await producer.post("bills", (await anext(consumer)).value)
                        await producer.send_offsets(consumer)
                        if turn == 1:
                            raise ZeroDivisionError
                assert await consumer.committed("orders", 0) == [5, 5, 10][turn]
        assert await values(b, "bills") == [b"%d" % number for number in range(10)]
        async with producer.transaction():
            await producer.send_offsets({("orders", 0): 2}, group="other")
        async with Consumer(b.kafka, "orders", group="other") as consumer:
            assert (await anext(consumer)).offset == 2


@in_loop
async def test_misuse_is_refused() -> None:
    async with broker(kafka=True) as b:
        await b.create_topic("orders")
        async with Producer(b.kafka) as plain:
            with pytest.raises(InvalidArgument, match="transactional_id"):
                plain.transaction()
            with pytest.raises(InvalidArgument, match="transactional_id"):
                await plain.send_offsets({}, group="g")
        async with Producer(b.kafka, transactional_id="t") as producer:
            with pytest.raises(InvalidArgument, match="no transaction is open"):
                await producer.send("orders", b"")
            with pytest.raises(InvalidArgument, match="open already"):
                async with producer.transaction(), producer.transaction():
                    pass
            with pytest.raises(InvalidArgument, match="which group"):
                async with producer.transaction():
                    await producer.send_offsets({})
            async with producer.transaction():
                pass
            assert await values(b) == []


@in_loop
async def test_a_crash_in_the_middle_commits_all_or_nothing() -> None:
    async with broker(kafka=True, clock="real") as b, Producer(b.kafka, transactional_id="t") as producer:
        await b.create_topic("orders", partitions=2)
        async with producer.transaction():
            for number in range(400):
                await producer.post("orders", b"%d" % number)
                if number == 250:
                    await b.crash()
                    await b.restart()
        found = sorted(int(record.value or b"") for record in await b.read("orders"))
        assert found == list(range(400))

"""The consumer against a broker in the same process; where time must pass, on the virtual clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from goqueue.client import Closed, Consumer, InvalidArgument, Message, Producer, UnknownTopic
from goqueue.model.errors import InvalidMoment
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop

Place = tuple[str, int]


@asynccontextmanager
async def filled(messages: int = 30, partitions: int = 3, **options: Any) -> AsyncIterator[MemoryBroker]:
    """A broker whose topic "orders" holds that many numbers, spread in turns."""
    async with broker(kafka=True, **options) as b:
        await b.create_topic("orders", partitions=partitions)
        await publish(b, range(messages), partitions)
        yield b


async def publish(b: MemoryBroker, numbers: range, partitions: int = 3) -> None:
    for number in numbers:
        await b.publish("orders", b"%d" % number, partition=number % partitions)


async def take(consumer: Consumer, messages: int) -> list[Message]:
    """Exactly so many, one by one."""
    return [await anext(consumer) for _ in range(messages)]


def numbers(messages: list[Message]) -> list[int]:
    return sorted(int(message.value or b"-1") for message in messages)


@in_loop
async def test_without_a_group_all_is_read_in_order() -> None:
    async with filled(300) as b, Consumer(b.kafka, "orders") as consumer:
        messages = await take(consumer, 300)
        assert numbers(messages) == list(range(300))
        for partition in range(3):
            offsets = [message.offset for message in messages if message.partition == partition]
            assert offsets == list(range(100))
        assert consumer.assignment == {("orders", partition) for partition in range(3)}
        assert [consumer.position("orders", partition) for partition in range(3)] == [100] * 3
        assert consumer.lag("orders", 0) == 0
        with pytest.raises(InvalidArgument, match="without a group"):
            await consumer.commit()


@in_loop
async def test_a_message_has_all_it_was_sent_with() -> None:
    async with filled(0) as b, Consumer(b.kafka, "orders") as consumer, Producer(b.kafka) as producer:
        await producer.send(
            "orders", b"v", key=b"k", headers=[("a", b"1"), ("a", None)], priority="high", timestamp=5, partition=1
        )
        message = await anext(consumer)
        assert (message.topic, message.partition, message.offset, message.timestamp) == ("orders", 1, 0, 5)
        assert (message.key, message.value, message.priority) == (b"k", b"v", "high")
        assert message.header_pairs == [("a", b"1"), ("a", None), ("gq-priority", b"high")]
        assert message.headers["a"] is None


@in_loop
async def test_poll_gives_what_there_is_and_nothing_in_time() -> None:
    async with filled(30) as b, Consumer(b.kafka, "orders") as consumer:
        messages: list[Message] = []
        while len(messages) < 30:
            found = await consumer.poll(max_messages=7)
            assert 0 < len(found) <= 7
            messages += found
        assert numbers(messages) == list(range(30))
        assert await consumer.poll(timeout="20ms") == []
        waiting = asyncio.ensure_future(consumer.poll())
        await publish(b, range(30, 31))
        assert numbers(await waiting) == [30]


@in_loop
async def test_a_cancelled_wait_loses_nothing() -> None:
    async with filled(0) as b, Consumer(b.kafka, "orders") as consumer:
        for number in range(20):
            waiting = asyncio.ensure_future(anext(consumer))
            await asyncio.wait([waiting], timeout=0.001)
            await publish(b, range(number, number + 1))
            waiting.cancel()
            try:
                found = [await waiting]
            except asyncio.CancelledError:
                found = await take(consumer, 1)
            assert numbers(found) == [number]


@in_loop
async def test_seek_by_offset_and_by_time() -> None:
    async with filled(30) as b:
        await b.advance("1h")
        await publish(b, range(30, 60))
        async with Consumer(b.kafka, "orders", start="latest") as consumer:
            assert await consumer.poll(timeout="20ms") == []
            await consumer.seek("orders", 1, 15)
            assert numbers(await take(consumer, 5)) == [46, 49, 52, 55, 58]
            await consumer.seek_to_time(b.now_ms - 60_000)
            assert numbers(await take(consumer, 30)) == list(range(30, 60))
            await consumer.seek("orders", 2, "earliest")
            assert numbers(await take(consumer, 20)) == list(range(2, 60, 3))
            await consumer.seek_to_time(0, "orders", 0)
            await take(consumer, 3)
            await consumer.seek("orders", 0, "latest")
            assert await consumer.poll(timeout="20ms") == []
            await consumer.seek_to_time(b.now_ms + 1)
            await publish(b, range(60, 63))
            assert numbers(await take(consumer, 3)) == [60, 61, 62]
            with pytest.raises(InvalidArgument, match="not assigned"):
                await consumer.seek("orders", 3, 0)
            with pytest.raises(InvalidArgument, match="from 0"):
                await consumer.seek("orders", 0, -1)


@in_loop
async def test_it_starts_where_it_is_told_to() -> None:
    async with filled(30) as b:
        await b.advance("1h")
        await publish(b, range(30, 60))
        async with Consumer(b.kafka, "orders", start=b.now_ms - 1) as consumer:
            assert numbers(await take(consumer, 30)) == list(range(30, 60))
    for wrong in ("soon", "-10", -1):
        with pytest.raises(InvalidMoment):
            Consumer("a:1", "orders", start=wrong)
    with pytest.raises(InvalidArgument, match="no topic"):
        Consumer("a:1")
    with pytest.raises(InvalidArgument, match="isolation"):
        Consumer("a:1", "orders", isolation="some")  # type: ignore[arg-type]


@in_loop
async def test_what_is_paused_waits_and_the_rest_goes_on() -> None:
    async with filled(60) as b, Consumer(b.kafka, "orders") as consumer:
        first = await take(consumer, 5)
        consumer.pause("orders", 1)
        others = [message for message in first if message.partition != 1]
        while len(others) < 40:
            others.append(await anext(consumer))
            assert others[-1].partition != 1 or len(others) < 25, "only the rest of one batch may still come"
            if others[-1].partition == 1:
                others.pop()
        assert await consumer.poll(timeout="20ms") == []
        before = consumer.position("orders", 1)
        consumer.resume()
        rest = await take(consumer, 20 - before)
        assert [message.offset for message in rest] == list(range(before, 20))
        await publish(b, range(60, 63))
        assert numbers(await take(consumer, 3)) == [60, 61, 62]


@in_loop
async def test_only_committed_messages_are_seen() -> None:
    async with filled(3) as b, Producer(b.kafka, transactional_id="t") as producer:
        with suppress(ZeroDivisionError):
            async with producer.transaction():
                await producer.send_many("orders", [b"100", b"101", b"102"])
                raise ZeroDivisionError
        async with producer.transaction():
            await producer.send_many("orders", [b"3", b"4", b"5"])
        async with Consumer(b.kafka, "orders") as consumer:
            assert numbers(await take(consumer, 6)) == [0, 1, 2, 3, 4, 5]
            assert await consumer.poll(timeout="20ms") == []
            assert {consumer.position("orders", partition) for partition in range(3)} == {5}
            async with producer.transaction():
                await producer.send("orders", b"6", partition=0)
                assert await consumer.poll(timeout="20ms") == []
            assert numbers(await take(consumer, 1)) == [6]
        async with Consumer(b.kafka, "orders", isolation="uncommitted") as consumer:
            assert numbers(await take(consumer, 10)) == [0, 1, 2, 3, 4, 5, 6, 100, 101, 102]


@in_loop
async def test_a_group_goes_on_where_it_was() -> None:
    async with filled(300) as b:
        seen: list[Message] = []
        for _ in range(3):
            async with Consumer(b.kafka, "orders", group="billing") as consumer:
                seen += await take(consumer, 100)
        assert numbers(seen) == list(range(300))


@in_loop
async def test_a_message_that_failed_comes_again() -> None:
    async with filled(30) as b:
        last = None
        with suppress(ZeroDivisionError):
            async with Consumer(b.kafka, "orders", group="billing") as consumer:
                for _ in range(5):
                    last = await anext(consumer)
                raise ZeroDivisionError
        async with Consumer(b.kafka, "orders", group="billing") as consumer:
            rest = await take(consumer, 26)
            assert last in rest
            assert await consumer.poll(timeout="20ms") == []


@in_loop
async def test_without_auto_commit_only_what_is_committed_counts() -> None:
    async with filled(30, partitions=1) as b:
        async with Consumer(b.kafka, "orders", group="billing", auto_commit=False) as consumer:
            await take(consumer, 10)
            await consumer.commit()
            await take(consumer, 10)
        async with Consumer(b.kafka, "orders", group="billing", auto_commit=False) as consumer:
            messages = await take(consumer, 10)
            assert [message.offset for message in messages] == list(range(10, 20))
            await consumer.commit(messages[4])
            assert await consumer.committed("orders", 0) == 15
            await consumer.commit({("orders", 0): 3})
        async with Consumer(b.kafka, "orders", group="billing") as consumer:
            assert (await anext(consumer)).offset == 3


@in_loop
async def test_a_negative_offset_is_not_committed_and_one_beyond_the_end_is_kept() -> None:
    async with filled(3) as b, Consumer(b.kafka, "orders", group="billing", auto_commit=False) as consumer:
        await take(consumer, 3)
        with pytest.raises(InvalidArgument, match="-5"):
            await consumer.commit({("orders", 0): -5})
        assert await consumer.committed("orders", 0) is None
        await consumer.commit({("orders", 0): 100})
        assert await consumer.committed("orders", 0) == 100


@in_loop
async def test_what_is_being_worked_on_is_finished_before_it_is_given_back() -> None:
    """Nothing comes twice when a member joins, although nothing was committed before."""
    revoked: asyncio.Future[set[Place]] = asyncio.get_running_loop().create_future()
    begun: asyncio.Future[set[Place]] = asyncio.get_running_loop().create_future()

    def first_revoked(places: set[Place]) -> None:
        if not revoked.done():
            revoked.set_result(places)

    async with (
        filled(100, partitions=2, clock="real") as b,
        Consumer(b.kafka, "orders", group="billing", on_revoked=first_revoked) as first,
    ):
        seen = await first.poll(max_messages=80)
        assert {message.partition for message in seen} == {0, 1}
        async with Consumer(b.kafka, "orders", group="billing", on_assigned=begun.set_result) as second:
            await asyncio.wait([revoked, begun], timeout=0.3)
            assert not revoked.done(), "the messages are still with their user"
            assert not begun.done()
            while not begun.done():
                seen += await first.poll(timeout="10ms")
            (place,) = await revoked
            assert begun.result() == second.assignment == {place}
            assert first.assignment == {("orders", 0), ("orders", 1)} - {place}
            while len(seen) < 100:
                seen += await first.poll(timeout="5ms") + await second.poll(timeout="5ms")
    assert numbers(seen) == list(range(100))


@in_loop
async def test_what_was_deleted_is_stepped_over() -> None:
    async with filled(30, partitions=1) as b, Consumer(b.kafka, "orders") as consumer:
        await take(consumer, 1)
        replica = b.broker.topics.replica("orders", 0)
        replica.delete_before(20)
        await consumer.seek("orders", 0, 5)
        assert [message.offset for message in await take(consumer, 10)] == list(range(20, 30))
        await consumer.seek("orders", 0, 1000)
        assert (await anext(consumer)).offset == 20


@in_loop
async def test_a_topic_that_is_not_there() -> None:
    async with broker(kafka=True) as b:
        with pytest.raises(UnknownTopic):
            await Consumer(b.kafka, "nothing").start()
        async with Consumer(b.kafka, "later", group="g", clock=None) as consumer:
            assert await consumer.poll(timeout="20ms") == []
        with pytest.raises(Closed):
            await consumer.poll()
        with pytest.raises(Closed):
            await anext(consumer)
        await consumer.close()


@in_loop
async def test_a_crash_in_between_changes_nothing() -> None:
    async with filled(900, clock="real") as b, Consumer(b.kafka, "orders", group="g", prefetch_bytes_max=1) as consumer:
        seen = await take(consumer, 300)
        await b.crash()
        await b.restart()
        seen += await take(consumer, 600)
        assert numbers(seen) == list(range(900))


@in_loop
async def test_a_member_that_was_given_up_joins_again() -> None:
    """Its session ends in virtual time: it loses its partitions, and goes on from what is committed."""
    revoked: list[set[Place]] = []
    seen: list[int] = []

    def lose(places: set[Place]) -> None:
        revoked.append(places)
        seen.clear()

    async with (
        filled(30, partitions=1) as b,
        Consumer(b.kafka, "orders", group="billing", auto_commit=False, on_revoked=lose) as consumer,
    ):
        await take(consumer, 10)
        await consumer.commit()
        await b.advance("10m")
        while not revoked or seen[-1:] != [29]:
            seen += [message.offset for message in await consumer.poll(max_messages=1, timeout="10ms")]
        first = len(seen) - 1 - seen[::-1].index(10)  # one may have been handed out just before
        assert seen[first:] == list(range(10, 30))
        await consumer.commit()
        assert await consumer.committed("orders", 0) == 30


@in_loop
async def test_a_static_member_keeps_its_partitions_while_it_is_away() -> None:
    """It leaves for a while: nobody gets what it had, and its next life goes on there."""
    changes: list[set[Place]] = []
    async with (
        filled(60, clock="real") as b,
        Consumer(b.kafka, "orders", group="billing", on_assigned=changes.append) as other,
    ):
        seen: list[Message] = []
        for _ in range(2):
            async with Consumer(b.kafka, "orders", group="billing", instance_id="a") as consumer:
                while len(consumer.assignment) != 1 or len(other.assignment) != 2:
                    seen += await other.poll(timeout="10ms")
                    seen += await consumer.poll(max_messages=1, timeout="10ms")
                mine = consumer.assignment
            assert len(other.assignment) == 2
            assert not mine & other.assignment
        assert len({(one.partition, one.offset) for one in seen}) == len(seen)


@in_loop
async def test_an_instance_that_is_taken_waits_for_its_place() -> None:
    async with filled(3, clock="real") as b:
        async with Consumer(b.kafka, "orders", group="billing", instance_id="a") as first:
            await take(first, 3)
            second = await Consumer(b.kafka, "orders", group="billing", instance_id="a").start()
            assert await second.poll(timeout="100ms") == []
        await publish(b, range(3, 6))
        assert numbers(await take(second, 3)) == [3, 4, 5]
        await second.close()

"""A broker in a test: publishing, receiving, settling, and asking how things stand."""

import asyncio

import pytest

from goqueue.machines.controller_commands import AddPartitions
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, InvalidMoment, InvalidWish
from goqueue.model.lanes import Lane
from goqueue.model.refusal import Refused
from goqueue.testing import BrokerDown, Message, ReceiptExpired, ReceiptRepeated, ReceiptUnknown, broker
from tests.steps import Steps
from tests.unit.testing.loops import in_loop

HOUR_MS = 3_600_000
START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""
START_STEPS_MAX = 50_000
"""Twice what it takes: some 10 ms."""


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value for message in messages]


@in_loop
async def test_a_message_arrives_as_it_was_published() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        sent = await b.publish("orders", b"hello", key=b"k", headers={"a": b"1"}, priority="high")
        assert (sent.partition, sent.offset, sent.error) == (0, 0, None)
        (message,) = await b.receive("orders", group="workers", consumer="w1", lease="45s")
        assert (message.topic, message.partition, message.offset) == ("orders", 0, 0)
        assert (message.key, message.value, message.headers["a"]) == (b"k", b"hello", b"1")
        assert (message.attempt, message.priority, message.group) == (1, "high", "workers")
        assert message.timestamp == message.first_delivered == START_MS
        assert message.lease_until == START_MS + 45_000
        assert message.receipt not in repr(message)


@in_loop
async def test_an_acknowledged_message_is_not_delivered_again() -> None:
    async with broker() as b:
        await b.create_topic("orders", partitions=1, **{"lease.ms": "10000"})
        await b.publish("orders", b"hello")
        (message,) = await b.receive("orders")
        await message.ack()
        await b.advance("1 day")
        assert await b.receive("orders") == []
        assert values(await b.receive("orders", group="others")) == [b"hello"]


@in_loop
async def test_a_lease_that_runs_out_delivers_again() -> None:
    async with broker() as b:
        await b.create_topic("orders", lease_ms=10_000)
        await b.publish("orders", b"hello")
        (first,) = await b.receive("orders", consumer="w1")
        await b.advance("9s")
        assert await b.receive("orders", consumer="w2") == []
        await b.advance("2s")
        (second,) = await b.receive("orders", consumer="w2")
        assert (second.offset, second.attempt, second.first_delivered) == (first.offset, 2, START_MS)


@in_loop
async def test_an_extended_lease_holds() -> None:
    async with broker() as b:
        await b.create_topic("orders", lease_ms=10_000)
        await b.publish("orders", b"hello")
        (message,) = await b.receive("orders")
        await b.advance("9s")
        await message.extend("1m")
        await b.advance("59s")
        assert await b.receive("orders", consumer="other") == []
        await message.ack()


@in_loop
async def test_a_nack_delivers_again_after_its_delay() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish("orders", b"hello")
        (message,) = await b.receive("orders")
        await message.nack(delay="10s")
        await b.advance("9999ms")
        assert await b.receive("orders") == []
        await b.advance("1ms")
        (again,) = await b.receive("orders")
        assert again.attempt == 2
        await again.nack()
        assert await b.receive("orders") == []
        await b.advance("10m")
        assert values(await b.receive("orders")) == [b"hello"]


@in_loop
async def test_what_is_rejected_is_a_dead_letter_with_its_reason() -> None:
    async with broker() as b:
        await b.create_topic("orders", partitions=2)
        assert await b.dead_letters("orders") == []
        await b.publish("orders", b"bad", key=b"k", headers={"a": b"1"}, partition=1)
        (message,) = await b.receive("orders", group="workers")
        await message.reject("no such customer")
        await b.advance(0)
        (dead,) = await b.dead_letters("orders")
        assert (dead.topic, dead.key, dead.value, dead.headers["a"]) == ("orders.dlq", b"k", b"bad", b"1")
        assert (dead.reason, dead.error, dead.group) == ("rejected", "no such customer", "workers")
        assert (dead.source, dead.attempts, dead.died) == ((1, 0), 1, START_MS)
        assert await b.topics() == ["orders", "orders.dlq"]
        assert await b.receive("orders") == []


@in_loop
async def test_receipts_that_cannot_be_used_say_why() -> None:
    async with broker() as b:
        await b.create_topic("orders", lease_ms=10_000)
        await b.publish_many("orders", [b"1", b"2", b"3"])
        one, two, three = await b.receive("orders", consumer="w1")
        await one.ack()
        with pytest.raises(ReceiptRepeated, match="orders/0/0"):
            await one.ack()
        await b.advance("11s")
        assert len(await b.receive("orders", consumer="w2")) == 2
        with pytest.raises(ReceiptExpired, match="orders/0/1"):
            await two.ack()
        await b.delete_topic("orders")
        with pytest.raises(ReceiptUnknown, match="orders/0/2"):
            await three.nack()


@in_loop
async def test_a_receive_that_waits_is_answered_by_a_publish() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        waiting = asyncio.ensure_future(b.receive("orders", wait="1h"))
        await b.advance("10m")
        assert not waiting.done()
        await b.publish("orders", b"hello")
        assert values(await waiting) == [b"hello"]


@in_loop
async def test_a_receive_that_is_cancelled_takes_nothing() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        waiting = asyncio.ensure_future(b.receive("orders", wait="1h", consumer="gone"))
        await b.advance(0)
        waiting.cancel()
        await b.publish("orders", b"hello")
        assert values(await b.receive("orders", consumer="here")) == [b"hello"]
        with pytest.raises(asyncio.CancelledError):
            await waiting


@in_loop
async def test_messages_are_spread_over_partitions_and_read_back_as_a_stream() -> None:
    async with broker() as b:
        await b.create_topic("orders", partitions=3)
        sent = await b.publish_many("orders", [b"a", {"value": b"b", "partition": 2}, {"value": None, "key": b"k"}])
        assert sent[1].partition == 2
        records = await b.read("orders")
        assert {record.value for record in records} == {b"a", b"b", None}
        assert [(one.partition, one.offset) for one in records] == sorted((one.partition, one.offset) for one in sent)
        assert await b.read("orders", partition=2) == [one for one in records if one.partition == 2]
        assert await b.read("orders", partition=2, offset=1) == [
            one for one in records if (one.partition, one.offset) >= (2, 1)
        ]
        assert await b.read("orders", partition=2, offset=9) == []


@in_loop
async def test_lag_tells_ready_leased_waiting_and_the_oldest() -> None:
    async with broker() as b:
        await b.create_topic("orders", partitions=2)
        with pytest.raises(Refused, match="workers"):
            await b.lag("orders", "workers")
        await b.publish_many("orders", [{"value": b"%d" % number, "partition": number % 2} for number in range(6)])
        await b.advance("5s")
        messages = await b.receive("orders", group="workers", max_messages=3, lease="1h")
        await messages[0].nack(delay="1h")
        lag = await b.lag("orders", "workers")
        assert (lag.ready, lag.leased, lag.waiting, lag.dead, lag.oldest_age_ms) == (3, 2, 1, 0, 5000)
        for message in messages[1:]:
            await message.ack()
        await b.advance("2h")
        for message in await b.receive("orders", group="workers"):
            await message.ack()
        lag = await b.lag("orders", "workers")
        assert (lag.ready, lag.leased, lag.waiting, lag.dead, lag.oldest_age_ms) == (0, 0, 0, 0, None)


@in_loop
async def test_what_is_delayed_can_be_seen_cancelled_and_moved() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        early, late, moved = await b.publish_many(
            "orders",
            [
                {"value": b"early", "key": b"k", "headers": {"a": b"1"}, "delay": "10m"},
                {"value": b"late", "at": "2026-01-02T00:00:00Z"},
                {"value": b"moved", "delay": "2h"},
            ],
        )
        found = {each.value: each for each in await b.scheduled("orders")}
        assert {value: each.due - START_MS for value, each in found.items()} == {
            b"early": 600_000,
            b"late": 24 * HOUR_MS,
            b"moved": 2 * HOUR_MS,
        }
        first = found[b"early"]
        assert (first.key, first.headers, first.published) == (b"k", {"a": b"1"}, START_MS)
        assert (first.topic, first.partition, first.offset) == ("orders", early.partition, early.offset)
        await b.cancel("orders", late.partition, late.offset)
        with pytest.raises(Refused):
            await b.cancel("orders", late.partition, late.offset)
        await b.reschedule("orders", moved.partition, moved.offset, delay="5m")
        with pytest.raises(InvalidWish):
            await b.reschedule("orders", moved.partition, moved.offset)
        await b.advance("3 days")
        assert [(one.value, one.timestamp - START_MS) for one in await b.read("orders")] == [
            (b"moved", 300_000),
            (b"early", 600_000),
        ]
        assert await b.scheduled("orders") == []


@in_loop
async def test_what_expires_is_a_dead_letter() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.publish("orders", b"short", ttl="1h")
        await b.publish("orders", b"long", ttl="3h")
        assert await b.receive("orders", max_messages=0) == []
        await b.advance("2h")
        assert values(await b.receive("orders")) == [b"long"]
        await b.advance(0)
        (dead,) = await b.dead_letters("orders")
        assert (dead.value, dead.reason) == (b"short", "expired")


@in_loop
async def test_what_cannot_be_is_refused_by_the_call_that_asked() -> None:
    async with broker() as b:
        for call in (
            lambda: b.publish("nowhere", b"x"),
            lambda: b.receive("nowhere"),
            lambda: b.read("nowhere"),
            lambda: b.delete_topic("nowhere"),
        ):
            with pytest.raises(Refused, match="nowhere") as refusal:
                await call()
            assert refusal.value.code is Code.UNKNOWN_TOPIC_OR_PARTITION
        await b.create_topic("orders")
        with pytest.raises(Refused, match="already exists"):
            await b.create_topic("orders")
        with pytest.raises(Refused, match="lease"):
            await b.create_topic("other", lease_ms=0)
        with pytest.raises(InvalidWish, match="critical"):
            await b.publish("orders", b"x", priority="urgent")
        with pytest.raises(InvalidMoment):
            await b.publish("orders", b"x", delay="soon")
        with pytest.raises(InvalidWish, match="contradict"):
            await b.publish("orders", b"x", delay="1h", at="2026-01-02T00:00:00Z")
        with pytest.raises(GoQueueError, match="partition"):
            await b.publish("orders", b"x", partition=1)
        with pytest.raises(Refused):
            await b.publish("orders", "text")  # type: ignore[arg-type]
        assert await b.read("orders") == []


@in_loop
async def test_the_rest_of_the_broker_can_be_asked() -> None:
    async with broker() as b:
        await b.create_topic("orders")
        await b.ask(lambda done: b.broker.topics.submit(AddPartitions("orders", 4), done))
        assert b.broker.topics.image.topics["orders"].partitions == 4
        await b.ask(lambda done: b.broker.queues.set_options("workers", {"lease.ms": "500"}, done))
        await b.publish("orders", b"x", priority=Lane.LOW)
        (message,) = await b.receive("orders", group="workers")
        assert (message.lease_until - START_MS, message.priority) == (500, "low")


@in_loop
async def test_a_broker_starts_in_no_time() -> None:
    async with broker() as b:  # the first one pays for imports
        await b.create_topic("orders")
    with Steps() as steps:
        b = broker()
        await b.open()
    await b.close()
    assert steps.count < START_STEPS_MAX


@in_loop
async def test_a_closed_broker_says_so() -> None:
    b = broker()
    await b.open()
    await b.open()
    await b.close()
    await b.close()
    with pytest.raises(BrokerDown, match="closed"):
        await b.topics()
    with pytest.raises(ValueError, match="virtual"):
        broker(clock="sun")  # type: ignore[arg-type]


@in_loop
async def test_lag_of_a_group_in_all_its_topics() -> None:
    async with broker() as b:
        await b.create_topic("orders", partitions=2)
        await b.create_topic("bills")
        await b.publish_many("orders", [{"value": b"x", "partition": number % 2} for number in range(6)])
        await b.publish("bills", b"y")
        (message, *_) = await b.receive("orders", partition=0)
        await message.ack()
        await b.receive("bills", max_messages=1)
        found = await b.group_lag("workers")
        assert (found.lag, found.type, found.state) == (3, "share", "Empty")
        assert [(each.topic, each.partition, each.settled, each.lag) for each in found.partitions] == [
            ("bills", 0, 0, 1),
            ("orders", 0, 1, 2),
        ]
        queue = found.partitions[0].queue
        assert queue is not None
        assert sum(queue.leased) == 1
        with pytest.raises(Refused, match="no group"):
            await b.group_lag("none")

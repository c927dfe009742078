"""Publishing: every wish of a message is granted, one by one and in streams."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from goqueue.broker.topics.auto_creation import AT_ONCE_MAX
from goqueue.client.errors import TimedOut
from goqueue.client.grpc import GrpcClient
from goqueue.client.grpc.client import new_request
from goqueue.wire.grpc.common_pb2 import (
    ACK_MODE_ALL,
    ACK_MODE_LEADER,
    ACK_MODE_NONE,
    DURABILITY_DISK,
    DURABILITY_OS,
    DURABILITY_UNSPECIFIED,
)
from goqueue.wire.grpc.publish_pb2 import PublishRequest
from goqueue.wire.grpc.topic_pb2 import ListTopicsRequest
from goqueue.wire.grpc.transaction_pb2 import InitProducerRequest
from tests.unit.doors.grpc.door_client import Door, next_of, served

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND


@served
async def test_headers_of_a_publish_are_kept(door: Door) -> None:
    await door.topic()
    await door.client.publish("orders", b"v", key=b"k", headers={"colour": "grün", "raw": b"\xff\x00"})
    (message,) = await door.read()
    assert (message.key, message.value) == (b"k", b"v")
    assert dict(message.headers) == {"colour": "grün"}
    assert dict(message.binary_headers) == {"raw": b"\xff\x00"}


@served
async def test_the_partition_of_a_publish_is_kept(door: Door) -> None:
    await door.topic(partitions=3)
    placed = [await door.client.publish("orders", b"%d" % number, partition=number) for number in (2, 0, 1, 2)]
    assert [(each.partition, each.offset) for each in placed] == [(2, 0), (0, 0), (1, 0), (2, 1)]
    assert {(each.partition, each.value) for each in await door.read()} == {(2, b"2"), (0, b"0"), (1, b"1")}
    await door.refused(
        door.client.publish("orders", b"x", partition=3), NOT_FOUND, "PARTITION_NOT_FOUND", "partition 3"
    )


@served
async def test_critical_is_a_priority_and_not_the_absence_of_one(door: Door) -> None:
    await door.topic()
    for priority in ("background", None, "critical"):
        await door.client.publish("orders", str(priority).encode(), priority=priority)
    assert [each.priority for each in await door.read()] == [4, 2, 0]
    async with door.client.subscribe("workers", ["orders"], max_messages=1) as subscription:
        found = []
        async for message in subscription:
            found.append(message.value)
            await door.client.ack(message)
            if len(found) == 3:
                break
    assert found[0] == b"critical"


@served
async def test_a_delay_keeps_the_priority(door: Door) -> None:
    await door.topic()
    await door.client.publish("orders", b"later", delay="300ms", priority="high")
    await door.client.publish("orders", b"at", deliver_at_ms=door.b.now_ms + 200, priority="low")
    assert await door.read() == []
    async with door.client.subscribe("workers", ["orders"]) as subscription:
        events = subscription.events()
        found: list[tuple[bytes, int]] = []
        while len(found) < 2:
            batch = await next_of(events, "messages")
            found += [(each.value, each.priority) for each in batch.messages]
    assert sorted(found) == [(b"at", 3), (b"later", 1)]


@served
async def test_ack_modes_differ(door: Door) -> None:
    """Who waits for nothing is told nothing but what is wrong at once; the others wait for the disk."""
    await door.topic()
    door.b.slow_disk("200ms")
    fast = await door.client.publish("orders", b"none", ack_mode=ACK_MODE_NONE)
    assert fast.offset == -1
    slow = [await door.client.publish("orders", b"x", ack_mode=mode) for mode in (ACK_MODE_LEADER, ACK_MODE_ALL)]
    assert [each.offset for each in slow] == [1, 2]
    await door.refused(door.client.publish("no/ne", b"", ack_mode=ACK_MODE_NONE), INVALID, "INVALID_TOPIC")
    assert [each.value for each in await door.read()] == [b"none", b"x", b"x"]


@served
async def test_a_producer_with_a_sequence_stores_once_what_it_sends_twice(door: Door) -> None:
    await door.topic()
    who = await door.ask(InitProducerRequest())
    fields = {"producer_id": who.producer_id, "producer_epoch": who.epoch}
    first = [await door.client.publish("orders", b"%d" % n, sequence=n, **fields) for n in (0, 1)]
    again = await door.client.publish("orders", b"1", sequence=1, **fields)
    assert (again.offset, again.duplicate, first[1].duplicate) == (first[1].offset, True, False)
    assert [each.value for each in await door.read()] == [b"0", b"1"]
    gap = door.client.publish("orders", b"9", sequence=9, **fields)
    await door.refused(gap, grpc.StatusCode.FAILED_PRECONDITION, "OUT_OF_ORDER_SEQUENCE")
    stranger = door.client.publish("orders", b"x", producer_id=987_654, sequence=0)
    await door.refused(stranger, NOT_FOUND, "PRODUCER_NOT_FOUND")


@served
async def test_what_cannot_be_is_refused_with_words(door: Door) -> None:
    await door.topic()
    for request, code, words in (
        (PublishRequest(topic="orders", priority=5), "INVALID_MESSAGE", "priority is 5"),
        (PublishRequest(topic="orders", deliver_at=Timestamp(seconds=-1)), "INVALID_ARGUMENT", "deliver_at"),
        (PublishRequest(topic="orders", ack_mode=77), "INVALID_ARGUMENT", "ack_mode 77"),  # type: ignore[arg-type]
        (PublishRequest(topic="orders", producer_id=1, sequence=2**40), "INVALID_ARGUMENT", "sequence"),
    ):
        await door.refused(door.ask(request), INVALID, code, words)
    large = door.client.publish("orders", bytes(2 * 1024 * 1024))
    await door.refused(large, grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")
    assert await door.read() == []


@served
async def test_a_stream_answers_every_message_and_survives_bad_ones(door: Door) -> None:
    await door.topic(partitions=2)

    async def messages() -> AsyncIterator[PublishRequest]:
        for number in range(500):
            yield new_request("orders" if number % 100 else "no/ne", b"%d" % number, partition=number % 2)

    answers = {int(each.correlation_id): each async for each in door.client.publish_stream(messages())}
    assert set(answers) == set(range(500))
    bad = {number for number, each in answers.items() if each.HasField("error")}
    assert bad == {0, 100, 200, 300, 400}
    stored = {(each.partition, each.offset): each.value for each in await door.read()}
    assert stored == {(each.partition, each.offset): b"%d" % n for n, each in answers.items() if n not in bad}


@served
async def test_a_batch_is_answered_as_one(door: Door) -> None:
    await door.topic()

    async def batches() -> AsyncIterator[list[PublishRequest]]:
        for start in (0, 100):
            yield [new_request("orders", b"%d" % (start + n), priority=9 if n == 7 else None) for n in range(100)]

    answers = [each async for each in door.client.publish_stream(batches())]
    assert sorted(each.correlation_id for each in answers) == ["0", "1"]
    assert [len(each.batch) for each in answers] == [100, 100]
    assert [[n for n, one in enumerate(each.batch) if one.HasField("error")] for each in answers] == [[7], [7]]
    wanted = {b"%d" % n for n in range(200)} - {b"7", b"107"}
    assert {each.value for each in await door.read()} == wanted


@served
async def test_a_stream_reads_no_further_than_it_can_answer(door: Door) -> None:
    """Its client is kept waiting, and nothing piles up here."""
    await door.topic()
    door.b.slow_disk("1h")
    sent = 0

    async def messages() -> AsyncIterator[PublishRequest]:
        nonlocal sent
        for _ in range(100_000):
            sent += 1
            yield new_request("orders", bytes(1000))

    async def drain() -> None:
        async for _ in door.client.publish_stream(messages()):
            pytest.fail("nothing is durable yet")

    task = asyncio.ensure_future(drain())
    before = -1
    while before != sent or sent < 1000:
        before = sent
        await asyncio.wait([task], timeout=0.5)
    assert sent < 10_000
    task.cancel()
    await asyncio.wait([task])


@served
async def test_a_deadline_ends_a_call_that_waits_for_the_disk(door: Door) -> None:
    await door.topic()
    door.b.slow_disk("1h")
    async with GrpcClient(door.address, timeout_s=0.3) as client:
        with pytest.raises(TimedOut):
            await client.publish("orders", b"x")
    assert (await door.ask(ListTopicsRequest())).names == ["orders"]


@served
async def test_large_batches_are_not_taken_without_end(door: Door) -> None:
    """So many bytes may be unanswered; then the client waits."""
    await door.topic()
    door.b.slow_disk("1h")
    sent = 0

    async def batches() -> AsyncIterator[list[PublishRequest]]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield [new_request("orders", bytes(500_000))] * 2

    async def drain() -> None:
        async for _ in door.client.publish_stream(batches()):
            pytest.fail("nothing is durable yet")

    task = asyncio.ensure_future(drain())
    before = -1
    while before != sent or sent < 16:
        before = sent
        await asyncio.wait([task], timeout=0.5)
    assert sent < 100
    task.cancel()
    await asyncio.wait([task])


@served
async def test_an_answer_says_which_durability_was_reached(door: Door) -> None:
    for name, reached in (("disk", DURABILITY_DISK), ("os", DURABILITY_OS)):
        await door.b.create_topic(name, durability=name)
        assert (await door.client.publish(name, b"x")).durability == reached

        async def messages(topic: str = name) -> AsyncIterator[PublishRequest]:
            yield new_request(topic, b"x")

        (answer,) = [each async for each in door.client.publish_stream(messages())]
        assert answer.durability == reached
    unwatched = await door.client.publish("disk", b"x", ack_mode=ACK_MODE_NONE)
    assert unwatched.durability == DURABILITY_UNSPECIFIED


@served
async def test_publishing_makes_topics_that_are_not_there(door: Door) -> None:
    assert (await door.client.publish("first", b"x")).offset == 0

    async def messages() -> AsyncIterator[list[PublishRequest]]:
        for number in range(3):
            yield [new_request(name, b"%d" % number, partition=0) for name in ("second", "third")]

    answers = [each async for each in door.client.publish_stream(messages())]
    assert [[one.offset for one in each.batch] for each in answers] == [[0, 0], [1, 1], [2, 2]]
    assert await door.b.topics() == ["first", "second", "third"]
    assert [each.value for each in await door.read("second")] == [b"0", b"1", b"2"]


@served
async def test_a_topic_that_may_not_be_made_is_refused_with_the_reason(door: Door) -> None:
    await door.refused(door.client.publish("@metadata", b"x"), INVALID, "INVALID_TOPIC")
    assert await door.b.topics() == []


@served
async def test_one_request_makes_a_few_topics_at_most(door: Door) -> None:
    async def messages() -> AsyncIterator[list[PublishRequest]]:
        yield [new_request(f"topic-{number}", b"x") for number in range(AT_ONCE_MAX + 5)]

    (answer,) = [each async for each in door.client.publish_stream(messages())]
    assert [each.HasField("error") for each in answer.batch] == [False] * AT_ONCE_MAX + [True] * 5
    assert len(await door.b.topics()) == AT_ONCE_MAX

"""Reading as a stream: from anywhere, as it comes, and no further when nobody waits."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from goqueue.client.grpc.calls import error_of
from goqueue.client.grpc.client import duration_of, timestamp_of
from goqueue.wire.grpc import consume_pb2 as pb
from goqueue.wire.grpc.topic_pb2 import DeleteTopicRequest
from tests.unit.doors.grpc.door_client import Door, next_of, served

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND


@served
async def test_a_start_by_timestamp_begins_there(door: Door) -> None:
    await door.topic()
    await door.client.publish("orders", b"before")

    def pause(done: Callable[[None], None]) -> None:
        door.b.broker.clock.call_after(20, lambda: done(None))

    await door.b.ask(pause)
    moment_ms = door.b.now_ms
    await door.client.publish("orders", b"after")
    assert [each.value for each in await door.read(start=moment_ms)] == [b"after"]
    missing = pb.ConsumeRequest(topic="orders", start_position=pb.CONSUME_START_POSITION_TIMESTAMP)
    await door.refused(_all(door, missing), INVALID, "INVALID_ARGUMENT", "start_timestamp")


@served
async def test_starts_by_offset_and_latest(door: Door) -> None:
    await door.topic(partitions=2)
    for number in range(4):
        await door.client.publish("orders", b"%d" % number, partition=1)
    by_offset: dict[str, Any] = {
        "start_position": pb.CONSUME_START_POSITION_OFFSET,
        "start_offset": 2,
        "partitions": [1],
    }
    assert [each.value for each in await door.read(**by_offset)] == [b"2", b"3"]
    assert await door.read(start="latest") == []
    beyond = pb.ConsumeRequest(topic="orders", **(by_offset | {"start_offset": 9}))
    await door.refused(_all(door, beyond), grpc.StatusCode.OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE")


async def _all(door: Door, request: pb.ConsumeRequest) -> list[pb.ConsumeResponse]:
    try:
        return [each async for each in door.client._calls.stream("Consume", request)]
    except grpc.aio.AioRpcError as failure:
        raise error_of(failure) from None


@served
async def test_the_high_watermark_is_that_of_the_partition(door: Door) -> None:
    await door.topic()
    for number in range(5):
        await door.client.publish("orders", b"%d" % number)
    request = pb.ConsumeRequest(topic="orders", max_messages=2, until_end=True)
    answers = await _all(door, request)
    assert [[each.offset for each in answer.messages.messages] for answer in answers] == [[0, 1], [2, 3], [4]]
    assert {answer.messages.high_watermark for answer in answers} == {5}


@served
async def test_a_stream_waits_for_what_comes_and_beats_meanwhile(door: Door) -> None:
    await door.topic()
    request = pb.ConsumeRequest(topic="orders", max_wait=duration_of("50ms"))
    events = aiter(door.client._calls.stream("Consume", request))
    assert (await next_of(events, "heartbeat")).timestamp.seconds > 0
    await door.client.publish("orders", b"new")
    assert [each.value for each in (await next_of(events, "messages")).messages] == [b"new"]


@served
async def test_a_stream_ends_when_its_topic_is_deleted(door: Door) -> None:
    await door.topic()
    reading = asyncio.ensure_future(_all(door, pb.ConsumeRequest(topic="orders")))
    await door.client.publish("orders", b"x")
    await door.ask(DeleteTopicRequest(name="orders"))
    await door.refused(reading, NOT_FOUND, "TOPIC_NOT_FOUND")


@served
async def test_a_large_answer_is_sent_in_portions(door: Door) -> None:
    await door.topic()
    for _ in range(8):
        await door.client.publish("orders", bytes(900_000))
    answers = await _all(door, pb.ConsumeRequest(topic="orders", until_end=True, max_bytes=2**31 - 1))
    assert sum(len(answer.messages.messages) for answer in answers) == 8
    assert max(answer.ByteSize() for answer in answers) < 4 * 1024 * 1024


@served
async def test_bad_reads_are_refused(door: Door) -> None:
    await door.topic()
    for request, status, code in (
        (pb.ConsumeRequest(topic="none"), NOT_FOUND, "TOPIC_NOT_FOUND"),
        (pb.ConsumeRequest(), INVALID, "INVALID_ARGUMENT"),
        (pb.ConsumeRequest(topic="orders", partitions=[5]), NOT_FOUND, "PARTITION_NOT_FOUND"),
        (pb.ConsumeRequest(topic="orders", partitions=[-1]), NOT_FOUND, "PARTITION_NOT_FOUND"),
        (pb.ConsumeRequest(topic="orders", max_messages=-1), INVALID, "INVALID_ARGUMENT"),
        (pb.ConsumeRequest(topic="orders", max_messages=2**31 - 1), INVALID, "INVALID_ARGUMENT"),
        (pb.ConsumeRequest(topic="orders", start_position=9), INVALID, "INVALID_ARGUMENT"),  # type: ignore[arg-type]
        (
            pb.ConsumeRequest(
                topic="orders",
                start_position=pb.CONSUME_START_POSITION_TIMESTAMP,
                start_timestamp=timestamp_of(-5),
            ),
            INVALID,
            "INVALID_ARGUMENT",
        ),
    ):
        await door.refused(_all(door, request), status, code)


@served
async def test_who_does_not_read_holds_nobody_up_and_loses_nothing(door: Door) -> None:
    await door.topic()
    slow = door.client._calls.stream("Consume", pb.ConsumeRequest(topic="orders"))
    for number in range(30):
        await door.client.publish("orders", b"%d" % number + bytes(900_000))
    assert [each.offset for each in await door.read()] == list(range(30))
    found: list[int] = []
    async for event in slow:
        found += [each.offset for each in event.messages.messages]
        if len(found) == 30:
            break
    assert found == list(range(30))

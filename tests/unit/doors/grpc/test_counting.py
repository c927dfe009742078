"""What a scrape tells of gRPC calls."""

from typing import Any

import grpc
import pytest
from grpc import aio

from goqueue.client.errors import TimedOut
from goqueue.client.grpc import GrpcClient
from goqueue.wire.grpc.topic_pb2 import DescribeTopicRequest
from tests.unit.doors.grpc.door_client import Door, served

PUBLISH, CONSUME = "goqueue.v1.PublishService/Publish", "goqueue.v1.ConsumeService/Consume"


def ended(door: Door, method: str) -> dict[str, int]:
    calls = door.b.broker.metrics.meters.grpc_calls
    return {code: number for (name, code), number in calls.items() if name == method}


@served
async def test_calls_are_counted_by_method_and_by_how_they_ended(door: Door) -> None:
    await door.topic()
    for _ in range(3):
        await door.client.publish("orders", b"x")
    await door.refused(
        door.client.publish("orders", b"x", partition=9), grpc.StatusCode.NOT_FOUND, "PARTITION_NOT_FOUND"
    )
    channel: Any
    async with aio.insecure_channel(door.address) as channel:
        with pytest.raises(aio.AioRpcError):
            await channel.unary_unary(f"/{PUBLISH}")(b"\xff\xff")
    # A refusal reaches its client from inside the call, before the call has ended here.
    await door.door.close()
    assert ended(door, PUBLISH) == {"OK": 3, "NOT_FOUND": 1, "INVALID_ARGUMENT": 1}
    assert (door.door.facts().requests, door.door.facts().malformed) == (6, 1)


@served
async def test_open_streams_and_their_connections_are_seen(door: Door) -> None:
    await door.topic()
    await door.client.publish("orders", b"x")
    async with GrpcClient(door.address) as other:
        streams = [door.client.consume("orders"), door.client.consume("orders"), other.consume("orders")]
        for stream in streams:
            await anext(stream)
        facts = door.door.facts()
        assert facts.open_calls[CONSUME] == 3
        assert facts.connections == 2
        await streams[2].aclose()  # type: ignore[attr-defined]
        while door.door.facts().open_calls[CONSUME] == 3:
            await door.ask(DescribeTopicRequest(name="orders"))
        assert ended(door, CONSUME) == {"CANCELLED": 1}
        assert door.door.facts().connections == 1


@served
async def test_what_takes_too_long_for_its_client_has_ended_too(door: Door) -> None:
    await door.topic()
    door.b.slow_disk("1h")
    async with GrpcClient(door.address, timeout_s=0.1) as hasty:
        with pytest.raises(TimedOut):
            await hasty.publish("orders", b"x")
    while ended(door, PUBLISH) == {}:
        await door.ask(DescribeTopicRequest(name="orders"))
    assert ended(door, PUBLISH) == {"CANCELLED": 1}

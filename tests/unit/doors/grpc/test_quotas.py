"""Quotas over gRPC: a call is refused with when to come back, a stream is slowed down and loses nothing."""

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from goqueue.doors.grpc.errors import DETAILS
from goqueue.wire.grpc.common_pb2 import Error
from goqueue.wire.grpc.publish_pb2 import PublishRequest, PublishResponse
from tests.unit.doors.grpc.door_client import Door, served


async def limit(door: Door, **limits: float) -> None:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    door.b.broker.accounts.set_quota("ANONYMOUS", None, limits, done.set_result)
    assert await done is None


@served
async def test_a_call_beyond_the_quota_says_when_to_come_back(door: Door) -> None:
    await door.topic()
    await limit(door, producer_byte_rate=1000.0)
    async with aio.insecure_channel(door.address) as channel:
        publish = channel.unary_unary(
            "/goqueue.v1.PublishService/Publish",
            request_serializer=PublishRequest.SerializeToString,
            response_deserializer=PublishResponse.FromString,
        )
        await publish(PublishRequest(topic="orders", value=b"x" * 500_000))
        with pytest.raises(aio.AioRpcError) as refused:
            await publish(PublishRequest(topic="orders", value=b"y"))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        told = Status.FromString(dict(refused.value.trailing_metadata() or ())[DETAILS])
    ours, retry = Error(), RetryInfo()
    assert told.details[0].Unpack(ours)
    assert told.details[1].Unpack(retry)
    assert ours.details["reason"] == "THROTTLING_QUOTA_EXCEEDED"
    assert retry.retry_delay.seconds == ours.retry_after.seconds == 30, "nobody is sent away for longer"
    assert [each.value[:1] for each in await door.read()] == [b"x"]


@served
async def test_connections_of_an_address_are_known_by_their_first_call(door: Door) -> None:
    await door.topic()
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    host = door.address.rpartition(":")[0]
    door.b.broker.accounts.set_quota(None, None, {"connection_creation_rate": 0.001}, done.set_result, ip=host)
    assert await done is None
    codes = []
    for _ in range(3):
        async with aio.insecure_channel(door.address, (("grpc.use_local_subchannel_pool", 1),)) as channel:
            publish = channel.unary_unary(
                "/goqueue.v1.PublishService/Publish",
                request_serializer=PublishRequest.SerializeToString,
                response_deserializer=PublishResponse.FromString,
            )
            for _ in range(2):
                try:
                    await publish(PublishRequest(topic="orders", value=b"x"))
                    codes.append(grpc.StatusCode.OK)
                except aio.AioRpcError as error:
                    codes.append(error.code())
    assert codes == [grpc.StatusCode.OK] * 2 + [grpc.StatusCode.RESOURCE_EXHAUSTED] * 4
    assert len(await door.read()) == 2


@served
async def test_a_stream_is_slowed_down_and_brings_all(door: Door) -> None:
    await door.topic()
    for number in range(8):
        await door.b.publish("orders", b"%d" % number * 1000)
    await limit(door, consumer_byte_rate=100_000.0)
    assert [each.value[:1] for each in await door.read()] == [b"%d" % number for number in range(8)]
    await limit(door, consumer_byte_rate=5000.0)
    begun_s = door.b.broker.clock.monotonic_s()
    found = await door.read()
    assert [each.value for each in found] == [b"%d" % number * 1000 for number in range(8)]
    assert door.b.broker.clock.monotonic_s() - begun_s > 0.3
    assert door.b.broker.metrics.meters.throttles["consumer_byte_rate"] > 0

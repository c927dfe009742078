"""gRPC clients and the test's own calls meet in one broker, on the virtual clock too."""

import asyncio

import pytest

from goqueue.client.errors import ClientError
from goqueue.client.grpc import GrpcClient
from goqueue.testing import BrokerDown, broker
from goqueue.wire.grpc.topic_pb2 import ListTopicsRequest
from tests.unit.testing.loops import in_loop


@in_loop
async def test_what_a_grpc_client_publishes_comes_when_it_is_due() -> None:
    async with broker(grpc=True) as b, GrpcClient(b.grpc) as client:
        await b.create_topic("orders")
        await client.publish("orders", b"later", delay="1h")
        following = asyncio.ensure_future(anext(client.consume("orders")))
        await b.advance("59m")
        assert await b.read("orders") == []
        assert not following.done()
        await b.advance("1m")
        assert (await following).value == b"later"


@in_loop
async def test_a_grpc_member_and_the_test_work_on_one_queue() -> None:
    async with broker(grpc=True) as b, GrpcClient(b.grpc) as client:
        await b.create_topic("orders")
        await b.publish("orders", b"x")
        async with client.subscribe("workers", ["orders"]) as subscription:
            async for message in subscription:
                await client.ack(message)
                break
        assert (await b.lag("orders")).ready == 0


@in_loop
async def test_the_door_is_at_the_same_place_after_a_crash() -> None:
    async with broker(grpc=True, clock="real") as b, GrpcClient(b.grpc) as client:
        address = b.grpc
        await b.create_topic("orders")
        await client.publish("orders", b"1")
        b.slow_disk("1h")
        never = asyncio.ensure_future(client.publish("orders", b"lost"))
        while b.broker.topics.replica("orders", 0).log.end_offset < 2:
            await client.ask(ListTopicsRequest())
        await b.crash("power")
        with pytest.raises(ClientError):
            await never
        with pytest.raises(BrokerDown):
            _ = b.grpc
        await b.restart()
        b.slow_disk("0s")
        assert b.grpc == address
        await client.publish("orders", b"2")
        assert [record.value for record in await b.read("orders")] == [b"1", b"2"]


@in_loop
async def test_a_door_must_be_opened() -> None:
    async with broker() as b:
        with pytest.raises(BrokerDown, match="grpc=True"):
            _ = b.grpc

"""The door as a server: nonsense, limits, health, reflection, and a stop that does not wait for ever."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from goqueue.broker.gate import Gate
from goqueue.client.errors import Closed, ConnectionLost
from goqueue.client.grpc import GrpcClient, GrpcRefused
from goqueue.client.grpc.calls import METHODS
from goqueue.client.grpc.client import new_request
from goqueue.doors.grpc.door import GrpcDoor, GrpcLimits
from goqueue.testing import broker
from goqueue.wire.grpc import common_pb2
from goqueue.wire.grpc.health_pb2 import SERVING_STATUS_SERVING, HealthCheckRequest
from goqueue.wire.grpc.publish_pb2 import PublishRequest
from goqueue.wire.grpc.topic_pb2 import CreateTopicRequest, DescribeTopicRequest, ListTopicsRequest
from tests.unit.doors.grpc.door_client import FAR_S, Door, open_door, served

NONSENSE = (b"\xff\xff\xff", b"\x0a\x7f")
"""No protobuf, and a field that is cut off."""
NO_UTF_8 = b"\x0a\x02\xff\xfe"


@served
async def test_nonsense_is_the_mistake_of_who_sent_it(door: Door) -> None:
    channel: Any
    async with aio.insecure_channel(door.address) as channel:
        for method in METHODS.values():
            path = f"/{method.containing_service.full_name}/{method.name}"
            for data in NONSENSE:
                call: Any
                if method.client_streaming:
                    call = channel.stream_stream(path)()
                    await call.write(data)
                elif method.server_streaming:
                    call = channel.unary_stream(path)(data)
                else:
                    call = channel.unary_unary(path)(data)
                assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT, (path, data)
        with pytest.raises(aio.AioRpcError) as caught:
            await channel.unary_unary("/goqueue.v1.PublishService/Publish")(NO_UTF_8)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(aio.AioRpcError) as caught:
            await channel.unary_unary("/goqueue.v1.PublishService/Nothing")(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@served
async def test_an_error_has_a_code_as_a_detail(door: Door) -> None:
    with pytest.raises(GrpcRefused) as caught:
        await door.ask(DescribeTopicRequest(name="none"))
    assert caught.value.error.code == common_pb2.ERROR_CODE_TOPIC_NOT_FOUND
    assert "'none'" in caught.value.error.message


@served
async def test_a_fault_of_ours_says_nothing_of_its_inside(door: Door) -> None:
    broken = patch("goqueue.doors.grpc.publish.publish_all", None)
    with broken, pytest.raises(GrpcRefused, match="a fault of the node") as caught:
        await door.client.publish("orders", b"x")
    assert caught.value.status is grpc.StatusCode.INTERNAL


def test_messages_over_the_limit_are_refused() -> None:
    async def inside() -> None:
        async with asyncio.timeout(FAR_S), open_door(GrpcLimits(message_bytes_max=10_000)) as door:
            await door.topic()
            with pytest.raises(GrpcRefused) as caught:
                await door.client.publish("orders", bytes(20_000))
            assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
            await door.client.publish("orders", bytes(9_000))

    asyncio.run(inside())


def test_the_standard_health_service_answers_and_ends_with_the_node() -> None:
    async def inside() -> None:
        async with asyncio.timeout(FAR_S), open_door() as door, aio.insecure_channel(door.address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for service in ("", "goqueue.v1.PublishService", "grpc.health.v1.Health"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(aio.AioRpcError) as caught:
                await stub.Check(health_pb2.HealthCheckRequest(service="none"))
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND
            assert "goqueue.v1.AckService" in (await stub.List(health_pb2.HealthListRequest())).statuses
            own = await door.ask(HealthCheckRequest())
            assert own.status == SERVING_STATUS_SERVING
            watching = aiter(stub.Watch(health_pb2.HealthCheckRequest()))
            assert (await anext(watching)).status == health_pb2.HealthCheckResponse.SERVING
            await door.door.close()
            with pytest.raises(aio.AioRpcError) as ended:
                await anext(watching)
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE

    asyncio.run(inside())


@pytest.mark.parametrize("is_on", [True, False])
def test_reflection_is_there_when_it_is_switched_on(is_on: bool) -> None:
    async def ask(address: str) -> set[str]:
        async with aio.insecure_channel(address) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            wanted = [
                reflection_pb2.ServerReflectionRequest(list_services=""),
                reflection_pb2.ServerReflectionRequest(file_containing_symbol="goqueue.v1.PublishService"),
            ]
            services, file = [each async for each in stub.ServerReflectionInfo(iter(wanted))]
            described = FileDescriptorProto.FromString(file.file_descriptor_response.file_descriptor_proto[0])
            assert described.name == "goqueue/v1/publish.proto"
            return {each.name for each in services.list_services_response.service}

    async def inside() -> None:
        async with asyncio.timeout(FAR_S), open_door(reflection=is_on) as door:
            if is_on:
                assert {"goqueue.v1.ConsumeService", "grpc.health.v1.Health"} <= await ask(door.address)
                return
            async with aio.insecure_channel(door.address) as channel:
                call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
                assert await call.code() is grpc.StatusCode.UNIMPLEMENTED

    asyncio.run(inside())


@served
async def test_a_stop_ends_open_streams_in_time_and_answers_what_was_taken(door: Door) -> None:
    await door.topic()
    door.b.slow_disk("100ms")
    sent = asyncio.Event()

    async def messages() -> AsyncIterator[PublishRequest]:
        for number in range(10):
            yield new_request("orders", b"%d" % number)
        sent.set()
        await asyncio.get_running_loop().create_future()

    async def publish() -> list[int]:
        answers: list[int] = []

        async def drain() -> None:
            async for answer in door.client.publish_stream(messages()):
                answers.append(answer.offset)  # noqa: PERF401  # what came before the error counts

        with pytest.raises(GrpcRefused, match="the node stops") as caught:
            await drain()
        assert caught.value.status is grpc.StatusCode.UNAVAILABLE
        return answers

    async def subscribe() -> None:
        async with door.client.subscribe("workers", ["orders"]) as subscription:
            with pytest.raises(GrpcRefused, match="the node stops"):
                async for _ in subscription:
                    pass

    async def consume() -> None:
        with pytest.raises(GrpcRefused, match="the node stops"):
            async for _ in door.client.consume("orders"):
                pass

    publishing = asyncio.ensure_future(publish())
    tasks = [asyncio.ensure_future(each) for each in (subscribe(), consume())]
    await sent.wait()
    while (await door.read()) == []:
        await door.client.ask(ListTopicsRequest())
    began = asyncio.get_running_loop().time()
    await door.door.close()
    await door.door.close()
    assert asyncio.get_running_loop().time() - began < door.door.limits.drain_s_max
    await asyncio.gather(*tasks)
    answers = await publishing
    assert answers == list(range(len(answers)))
    with pytest.raises(ConnectionLost):
        await GrpcClient(door.address, attempts_max=1, timeout_s=5).ask(ListTopicsRequest())


def test_a_port_that_is_taken_is_not_shared() -> None:
    async def inside() -> None:
        async with asyncio.timeout(FAR_S), open_door() as door, broker(clock="real") as other:
            host, _, port = door.address.rpartition(":")
            with pytest.raises(OSError, match="in use"):
                await GrpcDoor(Gate(other.broker)).open(host, int(port))

    asyncio.run(inside())


class Callers:
    """Eight clients that call on and on, each on its own connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._wanted = 0
        self._has_wanted = asyncio.Event()
        self.is_over = False
        self.answered = 0
        self.errors: list[ConnectionLost | GrpcRefused] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(self._call())

    async def _call(self) -> None:
        async with GrpcClient(self._address, attempts_max=1) as client:
            while not self.is_over:
                try:
                    await client.ask(ListTopicsRequest())
                except (ConnectionLost, GrpcRefused) as error:
                    self.errors.append(error)
                else:
                    self.answered += 1
                if self.answered >= self._wanted:
                    self._has_wanted.set()

    async def more(self, count: int) -> None:
        self._wanted = self.answered + count
        self._has_wanted.clear()
        await self._has_wanted.wait()


def test_whoever_calls_while_the_node_stops_is_answered_or_told_to_try_again() -> None:
    """grpc's own stop tells CANCELLED to calls that have just come, which no library makes again."""

    async def inside() -> list[ConnectionLost | GrpcRefused]:
        async with asyncio.timeout(FAR_S), broker(clock="real") as b, asyncio.TaskGroup() as tasks:
            door = GrpcDoor(Gate(b.broker))
            host, port = await door.open("127.0.0.1", 0)
            callers = Callers(f"{host}:{port}")
            calling = tasks.create_task(callers.run())
            for _ in range(5):
                await callers.more(50)
                await door.close()
                door = GrpcDoor(Gate(b.broker))
                await door.open(host, port)
            callers.is_over = True
            await calling
            await door.close()
        return callers.errors

    errors = asyncio.run(inside())
    refused = [each for each in errors if isinstance(each, GrpcRefused)]
    assert {each.status for each in refused} <= {grpc.StatusCode.UNAVAILABLE}
    assert len(refused) < len(errors), "connections ended"


def test_a_stop_costs_nobody_who_has_the_same_port_of_another_address_anything() -> None:
    async def inside() -> None:
        async with asyncio.timeout(FAR_S), broker(clock="real") as b:
            stops, stays = GrpcDoor(Gate(b.broker)), GrpcDoor(Gate(b.broker))
            _, port = await stops.open("127.0.0.1", 0)
            await stays.open("127.0.0.2", port)
            async with GrpcClient(f"127.0.0.2:{port}", attempts_max=1) as client:
                await client.ask(CreateTopicRequest(name="orders", partitions=1))
                waiting = asyncio.ensure_future(_first(client))
                while not stays.facts().open_calls.get("goqueue.v1.ConsumeService/Consume"):
                    await client.ask(ListTopicsRequest())
                await stops.close()
                await client.publish("orders", b"x")
                assert await waiting == b"x"
            await stays.close()

    asyncio.run(inside())


def test_a_safe_call_is_made_again_until_the_node_is_back() -> None:
    async def inside() -> None:
        async with asyncio.timeout(FAR_S), broker(clock="real") as b:
            first = GrpcDoor(Gate(b.broker))
            host, port = await first.open("127.0.0.1", 0)
            async with GrpcClient(f"{host}:{port}", attempts_max=50, channels=2) as client:
                assert (await client.ask(ListTopicsRequest())).names == []
                await first.close()
                asking = asyncio.ensure_future(client.ask(ListTopicsRequest(), is_safe=True))
                await asyncio.wait([asking], timeout=0.3)
                second = GrpcDoor(Gate(b.broker))
                await second.open(host, port)
                assert (await asking).names == []
                await second.close()

    asyncio.run(inside())


@served
async def test_whoever_waits_while_the_client_is_closed_is_told_so(door: Door) -> None:
    """grpc would let them think that they were cancelled."""
    await door.topic()
    door.b.slow_disk("1h")
    client = GrpcClient(door.address)
    waiting = [asyncio.ensure_future(client.publish("orders", b"x")), asyncio.ensure_future(_first(client))]
    while sum(door.door.facts().open_calls.values()) < len(waiting):
        await door.ask(ListTopicsRequest())
    await client.close()
    for each in waiting:
        with pytest.raises(Closed):
            await each


async def _first(client: GrpcClient) -> bytes:
    return (await anext(client.consume("orders"))).value

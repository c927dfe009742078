"""The gRPC door of the real process, asked by grpc's own client and by ours."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from goqueue.client.errors import ConnectionLost
from goqueue.client.grpc import GrpcClient, GrpcRefused
from goqueue.client.grpc.client import new_request
from goqueue.wire.grpc.common_pb2 import Message
from goqueue.wire.grpc.consume_pb2 import ConsumeResponse
from goqueue.wire.grpc.publish_pb2 import PublishRequest
from goqueue.wire.grpc.topic_pb2 import DescribeTopicRequest, ListTopicsRequest
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node

COUNT = 300


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await test()

    asyncio.run(inside())


@pytest.mark.smoke
def test_a_probe_of_health_is_answered(node: Node) -> None:
    with grpc.insecure_channel(node.grpc) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.smoke
def test_what_is_streamed_in_is_worked_off_by_two_members(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(4)
    values = {b"%d" % number for number in range(COUNT)}

    async def messages() -> AsyncIterator[PublishRequest]:
        for value in sorted(values):
            yield new_request(topic, value, key=value)

    async def test() -> None:
        async with GrpcClient(node.grpc, channels=2) as client:
            answers = [each async for each in client.publish_stream(messages())]
            assert not any(each.HasField("error") for each in answers)
            assert len({(each.partition, each.offset) for each in answers}) == COUNT
            assert {each.value async for each in client.consume(topic, until_end=True)} == values
            done: set[bytes] = set()
            finished = asyncio.Event()

            async def work() -> None:
                async with client.subscribe(group, [topic], max_messages=7) as subscription:
                    async for message in subscription:
                        await client.ack(message)
                        assert message.value not in done
                        done.add(message.value)
                        if done == values:
                            finished.set()

            workers = [asyncio.ensure_future(work()) for _ in range(2)]
            await asyncio.wait([asyncio.ensure_future(finished.wait()), *workers], return_when="FIRST_COMPLETED")
            for worker in workers:
                worker.cancel()
                with suppress(asyncio.CancelledError):
                    await worker
            assert done == values

    run(test)


def test_a_stop_with_open_streams_is_told_and_takes_no_longer_than_it_may(
    own_node: Node, make_topic: CreateTopic
) -> None:
    topic = make_topic(1)

    async def test() -> None:
        async with GrpcClient(own_node.grpc) as client, client.subscribe("workers", [topic]) as subscription:
            events = subscription.events()
            await anext(events)
            reading = asyncio.ensure_future(anext(events))
            await client.publish(topic, b"x")
            assert [each.value for each in (await _messages(reading, events))] == [b"x"]
            stopping = asyncio.to_thread(own_node.stop)
            stopped = asyncio.ensure_future(stopping)
            with pytest.raises(GrpcRefused, match="the node stops") as caught:
                async for _ in events:
                    pass
            assert caught.value.status is grpc.StatusCode.UNAVAILABLE
            await stopped

    run(test)
    own_node.start()

    async def again() -> None:
        async with GrpcClient(own_node.grpc) as client:
            told = await client.ask(DescribeTopicRequest(name=topic), is_safe=True)
            assert told.partitions[0].end_offset == 1

    run(again)


async def _messages(
    reading: "asyncio.Future[ConsumeResponse]", events: AsyncIterator[ConsumeResponse]
) -> list[Message]:
    event = await reading
    while not event.HasField("messages"):
        event = await anext(events)
    return list(event.messages.messages)


def test_a_crash_breaks_streams_and_loses_nothing_that_was_answered(own_node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(1)
    answered: set[bytes] = set()

    async def test() -> None:
        async def messages() -> AsyncIterator[PublishRequest]:
            number = 0
            while True:
                yield new_request(topic, b"%d" % number)
                number += 1

        async def publish_until_killed(client: GrpcClient) -> None:
            async for answer in client.publish_stream(messages()):
                answered.add(b"%d" % int(answer.correlation_id))
                if len(answered) == COUNT:
                    await asyncio.to_thread(own_node.kill)

        async with GrpcClient(own_node.grpc) as client:
            with pytest.raises(ConnectionLost):
                await publish_until_killed(client)

    run(test)
    own_node.start()

    async def again() -> None:
        async with GrpcClient(own_node.grpc) as client:
            stored = [each.value async for each in client.consume(topic, until_end=True)]
            assert len(stored) == len(set(stored))
            assert answered <= set(stored)
            assert topic in (await client.ask(ListTopicsRequest())).names

    run(again)


def test_a_client_that_is_gone_costs_only_itself(node: Node, make_topic: CreateTopic, group: str) -> None:
    """It subscribes, takes nothing in, and vanishes; the next gets what it held."""
    topic = make_topic(1)

    async def test() -> None:
        silent = GrpcClient(node.grpc)
        async with GrpcClient(node.grpc) as client:
            for number in range(3):
                await client.publish(topic, b"%d" % number)
            held = silent.subscribe(group, [topic], lease="1h")
            await held.__aenter__()
            async for _ in held:
                break
            await silent.close()
            async with client.subscribe(group, [topic]) as subscription:
                found = set()
                async for message in subscription:
                    found.add(message.value)
                    if len(found) == 3:
                        break
            assert found == {b"0", b"1", b"2"}

    run(test)

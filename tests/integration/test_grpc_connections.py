"""Connections of gRPC clients to the real process: how many calls one may have open, and how often it may ping."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.client.grpc import GrpcClient
from goqueue.wire.grpc.topic_pb2 import CreateTopicRequest, DescribeTopicRequest
from tests.integration.http2 import ENHANCE_YOUR_CALM, GOAWAY, MAX_CONCURRENT_STREAMS, PING, SETTINGS, Frame, Http2
from tests.integration.process import DEADLINE_S, Node

STREAMS_MAX = 2
PINGS = 10
"""Some of them too early is forgiven."""


@pytest.fixture
def narrow_node(tmp_path: Path) -> Iterator[Node]:
    running = Node(tmp_path, "--grpc-streams-max", str(STREAMS_MAX)).start()
    yield running
    running.clean_up()


def test_a_call_too_many_waits_until_another_ends(node: Node, narrow_node: Node) -> None:
    for each, streams_max in ((node, 100), (narrow_node, STREAMS_MAX)):
        with Http2(each.grpc) as connection:
            assert connection.next_of(SETTINGS).settings[MAX_CONCURRENT_STREAMS] == streams_max

    async def inside() -> None:
        async with asyncio.timeout(DEADLINE_S):
            async with GrpcClient(narrow_node.grpc) as client, GrpcClient(narrow_node.grpc) as other:
                await client.ask(CreateTopicRequest(name="orders", partitions=1))
                await client.publish("orders", b"x")
                streams = [client.consume("orders") for _ in range(STREAMS_MAX)]
                assert [(await anext(each)).value for each in streams] == [b"x"] * STREAMS_MAX
                waiting = asyncio.ensure_future(client.ask(DescribeTopicRequest(name="orders")))
                # Another connection has calls of its own.
                assert [(await anext(other.consume("orders"))).value for _ in range(STREAMS_MAX)] == [
                    b"x"
                ] * STREAMS_MAX
                assert not waiting.done()
                await streams.pop().aclose()  # type: ignore[attr-defined]
                assert (await waiting).partitions[0].end_offset == 1

    asyncio.run(inside())


def test_who_pings_too_often_is_sent_away(node: Node) -> None:
    with Http2(node.grpc) as connection:
        answers: list[Frame] = []
        while not answers or answers[-1].kind == PING:
            assert len(answers) < PINGS
            connection.send(PING, len(answers).to_bytes(8))
            answers.append(connection.next_of(PING, GOAWAY))
        assert answers[0].payload == bytes(8), "one ping is no offence"
        assert answers[-1].error == (ENHANCE_YOUR_CALM, b"too_many_pings")
        assert {each.kind for each in connection.frames()} <= {PING}, (
            "the last ping may still be answered; then it ends"
        )

"""How long a cluster is looked for: the sockets are real, the time is not."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from goqueue.client.clock import LoopClock
from goqueue.client.cluster import Cluster
from goqueue.client.connection import Limits
from goqueue.client.errors import ConnectionLost
from goqueue.wire.kafka.frames import read_request_header
from goqueue.wire.kafka.messages.metadata import MetadataResponse
from tests.unit.client.test_connection import hello, joined, read_frame
from tests.unit.testing.loops import in_loop


class Hurried(LoopClock):
    """Sleeps no time, and counts it."""

    def __init__(self, on_sleep: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.slept_s = 0.0
        self._on_sleep = on_sleep

    def time_s(self) -> float:
        return self.slept_s

    async def sleep(self, delay_s: float) -> None:
        self.slept_s += delay_s
        self._on_sleep()


def nobodys_port() -> socket.socket:
    """Bound, so that nobody else gets it, and not listened on."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


@pytest.mark.parametrize(("absent_s_max", "at_most_s"), [(3.0, 3.0), (None, 20.0)])
@in_loop
async def test_where_nobody_listens_is_told_after_the_patience_asked_for(
    absent_s_max: float | None, at_most_s: float
) -> None:
    with nobodys_port() as taken:
        clock = Hurried()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        cluster = Cluster(address, clock=clock, limits=Limits(request_s_max=20.0))
        with pytest.raises(ConnectionLost, match=f"cannot connect to {address}"):
            await cluster.start(absent_s_max)
        assert at_most_s - cluster.backoff.most_ms / 1000 <= clock.slept_s <= at_most_s


@in_loop
async def test_a_broker_that_comes_meanwhile_is_found() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hello(reader, writer)
        header = read_request_header(await read_frame(reader))
        writer.write(joined(MetadataResponse(), header.api_version, header.correlation_id))
        await reader.read()
        writer.close()

    with nobodys_port() as taken:
        server = await asyncio.start_server(serve, sock=taken, start_serving=False)
        clock = Hurried(lambda: asyncio.ensure_future(server.start_serving()))
        cluster = Cluster(f"127.0.0.1:{taken.getsockname()[1]}", clock=clock)
        await cluster.start(3.0)
        assert clock.slept_s > 0
        await cluster.close()
        server.close()

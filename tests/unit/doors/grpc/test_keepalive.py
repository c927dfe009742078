"""A peer that falls silent without a word: a cable that was pulled, a laptop that was closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from goqueue.client.errors import ConnectionLost
from goqueue.client.grpc import GrpcClient
from goqueue.doors.grpc.door import GrpcLimits
from tests.unit.doors.grpc.door_client import FAR_S, open_door

KEEPALIVE: dict[str, Any] = {"keepalive_ms": 100, "keepalive_timeout_ms": 1500}
"""Patient enough for a healthy peer on a slow machine."""


class Wire:
    """Between a client and a server, until it is cut: then both ends stay open and nothing comes through."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        self._open.clear()

    async def joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._target.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.ensure_future(self._carry(source, sink))
            self._tasks.add(task)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(65536):
                await self._open.wait()
                sink.write(piece)
                await sink.drain()
        except OSError:
            return
        finally:
            sink.close()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def wire_to(target: str) -> AsyncIterator[tuple[Wire, str]]:
    wire = Wire(target)
    server = await asyncio.start_server(wire.joined, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield wire, f"127.0.0.1:{port}"
    finally:
        server.close()
        await wire.end()


def test_what_a_silent_client_held_goes_to_others() -> None:
    """Its leases and its session would last for an hour: only the unanswered ping tells."""

    async def inside() -> None:
        async with (
            asyncio.timeout(FAR_S),
            open_door(GrpcLimits(**KEEPALIVE)) as door,
            wire_to(door.address) as (wire, address),
        ):
            await door.topic()
            await door.client.publish("orders", b"x")
            async with (
                GrpcClient(address) as silent,
                silent.subscribe("workers", ["orders"], lease="1h", session="30m") as held,
            ):
                assert (await anext(aiter(held))).value == b"x"
                wire.cut()
                async with door.client.subscribe("workers", ["orders"]) as subscription:
                    assert (await anext(aiter(subscription))).value == b"x"

    asyncio.run(inside())


def test_a_silent_server_is_lost_and_nobody_waits_for_ever() -> None:
    async def inside() -> None:
        async with asyncio.timeout(FAR_S), open_door() as door, wire_to(door.address) as (wire, address):
            await door.topic()
            await door.client.publish("orders", b"x")
            async with GrpcClient(address, **KEEPALIVE) as client:
                reading = client.consume("orders")
                assert (await anext(reading)).value == b"x"
                wire.cut()
                with pytest.raises(ConnectionLost):
                    await anext(reading)

    asyncio.run(inside())

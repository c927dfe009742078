"""The gRPC door in process: a real server on a port, a broker in memory behind it, real time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from goqueue.broker.gate import Gate
from goqueue.client.grpc import GrpcClient, GrpcRefused
from goqueue.doors.grpc.door import GrpcDoor, GrpcLimits
from goqueue.testing import MemoryBroker, broker
from goqueue.wire.grpc import common_pb2
from goqueue.wire.grpc.consume_pb2 import ConsumeResponse
from goqueue.wire.grpc.topic_pb2 import CreateTopicRequest

FAR_S = 30.0
"""A slow machine is not a failure."""


class Door:
    def __init__(self, b: MemoryBroker, door: GrpcDoor, address: str, client: GrpcClient) -> None:
        self.b = b
        self.door = door
        self.address = address
        self.client = client

    async def ask(self, request: Message) -> Any:
        return await self.client.ask(request)

    async def refused(
        self, asked: Awaitable[object], status: grpc.StatusCode, code: str, words: str = ""
    ) -> common_pb2.Error:
        with pytest.raises(GrpcRefused, match=words or None) as caught:
            await asked
        assert (caught.value.status, caught.value.code) == (status, code), caught.value.error
        return caught.value.error

    async def topic(self, name: str = "orders", partitions: int = 1, **options: str) -> str:
        await self.ask(CreateTopicRequest(name=name, partitions=partitions, options=options))
        return name

    async def read(self, topic: str = "orders", **fields: Any) -> list[common_pb2.Message]:
        return [each async for each in self.client.consume(topic, until_end=True, **fields)]


@asynccontextmanager
async def open_door(limits: GrpcLimits | None = None, **options: Any) -> AsyncIterator[Door]:
    async with broker(clock="real") as b:
        door = GrpcDoor(Gate(b.broker), limits, **options)
        host, port = await door.open("127.0.0.1", 0)
        try:
            async with GrpcClient(f"{host}:{port}") as client:
                yield Door(b, door, f"{host}:{port}", client)
        finally:
            await door.close()


def served(test: Callable[[Door], Awaitable[None]]) -> Callable[[], None]:
    """A test that gets a door of its own."""

    async def inside() -> None:
        async with asyncio.timeout(FAR_S), open_door() as door:
            await test(door)

    def run() -> None:
        asyncio.run(inside())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


async def next_of(events: AsyncIterator[ConsumeResponse], kind: str) -> Any:
    """The next event of one kind; others are passed over."""
    async for event in events:
        if event.HasField(kind):
            return getattr(event, kind)
    raise AssertionError(f"the stream ended without {kind}")

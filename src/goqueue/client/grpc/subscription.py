"""A member of a group, for as long as its stream is open."""

from collections.abc import AsyncIterator
from typing import Any

from grpc import aio

from goqueue.client.errors import Closed
from goqueue.client.grpc.calls import Calls
from goqueue.wire.grpc import common_pb2, consume_pb2


class GrpcSubscription:
    """`async for message in subscription`; or `events()` for heartbeats and rebalances too. Leaves with its block."""

    def __init__(self, calls: Calls, request: consume_pb2.SubscribeRequest) -> None:
        self._calls = calls
        self._request = request
        self._call: aio.UnaryStreamCall[Any, Any] | None = None
        self.member_id = ""
        self.generation = 0
        self.assigned: list[tuple[str, int]] = []

    async def __aenter__(self) -> "GrpcSubscription":
        self._call = self._calls.stream("Subscribe", self._request)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    async def events(self) -> AsyncIterator[consume_pb2.ConsumeResponse]:
        """All that the broker says. Ends with an error when the broker ends it."""
        if self._call is None:
            raise Closed("use it with async with")
        with self._calls.ours():
            async for event in self._call:
                if event.HasField("assignment"):
                    self.member_id, self.generation = event.assignment.member_id, event.assignment.generation
                    self.assigned = [(each.topic, each.partition) for each in event.assignment.partitions]
                yield event

    async def __aiter__(self) -> AsyncIterator[common_pb2.Message]:
        async for event in self.events():
            for message in event.messages.messages:
                yield message

"""The gRPC client without `async`: an event loop in a thread of its own, and calls that wait for it.

with GrpcClient("127.0.0.1:9000") as client:
    client.publish("orders", b"three apples")
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from goqueue.client.errors import Closed
from goqueue.client.faces import Face, Portal, takes, waits
from goqueue.client.grpc.client import GrpcClient as AsyncClient
from goqueue.client.grpc.subscription import GrpcSubscription as AsyncSubscription
from goqueue.wire.grpc.common_pb2 import Message
from goqueue.wire.grpc.consume_pb2 import ConsumeResponse
from goqueue.wire.grpc.publish_pb2 import PublishRequest, PublishResponse, PublishStreamResponse

T = TypeVar("T")
_END: Any = object()


class GrpcClient(Face[AsyncClient]):
    """For `with GrpcClient("127.0.0.1:9000") as client`. Any thread may call."""

    @takes(AsyncClient)
    def __init__(self, inner: AsyncClient) -> None:
        super().__init__(inner)

    ask = waits(AsyncClient.ask)
    ack = waits(AsyncClient.ack)
    nack = waits(AsyncClient.nack)
    reject = waits(AsyncClient.reject)
    extend = waits(AsyncClient.extend)
    ack_all = waits(AsyncClient.ack_all)

    def publish(self, topic: str, value: bytes | None, **fields: Any) -> PublishResponse:
        """`fields`: as the async one takes them."""
        return self._portal.run(self._inner.publish(topic, value, **fields))

    def publish_stream(
        self, messages: Iterable[PublishRequest | list[PublishRequest]]
    ) -> Iterator[PublishStreamResponse]:
        """An answer for each, as the async one gives them. `messages` are taken in other threads, one at a time: what
        is sent in lists costs a hop for each list.
        """
        return _each(self._portal, self._inner.publish_stream(_taken(iter(messages))))

    def consume(
        self, topic: str, *, start: str | int = "earliest", partitions: Iterable[int] = (), **fields: Any
    ) -> Iterator[Message]:
        """Every message, as it comes, without end unless `until_end=True`."""
        return _each(self._portal, self._inner.consume(topic, start=start, partitions=partitions, **fields))

    def subscribe(self, group_id: str, topics: Iterable[str], **options: Any) -> "GrpcSubscription":
        """For `with client.subscribe("workers", ["orders"]) as subscription`; options as the async one has them."""
        return GrpcSubscription(self._inner.subscribe(group_id, topics, **options), self._portal)


class GrpcSubscription:
    """`for message in subscription`; or `events()` for heartbeats and rebalances too. Leaves with its block."""

    def __init__(self, inner: AsyncSubscription, portal: Portal) -> None:
        self._inner = inner
        self._portal = portal

    @property
    def member_id(self) -> str:
        return self._inner.member_id

    @property
    def generation(self) -> int:
        return self._inner.generation

    @property
    def assigned(self) -> list[tuple[str, int]]:
        return self._inner.assigned

    def __enter__(self) -> "GrpcSubscription":
        self._portal.run(self._inner.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Closed):
            self._portal.run(self._inner.__aexit__())

    def events(self) -> Iterator[ConsumeResponse]:
        """All that the broker says. Ends with an error when the broker ends it."""
        return _each(self._portal, self._inner.events())

    def __iter__(self) -> Iterator[Message]:
        return _each(self._portal, aiter(self._inner))


def _each(portal: Portal, items: AsyncIterator[T]) -> Iterator[T]:
    """They end with whoever takes them."""
    try:
        while (item := portal.run(_next(items))) is not _END:
            yield item
    finally:
        with suppress(Closed):  # all that was open ended with the client
            portal.run(_ended(items))


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items, _END)


async def _ended(items: Any) -> None:
    await items.aclose()


async def _taken(items: Iterator[T]) -> AsyncIterator[T]:
    """The next may take its time, and nobody else shall wait for it."""
    while (item := await asyncio.to_thread(next, items, _END)) is not _END:
        yield item

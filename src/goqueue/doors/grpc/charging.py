"""Calls and the quotas of whoever makes them. A call that comes while a quota is used up is refused; a stream goes on
when there is something left.
"""

from collections.abc import Awaitable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from goqueue.broker.access import Access
from goqueue.broker.accounts.loop_time import measured
from goqueue.broker.accounts.quotas import MESSAGES, Allowance
from goqueue.broker.gate import Gate
from goqueue.broker.tenants.turns import Turn
from goqueue.model.credentials import NotAuthenticated
from goqueue.model.quotas import CONSUMED, PRODUCED, QuotaKey
from goqueue.wire.grpc.consume_pb2 import ConsumeResponse
from goqueue.wire.grpc.publish_pb2 import PublishStreamRequest

T = TypeVar("T")

CLIENT_ID = "client-id"
"""Metadata: what a client calls itself."""
CHARGED: dict[str, QuotaKey] = {
    "goqueue.v1.PublishService.Publish": PRODUCED,
    "goqueue.v1.PublishService.PublishStream": PRODUCED,
    "goqueue.v1.ConsumeService.Consume": CONSUMED,
    "goqueue.v1.ConsumeService.Subscribe": CONSUMED,
}
"""Methods whose requests, or whose answers, are messages of topics."""


class Charging:
    """Of one call."""

    def __init__(self, gate: Gate, access: Access, context: Any, method: str, turn: Turn | None = None) -> None:
        said = dict(context.invocation_metadata() or ())
        self._gate = gate
        self._access = access
        self._context = context
        self._turn = turn
        self._key = CHARGED.get(method)
        self._client_id = str(said.get(CLIENT_ID, ""))

    @property
    def _allowance(self) -> Allowance | None:
        """Asked each time: quotas may change while a stream goes on."""
        return self._access.allowance(self._client_id)

    @property
    def access(self) -> Access:
        """Which counts what is made and deleted."""
        return self._access.charged(self._client_id)

    def admit(self, size: int = 0) -> None:
        """`size`: of the request, if it is one. QuotaExceeded: not now."""
        allowance = self._allowance
        if allowance is None:
            return
        allowance.admit(self._key)
        if self._key is PRODUCED and size:
            allowance.use(PRODUCED, size)
            allowance.use(MESSAGES[PRODUCED], 1)

    async def measured(self, work: Awaitable[T]) -> T:
        """With the time that it takes of the event loop."""
        return await measured(work, self._allowance, self._gate.now_s)

    async def read(self) -> Any:
        """The next request of a stream, when there is room for one."""
        data = await self._context.read()
        if self._turn is not None:
            await self._turn.again()
        if self._key is PRODUCED and isinstance(data, bytes):
            await self._count(data)
        return data

    async def write(self, piece: bytes) -> None:
        if self._access.is_over:  # of a stream that another node gives: that one does not know when credentials end
            raise NotAuthenticated(f"{self._access.principal} is gone, or its credentials have ended")
        if self._turn is not None:
            await self._turn.again()
        await self._context.write(piece)
        if self._key is CONSUMED:
            await self._count(piece)

    async def _count(self, data: bytes) -> None:
        allowance = self._allowance
        if allowance is not None and self._key is not None:
            delay_ms = allowance.take(self._key, len(data))
            if allowance.counts(self._key):
                delay_ms = max(delay_ms, allowance.take_messages(self._key, _messages_in(self._key, data)))
            if delay_ms:
                await self._gate.pause(delay_ms)


def _messages_in(key: QuotaKey, data: bytes) -> int:
    """Of a stream: in a request that publishes, or in what is read."""
    try:
        if key is CONSUMED:
            return len(ConsumeResponse.FromString(data).messages.messages)
        return len(PublishStreamRequest.FromString(data).batch) or 1
    except DecodeError:  # whoever reads it says so
        return 1

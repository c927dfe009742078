"""One message in the hands of a worker, until it is settled."""

from collections.abc import Callable
from typing import Any

from goqueue.client.errors import InvalidArgument, LeaseLost
from goqueue.client.lease_session import (
    ACCEPT,
    CONNECTION_LOST,
    REJECT,
    RELEASE,
    RENEW,
    LeaseSession,
    Settlement,
)
from goqueue.client.message import Message
from goqueue.client.share_member import TopicIdPartition
from goqueue.client.times import Duration
from goqueue.model.moments import parse_duration_ms
from goqueue.wire.kafka.messages.share_groups import NO_DELAY
from goqueue.wire.kafka.notation import INT32_MAX

BACKOFF = -1
"""As a delay: as topic and group say, longer with every attempt."""


class Job:
    """`ack`, `nack` or `reject` it, once. Each returns when that is durable; LeaseLost: it came too late, and the
    message is delivered again, perhaps to another worker.
    """

    __slots__ = (
        "_key",
        "_lease_ms",
        "_leased_on",
        "_on_settled",
        "_session",
        "attempt",
        "has_lapsed",
        "is_replaced",
        "is_settled",
        "lease_s",
        "lease_until_s",
        "message",
    )

    def __init__(
        self,
        message: Message,
        attempt: int,
        session: LeaseSession,
        key: TopicIdPartition,
        lease_ms: int,
        on_settled: "Callable[[Job], None]",
    ) -> None:
        self.message = message
        self.attempt = attempt
        """1: never delivered before."""
        self.is_settled = False
        self.has_lapsed = False
        """Its lease is not kept alive any more: it may be delivered again already."""
        self.is_replaced = False
        """This worker has been given the same message again, as another job."""
        self.lease_s = self.lease_until_s = 0.0
        """How long a lease lasts, and until when this one does, of the clock that the worker was given."""
        self._session = session
        self._leased_on = session.connection
        self._key = key
        self._lease_ms = lease_ms
        self._on_settled = on_settled

    @property
    def is_ours(self) -> bool:
        """Leases end with the connection over which they were given."""
        is_leased = self._leased_on is not None and self._leased_on is self._session.connection
        return is_leased and not self.is_replaced

    @property
    def place(self) -> tuple[TopicIdPartition, int]:
        return self._key, self.offset

    @property
    def topic(self) -> str:
        return self.message.topic

    @property
    def partition(self) -> int:
        return self.message.partition

    @property
    def offset(self) -> int:
        return self.message.offset

    @property
    def timestamp(self) -> int:
        return self.message.timestamp

    @property
    def key(self) -> bytes | None:
        return self.message.key

    @property
    def value(self) -> bytes | None:
        return self.message.value

    @property
    def headers(self) -> dict[str, bytes | None]:
        return self.message.headers

    @property
    def priority(self) -> str:
        return self.message.priority

    async def ack(self) -> None:
        """Done: this group never gets it again."""
        await self._settle(Settlement(ACCEPT))

    async def nack(self, delay: Duration | None = None, reason: str = "") -> None:
        """Not done: deliver it again after `delay`, or after a backoff that grows with every attempt. After the last
        attempt it is a dead letter, which says the reason.
        """
        await self._settle(Settlement(RELEASE, BACKOFF if delay is None else _delay_ms(delay), reason))

    async def reject(self, reason: str = "") -> None:
        """Never to be done: a dead letter now."""
        await self._settle(Settlement(REJECT, NO_DELAY, reason))

    async def extend(self, lease: Duration | None = None) -> None:
        """Hold it for so long from now, or for as long as a new lease. A worker does this by itself while it works."""
        if self.is_settled:
            raise InvalidArgument("this message is settled already")
        self._check_is_ours()
        lease_ms = self._lease_ms if lease is None else _delay_ms(lease)
        await self._session.settle(self._key, self.offset, Settlement(RENEW, lease_ms or NO_DELAY))

    async def _settle(self, settlement: Settlement) -> None:
        if self.is_settled:
            raise InvalidArgument("this message is settled already")
        self.is_settled = True
        try:
            self._check_is_ours()
            await self._session.settle(self._key, self.offset, settlement)
        finally:
            self._on_settled(self)

    def _check_is_ours(self) -> None:
        """A request names the message and not the lease. One about an old lease would settle a newer one."""
        if self.is_replaced:
            raise LeaseLost("its lease has ended, and it was delivered again to this worker")
        if not self.is_ours:
            raise LeaseLost(CONNECTION_LOST)

    def __repr__(self) -> str:
        place: Any = f"{self.topic}/{self.partition}/{self.offset}"
        return f"Job({place}, attempt={self.attempt})"


def _delay_ms(given: Duration) -> int:
    delay_ms = parse_duration_ms(given)
    if delay_ms > INT32_MAX:
        raise InvalidArgument(f"{given!r} is longer than {INT32_MAX} ms")
    return delay_ms

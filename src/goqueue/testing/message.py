"""What a test gets from its broker: records, messages to settle, dead letters and what still waits. Times are
milliseconds since 1970.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypedDict

from goqueue.broker.delays.partition import Found
from goqueue.broker.queues.settle import Wanted
from goqueue.machines.deliveries.commands import How, Verdict
from goqueue.model.errors import GoQueueError, InvalidWish
from goqueue.model.lanes import Lane
from goqueue.model.moments import parse_duration_ms, parse_moment_ms, shown
from goqueue.records.dead_letters import ATTEMPTS, DIED_AT, ERROR, GROUP, OFFSET, PARTITION, REASON
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import NewMessage
from goqueue.records.wishes import lane_and_expiry, parse_lane

Duration: TypeAlias = str | int
"""As people write it: "30s", "3 days"; a number is milliseconds."""
HeadersGiven: TypeAlias = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]

BACKOFF = -1


class ReceiptUnknown(GoQueueError):
    """There is and was no such lease."""


class ReceiptRepeated(GoQueueError):
    """The message was settled before."""


class ReceiptExpired(GoQueueError):
    """The lease is over, and the message was or will be delivered again."""


REFUSALS: Mapping[Verdict, tuple[type[GoQueueError], str]] = {
    Verdict.UNKNOWN: (ReceiptUnknown, "it was never leased with this receipt"),
    Verdict.REPEATED: (ReceiptRepeated, "it was settled before"),
    Verdict.EXPIRED: (ReceiptExpired, "the lease is over"),
}

Settle: TypeAlias = Callable[[Wanted], Awaitable[Verdict]]


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record as every reader sees it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    header_pairs: list[tuple[str, bytes | None]] = field(repr=False)
    """All of them, as they were sent; a name may come twice."""

    @property
    def headers(self) -> dict[str, bytes | None]:
        """Of a name that comes twice the last."""
        return dict(self.header_pairs)

    @property
    def priority(self) -> str:
        return Lane(lane_and_expiry(self.header_pairs)[0]).name.lower()


@dataclass(frozen=True, kw_only=True)
class Message(Record):
    """A record that is leased to its consumer until it is settled or the lease ends."""

    group: str
    attempt: int
    """1: never delivered before."""
    first_delivered: int
    lease_until: int
    """When the lease ends that it was received with."""
    receipt: str = field(repr=False)
    _settle: Settle = field(repr=False, compare=False)

    async def ack(self) -> None:
        """Done: never delivered to this group again."""
        await self._do("ack", Wanted(self.receipt))

    async def nack(self, delay: Duration | None = None) -> None:
        """Deliver it again after `delay`; without one the longer, the more often it was tried."""
        delay_ms = BACKOFF if delay is None else parse_duration_ms(delay)
        await self._do("nack", Wanted(self.receipt, How.RETRY, delay_ms))

    async def reject(self, reason: str = "") -> None:
        """To the dead letters, now."""
        await self._do("reject", Wanted(self.receipt, How.REJECT, reason=reason))

    async def extend(self, duration: Duration) -> None:
        """Hold it until `duration` from now."""
        await self._do("extend", Wanted(self.receipt, How.EXTEND, parse_duration_ms(duration)))

    async def _do(self, doing: str, wanted: Wanted) -> None:
        verdict = await self._settle(wanted)
        if verdict is not Verdict.DONE:
            error, why = REFUSALS[verdict]
            raise error(f"cannot {doing} {self.topic}/{self.partition}/{self.offset} for {self.group!r}: {why}")


@dataclass(frozen=True, kw_only=True)
class DeadLetter(Record):
    """A record of a dead-letter topic, and what its headers say about its death."""

    @property
    def source(self) -> tuple[int, int]:
        """Partition and offset that it had."""
        return self._number(PARTITION), self._number(OFFSET)

    @property
    def group(self) -> str:
        return self._text(GROUP)

    @property
    def reason(self) -> str:
        """rejected, attempts or expired"""
        return self._text(REASON)

    @property
    def error(self) -> str:
        """What its consumer said about it."""
        return self._text(ERROR)

    @property
    def attempts(self) -> int:
        return self._number(ATTEMPTS)

    @property
    def died(self) -> int:
        return self._number(DIED_AT)

    def _text(self, name: str) -> str:
        return (self.headers.get(name) or b"").decode(errors="replace")

    def _number(self, name: str) -> int:
        return int(self._text(name) or -1)


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """A message that waits for its time. `partition` and `offset` are its name; it will have another offset then."""

    topic: str
    partition: int
    offset: int
    due: int
    published: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]

    @classmethod
    def of(cls, found: Found) -> "Scheduled":
        topic, partition, offset = found.schedule.key
        return cls(
            topic=topic,
            partition=partition,
            offset=offset,
            due=found.schedule.due_ms,
            published=found.body.published_ms,
            key=found.body.key,
            value=found.body.value,
            headers=dict(found.body.headers),
        )


@dataclass(frozen=True, kw_only=True)
class Lag:
    """What one group has still to do in one topic."""

    ready: int
    leased: int
    waiting: int
    """For the end of a retry's delay, or for an earlier record of the same key."""
    dead: int
    """On their way to the dead letters."""
    oldest_age_ms: int | None
    """Of the oldest record that is not settled; None: all are."""


class RecordFields(TypedDict):
    """What every kind of record is made with."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    header_pairs: list[tuple[str, bytes | None]]


def fields_of(topic: str, partition: int, record: DecodedRecord) -> RecordFields:
    return RecordFields(
        topic=topic,
        partition=partition,
        offset=record.offset,
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        header_pairs=list(record.headers),
    )


def header_pairs(headers: HeadersGiven) -> list[tuple[str, bytes | None]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers)


def new_message(  # noqa: PLR0913  a record and its wishes
    now_ms: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: HeadersGiven = (),
    priority: str | int = Lane.NORMAL,
    delay: Duration | None = None,
    at: str | int | None = None,
    ttl: Duration | None = None,
    partition: int | None = None,
    timestamp: int | None = None,
) -> NewMessage:
    """InvalidWish or InvalidMoment: one of the wishes cannot be read."""
    lane = parse_lane(str(int(priority) if isinstance(priority, Lane) else priority))
    if lane is None:
        names = ", ".join(each.name.lower() for each in Lane)
        raise InvalidWish(f"priority is {shown(priority)}, but must be one of {names} or 0 to {len(Lane) - 1}")
    return NewMessage(
        value=value,
        key=key,
        headers=header_pairs(headers),
        partition=partition,
        timestamp_ms=timestamp,
        lane=Lane(lane),
        delay_ms=None if delay is None else parse_duration_ms(delay),
        deliver_at_ms=None if at is None else parse_moment_ms(at, now_ms),
        expires_at_ms=None if ttl is None else now_ms + parse_duration_ms(ttl),
    )

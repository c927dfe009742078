"""What goes in and what comes out: receipts of what was sent, messages that were read, and headers of both."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypedDict

import msgspec

from goqueue.client.errors import InvalidArgument
from goqueue.client.times import Duration, Moment
from goqueue.model.lanes import Lane
from goqueue.model.moments import parse_duration_ms, parse_moment_ms, shown
from goqueue.records.native import Headers
from goqueue.records.wishes import DELAY_MS, DELIVER_AT, EXPIRES_AT, PREFIX, PRIORITY, lane_and_expiry, parse_lane

HeadersGiven: TypeAlias = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]

NO_HEADERS: Headers = []
NORMAL = int(Lane.NORMAL)
MIXED = -1
"""Of a batch: what its headers say counts, record by record."""
RECORD_BYTES = 24
"""What a record takes beside its key, value and headers: lengths, deltas and counts, never more."""
HEADER_BYTES = 10


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """Where a message is, durably. One that is delayed is not in its topic yet: the offset is its name until then."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    durability: str | None = None
    """What it had reached: `disk`, or `os` for the operating system, which loses it with the machine; None: the broker
    did not tell."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970; -1: its producer gave none."""
    key: bytes | None
    value: bytes | None
    header_pairs: list[tuple[str, bytes | None]]
    """All headers, as they were sent; a name may come twice."""

    @property
    def headers(self) -> dict[str, bytes | None]:
        """Of a name that comes twice the last."""
        return dict(self.header_pairs)

    @property
    def priority(self) -> str:
        return Lane(lane_and_expiry(self.header_pairs)[0]).name.lower()


class NewMessage(TypedDict, total=False):
    """One of `send_many`: what `send` takes, by name."""

    value: bytes | None
    key: bytes | None
    headers: HeadersGiven
    priority: str | int | None
    delay: Duration | None
    at: Moment | None
    ttl: Duration | None
    partition: int | None
    timestamp: int | None


def header_pairs(given: HeadersGiven) -> tuple[Headers, int]:
    """A list of our own, and the lane that a batch may claim for it: MIXED if the headers have wishes themselves."""
    pairs: list[Any] = list(given.items() if isinstance(given, Mapping) else given)
    lane = NORMAL
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise InvalidArgument(f"{shown(pair)} is no header: a name (text) and a value (bytes or None) are needed")
        if not (pair[1] is None or isinstance(pair[1], bytes)):
            raise InvalidArgument(f"header {pair[0]!r} is {shown(pair[1])}, but must be bytes or None")
        if pair[0].startswith(PREFIX):
            lane = MIXED
    return pairs, lane


def add_wishes(
    given: HeadersGiven,
    now_ms: int,
    priority: str | int | None,
    delay: Duration | None,
    at: Moment | None,
    ttl: Duration | None,
) -> tuple[Headers, int]:
    """The headers of a record with delivery wishes, and its lane."""
    pairs, lane = header_pairs(given)
    if priority is not None:
        wanted = parse_lane(str(int(priority) if isinstance(priority, int) else priority))
        if wanted is None:
            raise InvalidArgument(
                f"priority is {shown(priority)}, but must be critical, high, normal, low, background or 0 to 4"
            )
        if wanted != NORMAL or lane == MIXED:
            pairs.append((PRIORITY, Lane(wanted).name.lower().encode()))
        lane = wanted if lane != MIXED else MIXED
    if delay is not None and at is not None:
        raise InvalidArgument("say either delay or at, not both")
    if delay is not None:
        pairs.append((DELAY_MS, b"%d" % parse_duration_ms(delay)))
    if at is not None:
        pairs.append((DELIVER_AT, b"%d" % parse_moment_ms(at, now_ms)))
    if ttl is not None:
        pairs.append((EXPIRES_AT, b"%d" % (now_ms + parse_duration_ms(ttl))))
    return pairs, lane


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """How much a record takes in a batch; rather too much than too little. InvalidArgument: that is no record."""
    size = RECORD_BYTES
    if value.__class__ is bytes:
        size += len(value)
    elif value is not None:
        raise InvalidArgument(f"the value is {shown(value)}, but must be bytes or None")
    if key.__class__ is bytes:
        size += len(key)
    elif key is not None:
        raise InvalidArgument(f"the key is {shown(key)}, but must be bytes or None")
    for name, content in headers:
        size += HEADER_BYTES + 4 * len(name) + (len(content) if content else 0)
    return size

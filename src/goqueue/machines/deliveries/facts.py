"""What was decided about deliveries.

Stored are progress, blocks, replays, dead letters and options of groups: each fact says all about its key. Leases and
what was seen of a log are not stored: a restart forgets them, and what was leased is ready again.
"""

from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from goqueue.machines.deliveries.blocks import Range
from goqueue.machines.deliveries.commands import DeadLetter, Place, Policy, Span
from goqueue.machines.deliveries.lanes import Shares
from goqueue.machines.groups.commands import ledger_key
from goqueue.machines.machine import Fact
from goqueue.records.plain import NumberRecord

PROGRESS = "progress"
BLOCK_KEY = "block"
REPLAY = "replay"
DEAD_KEY = "dead"
OPTIONS = "options"

_MSGPACK_0, _MSGPACK_UINT64 = b"\x00", b"\xcf"

# Stored


class Progress(Fact, frozen=True, array_like=True, tag="Progress"):
    """Everything below `start_offset` is settled in this window."""

    place: Place
    window: int
    topic_id: bytes
    start_offset: int

    def key(self) -> bytes:
        return ledger_key(PROGRESS, *self.place, self.window)


def progress_record(progress: Progress) -> NumberRecord:
    """As `progress` is stored, with room for any start: in msgpack a number may always take eight bytes."""
    encoded = msgspec.msgpack.encode(msgspec.structs.replace(progress, start_offset=0))
    return NumberRecord(progress.key(), encoded.removesuffix(_MSGPACK_0) + _MSGPACK_UINT64)


class ProgressForgotten(Fact, frozen=True):
    """Of the own window: the whole place is forgotten."""

    is_tombstone: ClassVar[bool] = True
    place: Place
    window: int

    def key(self) -> bytes:
        return ledger_key(PROGRESS, *self.place, self.window)


class BlockStored(Fact, frozen=True, array_like=True, tag="BlockStored"):
    place: Place
    window: int
    number: int
    settled: bytes
    """A bit per offset, see `delivery_blocks`; what it says below the start is of no matter."""
    retries: bytes = b""

    def key(self) -> bytes:
        return ledger_key(BLOCK_KEY, *self.place, self.window, self.number)


class BlockForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    place: Place
    window: int
    number: int

    def key(self) -> bytes:
        return ledger_key(BLOCK_KEY, *self.place, self.window, self.number)


class ReplayStored(Fact, frozen=True, array_like=True, tag="ReplayStored"):
    place: Place
    window: int
    chosen: tuple[Range, ...]
    """In rising order, not empty."""
    records_per_second: int

    def key(self) -> bytes:
        return ledger_key(REPLAY, *self.place, self.window)


class ReplayForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    place: Place
    window: int

    def key(self) -> bytes:
        return ledger_key(REPLAY, *self.place, self.window)


class DeadStored(Fact, frozen=True, array_like=True, tag="DeadStored"):
    """Each by itself and not in its block: with what its consumer said it may be large."""

    place: Place
    window: int
    letter: DeadLetter

    def key(self) -> bytes:
        return ledger_key(DEAD_KEY, *self.place, self.letter.offset)


class DeadForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    place: Place
    offset: int

    def key(self) -> bytes:
        return ledger_key(DEAD_KEY, *self.place, self.offset)


class OptionsStored(Fact, frozen=True, array_like=True, tag="OptionsStored"):
    group_id: str
    options: dict[str, str]

    def key(self) -> bytes:
        return ledger_key(OPTIONS, self.group_id)


class OptionsForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str

    def key(self) -> bytes:
        return ledger_key(OPTIONS, self.group_id)


DELIVERY_FACTS: tuple[type[Fact], ...] = (Progress, BlockStored, ReplayStored, DeadStored, OptionsStored)

# Not stored


class Opened(Fact, frozen=True):
    durable: ClassVar[bool] = False
    place: Place
    policy: Policy
    is_new: bool = False
    """What was leased before the last restart was leased in another life of this place."""


class Observed(Fact, frozen=True):
    durable: ClassVar[bool] = False
    place: Place
    window: int
    spans: tuple[Span, ...]
    """They tile what lies between the end of the window and its new end."""
    now_ms: int


class Pick(NamedTuple):
    """Neighbours in one lane that are leased."""

    window: int
    lane: int
    first: int
    last: int
    is_fresh: bool
    """None of them was delivered before."""


class Leased(Fact, frozen=True):
    durable: ClassVar[bool] = False
    place: Place
    number: int
    consumer: str
    deadline_ms: int
    picks: tuple[Pick, ...]
    shares: tuple[tuple[int, Shares], ...]
    """window, and what each lane of it may still take"""
    turn: int
    """The place in line of the window that comes first next time."""
    now_ms: int


class Cause(IntEnum):
    """Why something becomes of records: what is counted, and told to whoever asks about one of them."""

    ACKED = 1
    NACKED = 2
    """By its consumer; if this was its last attempt it dies."""
    LEASE_ENDED = 3
    """Likewise, but because its consumer said nothing in time."""
    REJECTED = 4
    EXPIRED = 5
    REMOVED = 6
    """By the log's retention, unsettled."""
    RETURNED = 7
    """As if never leased."""


Causes: TypeAlias = tuple[Cause, ...]
"""None: nothing that happened to a record: its delay is over, or its dead letter was written."""

# Made once: looking up enum members costs.
ACKED, NACKED, LEASE_ENDED, REJECTED, EXPIRED, REMOVED, RETURNED = ((cause,) for cause in Cause)


class Change(NamedTuple):
    """What becomes of first..last."""

    first: int
    last: int
    state: int
    """Of `delivery_window`, or UNDONE."""
    lease: int = 0
    """Not 0: every one of them is leased, by this lease."""
    visible_at_ms: int = 0
    attempts: int = 0
    """Not 0: so often they were delivered, which a lease before the last restart did not count."""
    causes: Causes = ()
    detail: str = ""
    """What the consumer said about it."""


class Changed(Fact, frozen=True):
    durable: ClassVar[bool] = False
    place: Place
    window: int
    changes: tuple[Change, ...]
    now_ms: int
    counted: tuple[tuple[str, int], ...] = ()
    """Field of `Tally`, and by how much it grows."""


class SettledStored(Fact, frozen=True):
    """What was acknowledged directly is in the ledger now."""

    durable: ClassVar[bool] = False
    place: Place
    ranges: tuple[Range, ...]
    """In rising order."""
    now_ms: int


class Extended(Fact, frozen=True):
    durable: ClassVar[bool] = False
    parts: tuple[tuple[int, int, int], ...]
    """lease, first and last offset"""
    deadline_ms: int


class WindowReset(Fact, frozen=True):
    """The own window begins anew; its leases are over, those from before the last restart too."""

    durable: ClassVar[bool] = False
    place: Place
    start_offset: int


class ReplayBegun(Fact, frozen=True):
    """Just now, that is, nothing of it was leased before the last restart."""

    durable: ClassVar[bool] = False
    place: Place
    window: int


class Woken(Fact, frozen=True):
    durable: ClassVar[bool] = False
    place: Place


class ClockShifted(Fact, frozen=True):
    """The wall clock was set by so much: what is leased, and what waits for its turn, goes on as long as it would
    have."""

    durable: ClassVar[bool] = False
    by_ms: int


class TimePassed(Fact, frozen=True):
    """What was due in these leases and at these spots has been decided."""

    durable: ClassVar[bool] = False
    now_ms: int
    leases: tuple[int, ...]
    spots: tuple[Any, ...]

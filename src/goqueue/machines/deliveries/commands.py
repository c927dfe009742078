"""What deliveries can be told and what they answer.

A delivery is what one queue group knows of one partition: which records are ready, leased, waiting or settled. It
never sees a record. The broker tells it what the log holds (`Observe`), as spans of offsets.
"""

from enum import IntEnum
from typing import Generic, NamedTuple

import msgspec

from goqueue.machines.machine import Command, R_co
from goqueue.model.codes import Code
from goqueue.model.lanes import Lane

NEVER = -1
NO_KEY = 0
ANY_LEASE = 0
"""In a settlement: by whom the records were leased is told by the consumer's name."""
OLD_LEASE = -1
"""In a settlement: the lease was given before the last restart, which forgets leases."""
NO_LEASE = -2
"""In a settlement: by whoever looks after the group, not by a consumer; only what nobody holds now."""
BACKOFF = -1
"""As a delay: the longer, the more often the record was tried."""
OWN_WINDOW = 0
"""The window that follows the log; replays have windows of their own, with numbers above."""


class Place(NamedTuple):
    group_id: str
    topic: str
    partition: int


class PlaceCommand(Command[R_co], Generic[R_co], frozen=True):
    """About one place, for whichever node leads its partition."""

    place: Place


class Policy(msgspec.Struct, frozen=True):
    """What topic and group ask for. Not stored with deliveries: the broker tells it at every start and change."""

    lease_ms: int = 30_000
    attempts_max: int = 5
    """Deliveries that reached a consumer before a record is a dead letter; 0: however many."""
    unacked_max: int = 1000
    """Records that one consumer may hold in one place. 0: delivery is paused."""
    backoff_ms: int = 1000
    backoff_ms_max: int = 60_000
    orders_by_key: bool = False
    """No two records of one key are leased at once, and they are leased in the order of their offsets."""
    keeps_expired: bool = True
    """Expired records become dead letters; else they are dropped."""
    lane_weights: tuple[int, int, int, int, int] = (50, 25, 15, 7, 3)
    lane_boost_ms: int = 30_000
    """A lane that was not served for so long comes first, once. 0: never."""
    fair_by: str = "none"
    """What names the senders between whom a lane is shared. Another one means that all is observed again."""

    @property
    def is_paused(self) -> bool:
        """So that whoever leases has nothing more to ask: nobody may hold anything."""
        return self.unacked_max == 0


DEFAULT_POLICY = Policy()


class Span(NamedTuple):
    """Offsets first..last of the log, all alike."""

    first: int
    last: int
    lane: int = Lane.NORMAL
    expires_at_ms: int = NEVER
    key_hash: int = NO_KEY
    """Only told where the policy orders by key; records without a key have NO_KEY and no order."""
    is_visible: bool = True
    """False: no record for this group: a marker, an aborted transaction, a gap."""
    sender: int = 0
    """32 bits, only told where the policy shares lanes between senders; 0: all those who named none."""


class OpenDelivery(Command[Code], frozen=True):
    """Begin at `start_offset` if this group has never been here (or only in a deleted topic of the same name)."""

    place: Place
    topic_id: bytes
    start_offset: int
    policy: Policy = DEFAULT_POLICY
    log_end_offset: int | None = None
    """Where the log ends at a start. What the group knows of records beyond is dropped: they were lost with the end of
    a log that did not wait for the disk, and others will stand there.
    """


class SetPolicy(Command[Code], frozen=True):
    place: Place
    policy: Policy


class Observe(PlaceCommand[Code], frozen=True):
    """The log holds `spans`, which tile what lies between the end of what was observed before and `next_offset`.

    Everything below `log_start_offset` is gone, settled or not.
    """

    spans: tuple[Span, ...]
    next_offset: int
    log_start_offset: int = 0
    window: int = OWN_WINDOW


class Lease(Command["LeaseReply"], frozen=True):
    place: Place
    consumer: str
    records_max: int
    lease_ms: int | None = None
    """None: as the policy says."""


class LeasedRun(NamedTuple):
    first: int
    last: int
    attempt: int
    """1: never delivered before."""
    first_delivered_ms: int


class LeaseReply(msgspec.Struct, frozen=True):
    """No runs: nothing is ready, or this consumer holds as much as it may."""

    lease: int
    """Its number, for receipts; never 0."""
    deadline_ms: int
    runs: tuple[LeasedRun, ...]
    """In the order in which lanes were served, not of offsets."""


class How(IntEnum):
    ACK = 1
    RETRY = 2
    """Deliver again after `delay_ms`; a dead letter if this was the last attempt."""
    REJECT = 3
    """A dead letter now."""
    EXTEND = 4
    """The lease ends `delay_ms` from now."""
    UNDO = 5
    """Ready again at once, as if never leased: it did not reach its consumer."""


class Settlement(NamedTuple):
    """All of first..last, or nothing."""

    first: int
    last: int
    how: How = How.ACK
    delay_ms: int = BACKOFF
    reason: str = ""
    lease: int = ANY_LEASE


class Settle(PlaceCommand["SettleReply"], frozen=True):
    settlements: tuple[Settlement, ...]
    consumer: str | None = None
    """Given: every record must be leased by this consumer. Else by the lease that each settlement names."""


class Verdict(IntEnum):
    DONE = 0
    UNKNOWN = 1
    """There is and was no such lease: never delivered, or no such place."""
    REPEATED = 2
    """The record was settled before."""
    EXPIRED = 3
    """The lease ended and the record was given to somebody else meanwhile (or the consumer does not hold it)."""


class SettleReply(msgspec.Struct, frozen=True):
    verdicts: tuple[Verdict, ...]
    """One per settlement."""


class DeadLetter(NamedTuple):
    """A record that must be written to the dead letters before it is settled."""

    offset: int
    reason: str
    """rejected, attempts, expired"""
    error: str
    """What the consumer said about it."""
    attempts: int
    first_delivered_ms: int
    died_ms: int


class DeadLettersWritten(PlaceCommand[Code], frozen=True):
    """They are durable elsewhere (or no longer readable): settled now."""

    offsets: tuple[int, ...]


class Seek(PlaceCommand[Code], frozen=True):
    """Begin anew at `offset`: all from there on is delivered (again), nothing before it. Leases end; replays too."""

    offset: int


class Replay(PlaceCommand["ReplayReply"], frozen=True):
    """Deliver `chosen` offsets, all within [first_offset, next_offset), once more; what lies between is left settled.

    Offsets that are not settled yet in the own window are left as they are. The broker then observes the window.
    """

    first_offset: int
    next_offset: int
    chosen: tuple[tuple[int, int], ...]
    records_per_second: int = 0
    """0: as fast as they are asked for."""


class ReplayReply(msgspec.Struct, frozen=True):
    code: Code
    window: int
    records: int
    """How many will be delivered again."""


class SettleBelow(PlaceCommand[Code], frozen=True):
    """Whoever reads this group committed `offset`: all before it is done, whoever holds it. Never goes back."""

    offset: int


class GiveBack(Command[Code], frozen=True):
    """What a consumer holds is delivered again at once, as if its leases had ended now."""

    group_id: str
    consumer: str
    places: tuple[Place, ...] | None = None
    """None: wherever it holds something."""


class DropGroup(Command[Code], frozen=True):
    """Forget all about a group, in all its places (or in `topics`)."""

    group_id: str
    topics: tuple[str, ...] | None = None


class RestoreGroup(Command[Code], frozen=True):
    """Let a group be what `state` says, instead of what it was. Leases are not part of a state."""

    group_id: str
    state: "GroupState"


class PlaceState(msgspec.Struct, frozen=True):
    topic: str
    topic_id: bytes
    partition: int
    start_offset: int
    """Everything below it is settled."""
    settled: tuple[tuple[int, int], ...]
    """Ranges above it that are settled too."""
    retries: tuple[tuple[int, int, int, int, int], ...] = ()
    """first, last, attempts so far, first delivered (ms), visible again at (ms)."""
    dead: tuple[DeadLetter, ...] = ()


class GroupState(msgspec.Struct, frozen=True):
    options: dict[str, str]
    places: tuple[PlaceState, ...]


class SetGroupOptions(Command[Code], frozen=True):
    """Options of one group that go before those of its topics; the broker has checked them. None: no longer."""

    group_id: str
    changes: dict[str, str | None]


class ForgetTopic(Command[Code], frozen=True):
    topic: str
    topic_id: bytes


class Measure(NamedTuple):
    """One place in numbers, by lane where it says so."""

    start_offset: int
    end_offset: int
    """How far the log was observed."""
    ready: tuple[int, int, int, int, int]
    leased: tuple[int, int, int, int, int]
    waiting: int
    """For the end of a delay."""
    held: int
    """For an earlier record of the same key."""
    dead: int
    """On their way to the dead letters."""
    replaying: int
    """Ready in windows of replays; not counted above."""
    arrived: tuple[int, int, int, int, int]
    """Observed since the start, by lane; what replays bring again is not counted."""
    served: tuple[int, int, int, int, int]
    """Leased since the start, by lane."""
    oldest_offset: int
    """The first that is not settled."""
    senders: int = 0
    """Who has something ready or leased, where lanes are shared between senders."""


class RecordLook(NamedTuple):
    """How it stands with one record."""

    attempts: int
    """Deliveries so far, the present one included."""
    is_dead: bool
    """A dead letter, or settled: it will not be delivered again."""
    is_dying: bool
    """Its dead letter is not written yet."""
    visible_at_ms: int
    """When it is or was ready to be delivered again; 0: it is not waiting for that."""


class Tally(msgspec.Struct):
    """What happened since the start of this process, in records."""

    leased: int = 0
    acked: int = 0
    nacked: int = 0
    """By a consumer, to be delivered again."""
    rejected: int = 0
    lapsed: int = 0
    """Leases that ended with their deadline, or with their consumer."""
    retried: int = 0
    """Deliveries that ended without success and are followed by another."""
    died: int = 0
    """Became dead letters, for whatever reason."""
    extended: int = 0


class HeldRun(NamedTuple):
    """Neighbours that one consumer holds, delivered equally often."""

    place: Place
    first: int
    last: int
    consumer: str
    attempt: int
    leased_ms: int
    deadline_ms: int
    """Of the first to end."""


class Stand(msgspec.Struct, array_like=True, frozen=True):
    """In one partition. An offset of -1 and no code: the group has not read there."""

    topic: str
    partition: int
    start_offset: int = -1
    """All below it is settled."""
    leader_epoch: int = 0
    lag: int = -1
    code: Code = Code.NONE
    message: str = ""

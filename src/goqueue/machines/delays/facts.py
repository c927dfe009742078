"""What the delay machine stores, and under which keys.

A ledger is about one partition of one topic (its target). Facts and keys name it all the same: they were once kept
together with those of all others. Keys have one shape, so that a tombstone, which is a key alone, says all there is to
say.
"""

from array import array
from collections.abc import Iterable
from struct import Struct
from sys import byteorder
from typing import NamedTuple

from goqueue.machines.delays.commands import NO_EPOCH, NO_PRODUCER
from goqueue.machines.delays.timer_wheel import Drained
from goqueue.machines.machine import Fact

TOPIC_ID_BYTES = 16
DOOMED_MAX = 10_000
"""Offsets in one fact."""

SCHEDULE, JOB, TARGET, RELEASE, DOOM, UNKEPT = b"s", b"j", b"t", b"r", b"d", b"u"
RECURRING_KIND, RAN, STOPPED, PAUSED, PRODUCER, PACKED, CLOCK = b"c", b"n", b"x", b"z", b"p", b"k", b"w"

_OF_TARGET = Struct(f">c{TOPIC_ID_BYTES}siq")
_OF_NUMBER = Struct(">cq")


class TargetId(NamedTuple):
    """One partition of one topic, of that name and none that is made after it."""

    topic_id: bytes
    partition: int


def target_key(kind: bytes, target: TargetId, number: int = 0) -> bytes:
    return _OF_TARGET.pack(kind, *target, number)


def read_target_key(key: bytes) -> tuple[TargetId, int]:
    _, topic_id, partition, number = _OF_TARGET.unpack(key)
    return TargetId(topic_id, partition), number


def schedule_keys(target: TargetId, offsets: Iterable[int]) -> tuple[bytes, ...]:
    pack, (topic_id, partition) = _OF_TARGET.pack, target
    return tuple([pack(SCHEDULE, topic_id, partition, offset) for offset in offsets])


def number_key(kind: bytes, number: int) -> bytes:
    return _OF_NUMBER.pack(kind, number)


def read_number_key(key: bytes) -> int:
    number: int = _OF_NUMBER.unpack(key)[1]
    return number


def packed(numbers: "array[int]") -> bytes:
    if byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def unpacked(typecode: str, data: bytes) -> "array[int]":
    numbers: array[int] = array(typecode)
    numbers.frombytes(data)
    if byteorder == "big":
        numbers.byteswap()
    return numbers


class OfTarget(Fact, frozen=True, array_like=True):
    """The first fields of all facts about one partition."""

    topic: str
    topic_id: bytes
    partition: int

    @property
    def target(self) -> TargetId:
        return TargetId(self.topic_id, self.partition)


class Scheduled(OfTarget, frozen=True, array_like=True, tag="Scheduled"):
    """Rescheduled, it is stored again. Memory never holds the body: it is read from where this fact lies."""

    wants_place = True
    offset: int
    due_ms: int
    body: bytes
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    epoch: int = NO_EPOCH
    is_delay: bool = False

    def key(self) -> bytes:
        return _OF_TARGET.pack(SCHEDULE, self.topic_id, self.partition, self.offset)


class Firing(OfTarget, frozen=True, array_like=True, tag="Firing"):
    """Stored before the broker publishes. It holds all that the job needs, so that its schedules need not be there any
    more, and goes with them when the batch is in its partition.
    """

    number: int
    sequence: int
    offsets: bytes
    ledger_offsets: bytes
    due_ms: bytes
    """Packed numbers of eight bytes, one each per record."""
    recurring: int = 0
    """The number of the recurring schedule that this is a run of."""

    @property
    def count(self) -> int:
        return len(self.offsets) // 8

    def key(self) -> bytes:
        return target_key(JOB, self.target, self.number)


class TargetKept(OfTarget, frozen=True, array_like=True, tag="TargetKept"):
    """What must outlive the schedules and jobs of a partition: which places are known, and the next sequence. Known is
    what is not above the pair of `epoch` and `up_to`. A later epoch with a lower offset says that the log has lost its
    end in between, and the ledger what it knew of it.
    """

    up_to: int
    sequence: int
    epoch: int = NO_EPOCH

    def key(self) -> bytes:
        return target_key(TARGET, self.target)


class Unkept(OfTarget, frozen=True, array_like=True, tag="Unkept"):
    """Places that the log keeps free for records which the ledger has lost: a producer that was not answered may send
    these again, and they are taken though later places are known.
    """

    offsets: bytes

    def key(self) -> bytes:
        return target_key(UNKEPT, self.target)


class TransactionReleased(OfTarget, frozen=True, array_like=True, tag="TransactionReleased"):
    """Committed: what this producer scheduled here so far waits for its time. One per producer and partition: a later
    commit says all that the one before said. It goes when nothing at or below `last_offset` waits any more.
    """

    producer_id: int
    producer_epoch: int
    last_offset: int

    def key(self) -> bytes:
        return target_key(RELEASE, self.target, self.producer_id)


class SchedulesDoomed(OfTarget, frozen=True, array_like=True, tag="SchedulesDoomed"):
    """These will never fire; their tombstones, and those of `keys`, are written bit by bit. It names every offset: it
    must hold good even where compaction left only a later commit of the same producer.
    """

    offsets: bytes
    keys: tuple[bytes, ...] = ()
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1

    def key(self) -> bytes:
        first = unpacked("q", self.offsets[:8])
        return target_key(DOOM, self.target, first[0] if first else -1)


class ClockFollowed(Fact, frozen=True, array_like=True, tag="ClockFollowed"):
    """The wall clock was set, and what was stored before and asked for a delay is due so much later, or earlier. One
    for every step, since what comes after it is not concerned.
    """

    at_ms: int
    by_ms: int
    set_back_ms: int
    """How far the clock was set back by now and not forward again: so far does a step forward only undo that."""

    def key(self) -> bytes:
        return number_key(CLOCK, self.at_ms)


class DelayProducer(Fact, frozen=True, array_like=True, tag="DelayProducer"):
    producer_id: int
    producer_epoch: int

    def key(self) -> bytes:
        return PRODUCER


class RecurringStored(Fact, frozen=True, array_like=True, tag="RecurringStored"):
    """`number` is new for every definition, also for one that replaces another of its name. `next_ms` was decided with
    the time zones of that day.
    """

    wants_place = True
    number: int
    name: str
    topic: str
    topic_id: bytes
    partition: int
    cron: str
    timezone: str
    next_ms: int
    body: bytes
    owner: str = ""
    """Who has stored it, as nodes tell each other; empty: before this was kept, or nobody in particular."""
    owner_host: str = ""
    """From where, if there were rules about addresses."""

    def key(self) -> bytes:
        return number_key(RECURRING_KIND, self.number)


class RecurringRan(Fact, frozen=True, array_like=True, tag="RecurringRan"):
    """`next_ms` is -1 if it will not run again."""

    number: int
    due_ms: int
    next_ms: int

    def key(self) -> bytes:
        return number_key(RAN, self.number)


class RecurringStopped(Fact, frozen=True, array_like=True, tag="RecurringStopped"):
    """Dropped or replaced while a job of it was unfinished: its body stays until that is done."""

    number: int

    def key(self) -> bytes:
        return number_key(STOPPED, self.number)


class RecurringPaused(Fact, frozen=True, array_like=True, tag="RecurringPaused"):
    """Somebody wants it not to run for now, or to run again."""

    number: int
    is_paused: bool
    next_ms: int
    """When it runs, or would have run, next. What a pause has left out is not made up for."""

    def key(self) -> bytes:
        return number_key(PAUSED, self.number)


class SchedulesPacked(OfTarget, frozen=True, array_like=True, tag="SchedulesPacked"):
    """Only in snapshots: many schedules of one partition, in the order of their offsets."""

    offsets: bytes
    due_ms: bytes
    ledger_offsets: bytes
    body_bytes: bytes
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    is_delay: bytes = b""

    def key(self) -> bytes:
        return PACKED

    def weight(self) -> int:
        return len(self.offsets) // 8


class TargetSaved(TargetKept, frozen=True, array_like=True, tag="TargetSaved"):
    """Only in snapshots: TargetKept, and what the ledger itself says of `up_to`. It must say enough without them."""

    kept_up_to: int = -1

    def key(self) -> bytes:
        return target_key(TARGET, self.target)


class RecurringKept(Fact, frozen=True, array_like=True, tag="RecurringKept"):
    """Only in snapshots: a recurring schedule without its body."""

    number: int
    name: str
    topic: str
    topic_id: bytes
    partition: int
    cron: str
    timezone: str
    next_ms: int
    last_ms: int
    ledger_offset: int
    is_stopped: bool
    owner: str = ""
    owner_host: str = ""
    is_paused: bool = False

    def key(self) -> bytes:
        return number_key(RECURRING_KIND, self.number)


DELAY_FACTS: tuple[type[Fact], ...] = (
    ClockFollowed,
    DelayProducer,
    Firing,
    RecurringKept,
    RecurringPaused,
    RecurringRan,
    RecurringStopped,
    RecurringStored,
    Scheduled,
    SchedulesDoomed,
    SchedulesPacked,
    TargetKept,
    TargetSaved,
    TransactionReleased,
    Unkept,
)


class Removed(Fact, frozen=True):
    """A tombstone of anything."""

    is_tombstone = True
    raw: bytes

    def key(self) -> bytes:
        return self.raw


class JobFinished(Removed, frozen=True):
    """The tombstones of a job and all its schedules. Live they are applied as one, at replay they come one by one."""

    schedules: tuple[bytes, ...]

    def stored_keys(self) -> tuple[bytes, ...]:
        return (*self.schedules, self.raw)


class Cancelled(Removed, frozen=True):
    """The tombstone of a schedule that somebody cancelled."""


class Seen(Fact, frozen=True):
    """Volatile: the time of a command whose schedules may be due already; they are then ready without a wait."""

    durable = False
    now_ms: int


class TransactionEmpty(Fact, frozen=True):
    """Volatile: a transaction ended, and all that it had scheduled was cancelled before."""

    durable = False
    producer_id: int
    producer_epoch: int


class TimePassed(Fact, frozen=True):
    """Volatile: what the wheel gave out, in the order in which it is to be fired."""

    durable = False
    drained: Drained
    ready: list[int]


class RecurringParked(Fact, frozen=True):
    """Volatile: its time has come, but its partition has as many unfinished jobs as it may have."""

    durable = False
    number: int


class RecurringHeld(Fact, frozen=True):
    """Volatile: it does not run yet. After a restart it does, or is dropped, as the metadata says."""

    durable = False
    number: int


class RecurringReleased(Fact, frozen=True):
    """Volatile: it runs from now on."""

    durable = False
    number: int

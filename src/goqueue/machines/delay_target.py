"""One partition as the delay machine knows it: what waits for it, what is ready for it and what is on its way to it."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import overload

from goqueue.machines.delay_commands import Due, FiringJob, ScheduleKey
from goqueue.machines.delay_facts import Firing, TargetId, TargetKept, TargetSaved, TransactionReleased, unpacked
from goqueue.machines.delay_index import OffsetIndex
from goqueue.machines.delay_slots import READY, Slots

UNFINISHED_MAX = 4
"""Jobs at once: after a crash all are published again, and a partition recognises the last five batches of a
producer."""
SEQUENCE_MASK = 0x7FFF_FFFF  # sequences wrap from 2^31 - 1 to 0

_STALE_MIN = 64
_NUMBER = Struct("<q")


class DueRecords(Sequence[Due]):
    """The records of a job, made one by one as they are asked for: a partition that is stuck keeps two thousand."""

    __slots__ = ("_fact",)

    def __init__(self, fact: Firing) -> None:
        self._fact = fact

    def __len__(self) -> int:
        return len(self._fact.offsets) // _NUMBER.size

    @overload
    def __getitem__(self, place: int) -> Due: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Due, ...]: ...

    def __getitem__(self, place: int | slice) -> Due | tuple[Due, ...]:
        if isinstance(place, slice):
            return tuple(map(self.__getitem__, range(*place.indices(len(self)))))
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        fact, at = self._fact, place % len(self) * _NUMBER.size
        offset, ledger_offset, due_ms = (
            _NUMBER.unpack_from(numbers, at)[0] for numbers in (fact.offsets, fact.ledger_offsets, fact.due_ms)
        )
        return Due(ScheduleKey(fact.topic, fact.partition, offset), ledger_offset, due_ms)

    def __iter__(self) -> Iterator[Due]:
        fact = self._fact
        columns = (unpacked("q", numbers) for numbers in (fact.offsets, fact.ledger_offsets, fact.due_ms))
        for offset, ledger_offset, due_ms in zip(*columns, strict=True):
            yield Due(ScheduleKey(fact.topic, fact.partition, offset), ledger_offset, due_ms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def firing_job(fact: Firing) -> FiringJob:
    return FiringJob(fact.number, fact.topic, fact.topic_id, fact.partition, fact.sequence, DueRecords(fact))


class Target:
    def __init__(self, number: int, topic: str, key: TargetId) -> None:
        self.number = number
        self.topic = topic
        self.key = key
        self.index = OffsetIndex()
        self.up_to = -1
        """The highest offset that was ever scheduled here."""
        self.kept_up_to = -1
        """What the ledger's last TargetKept says of it. Invariant: no tombstone of a schedule above it was written."""
        self.sequence = 0
        self.jobs: dict[int, Firing] = {}
        """The unfinished ones, by number."""
        self.ready = ReadyQueue(number)
        self.released: dict[int, TransactionReleased] = {}
        """By producer, the last commit last."""
        self.doomed = array("q")
        """Offsets whose tombstones are still to be written."""
        self.doomed_keys: dict[bytes, None] = {}
        """Other keys to be removed once `doomed` is empty."""
        self.is_forgotten = False
        self.parked: list[int] = []
        """Recurring schedules whose time has come and that must wait for a job to finish."""

    @property
    def room(self) -> int:
        """How many more jobs it may have."""
        return UNFINISHED_MAX - len(self.jobs)

    def kept(self) -> TargetKept:
        return TargetKept(self.topic, *self.key, self.up_to, self.sequence)

    def saved(self) -> TargetSaved:
        return TargetSaved(self.topic, *self.key, self.up_to, self.sequence, self.kept_up_to)


class ReadyQueue:
    """Slots that are due, in the order in which they are fired. One that was cancelled meanwhile is skipped."""

    __slots__ = ("_head", "_slots", "_target", "live")

    def __init__(self, target: int) -> None:
        self._target = target
        self._slots = array("I")
        self._head = 0
        self.live = 0
        """How many entries are meant."""

    def add(self, slots: Iterable[int], count: int) -> None:
        """The caller has made them READY."""
        self._slots.extend(slots)
        self.live += count

    def walk(self, slots: Slots) -> Iterator[int]:
        """Those that are meant, each once."""
        seen = set()
        for place in range(self._head, len(self._slots)):
            slot = self._slots[place]
            if slot not in seen and self._is_meant(slot, slots):
                seen.add(slot)
                yield slot

    def _is_meant(self, slot: int, slots: Slots) -> bool:
        return slots.state[slot] == READY and slots.target[slot] == self._target

    def left(self, slots: Slots) -> None:
        """One of them is READY no more."""
        self.live -= 1
        if not self.live:
            del self._slots[:]
            self._head = 0
            return
        while not self._is_meant(self._slots[self._head], slots):
            self._head += 1
        if len(self._slots) > _STALE_MIN + 2 * self.live:
            self._slots = array("I", self.walk(slots))
            self._head = 0

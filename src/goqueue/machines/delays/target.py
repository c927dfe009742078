"""One partition as the delay machine knows it: what waits for it, what is ready for it and what is on its way to it."""

from array import array
from collections.abc import Iterable, Iterator

from goqueue.machines.delays.commands import NO_EPOCH
from goqueue.machines.delays.facts import (
    DOOMED_MAX,
    Firing,
    SchedulesDoomed,
    TargetId,
    TargetKept,
    TargetSaved,
    TransactionReleased,
    Unkept,
    packed,
)
from goqueue.machines.delays.index import OffsetIndex
from goqueue.machines.delays.slots import READY, Slots

UNFINISHED_MAX = 4
"""Jobs at once: after a crash all are published again, and a partition recognises the last five batches of a
producer."""
SEQUENCE_MASK = 0x7FFF_FFFF  # sequences wrap from 2^31 - 1 to 0

_STALE_MIN = 64


class Target:
    def __init__(self, topic: str, key: TargetId) -> None:
        self.topic = topic
        self.key = key
        self.index = OffsetIndex()
        self.epoch, self.up_to = NO_EPOCH, -1
        """The highest place that was ever scheduled here, of those that the log still had at the last start."""
        self.unkept: set[int] = set()
        """Offsets at or below it that are not known all the same."""
        self.kept_up_to = -1
        """What the ledger's last TargetKept says of it. Invariant: no tombstone of a schedule above it was written."""
        self.sequence = 0
        self.jobs: dict[int, Firing] = {}
        """The unfinished ones, by number."""
        self.ready = ReadyQueue()
        self.released: dict[int, TransactionReleased] = {}
        """By producer, the last commit last."""
        self.doomed = array("q")
        """Offsets whose tombstones are still to be written."""
        self.doomed_keys: dict[bytes, None] = {}
        """Other keys to be removed once `doomed` is empty."""
        self.parked: list[int] = []
        """Recurring schedules whose time has come and that must wait for a job to finish."""

    @property
    def room(self) -> int:
        """How many more jobs it may have."""
        return UNFINISHED_MAX - len(self.jobs)

    @property
    def is_due(self) -> bool:
        """There is something to be done at once: a job for which there is room, or tombstones."""
        return (bool(self.ready.live) and self.room > 0) or bool(self.doomed or self.doomed_keys)

    @property
    def is_doomed(self) -> bool:
        """There are tombstones still to be written."""
        return bool(self.doomed or self.doomed_keys)

    def knows(self, epoch: int, offset: int) -> bool:
        """Whether what is at this place was scheduled, be it over by now or not."""
        return (epoch, offset) <= (self.epoch, self.up_to) and offset not in self.unkept

    def learn(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Without an epoch: of the present one or of an earlier."""
        if epoch > self.epoch:
            self.epoch, self.up_to = epoch, offset
        elif offset > self.up_to and epoch in (self.epoch, NO_EPOCH):
            self.up_to = offset

    def kept(self) -> TargetKept:
        return TargetKept(self.topic, *self.key, self.up_to, self.sequence, self.epoch)

    def saved(self) -> TargetSaved:
        return TargetSaved(self.topic, *self.key, self.up_to, self.sequence, self.epoch, self.kept_up_to)

    def unkept_fact(self, unkept: Iterable[int]) -> Unkept:
        return Unkept(self.topic, *self.key, packed(array("q", sorted(unkept))))

    def doomed_facts(self) -> list[SchedulesDoomed]:
        keys = tuple(self.doomed_keys)
        firsts = range(0, len(self.doomed), DOOMED_MAX) if self.doomed or not keys else (0,)
        return [
            SchedulesDoomed(self.topic, *self.key, packed(self.doomed[first : first + DOOMED_MAX]), keys)
            for first in firsts
        ]


class ReadyQueue:
    """Slots that are due, in the order in which they are fired. One that was cancelled meanwhile is skipped."""

    __slots__ = ("_head", "_slots", "live")

    def __init__(self) -> None:
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
            if slot not in seen and slots.state[slot] == READY:
                seen.add(slot)
                yield slot

    def left(self, slots: Slots, count: int = 1) -> None:
        """So many of them are READY no more."""
        self.live -= count
        if not self.live:
            del self._slots[:]
            self._head = 0
            return
        while slots.state[self._slots[self._head]] != READY:
            self._head += 1
        if len(self._slots) > _STALE_MIN + 2 * self.live:
            self._slots = array("I", self.walk(slots))
            self._head = 0

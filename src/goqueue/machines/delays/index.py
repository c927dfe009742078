"""Offsets of one partition and the slots that belong to them, twelve bytes each: offsets come in rising order, so two
arrays and a binary search do what a table would need ten times the memory for.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import compress

GONE = 0xFFFF_FFFF
NOWHERE = -1

_DEAD_MIN = 64
_STRAYS_MIN = 1024


class OffsetIndex:
    __slots__ = ("_dead", "_first", "_offsets", "_slots", "_strays")

    def __init__(self) -> None:
        self._offsets = array("q")
        """Invariant: strictly rising."""
        self._slots = array("I")
        """GONE: removed, and still in its place. Invariant: not more than about half are."""
        self._dead = 0
        self._first = 0
        """Invariant: everything before it is GONE."""
        self._strays: dict[int, int] = {}
        """Added out of order, which happens at replay only: a compacted ledger tells of a rescheduled one last."""

    def __len__(self) -> int:
        return len(self._offsets) - self._dead + len(self._strays)

    def add(self, offset: int, slot: int) -> None:
        """`offset` is not in the index."""
        if not self._offsets or offset > self._offsets[-1]:
            self._offsets.append(offset)
            self._slots.append(slot)
            return
        self._strays[offset] = slot
        self._tidy_sometimes()

    def add_many(self, offsets: "array[int]", slots: range) -> None:
        """`offsets` rise."""
        if not self._offsets or offsets[0] > self._offsets[-1]:
            self._offsets.extend(offsets)
            self._slots.extend(slots)
            return
        self._strays.update(zip(offsets, slots))
        self._tidy_sometimes()

    def _tidy_sometimes(self) -> None:
        if len(self._strays) > _STRAYS_MIN + len(self._offsets) // 16:
            self._tidy()

    def find(self, offset: int) -> int:
        """Its slot, or NOWHERE."""
        place = bisect_left(self._offsets, offset)
        if place < len(self._offsets) and self._offsets[place] == offset and self._slots[place] != GONE:
            return self._slots[place]
        return self._strays.get(offset, NOWHERE) if self._strays else NOWHERE

    def remove(self, offset: int) -> int:
        """The slot that it had, or NOWHERE."""
        place = bisect_left(self._offsets, offset)
        if place == len(self._offsets) or self._offsets[place] != offset or self._slots[place] == GONE:
            return self._strays.pop(offset, NOWHERE)
        slot = self._slots[place]
        self._slots[place] = GONE
        self._dropped(1)
        return slot

    def remove_many(self, offsets: "array[int]") -> "array[int]":
        """The slots that they had, in that order; without those that had none."""
        count, place = len(offsets), bisect_left(self._offsets, offsets[0]) if offsets else 0
        slots = self._slots[place : place + count]
        # What was sent together is mostly due together: then it is one piece here.
        if self._offsets[place : place + count] != offsets or GONE in slots:
            found = map(self.remove, offsets)
            return array("I", (slot for slot in found if slot != NOWHERE))
        self._slots[place : place + count] = array("I", [GONE]) * count
        self._dropped(count)
        return slots

    def _dropped(self, count: int) -> None:
        """So many more are gone."""
        self._dead += count
        if self._dead <= _DEAD_MIN or 2 * self._dead <= len(self._offsets):
            return
        first = self._skip_gone()
        if 2 * (self._dead - first) > len(self._offsets) - first:
            self._tidy()
        else:  # mostly what came first went first: with a million waiting, a walk over all would hold everything up
            del self._offsets[:first], self._slots[:first]
            self._dead -= first
            self._first = 0

    def _skip_gone(self) -> int:
        """How many of the first ones are gone."""
        slots, first = self._slots, self._first
        while first < len(slots) and slots[first] == GONE:
            first += 1
        self._first = first
        return first

    def _tidy(self) -> None:
        """Put everything in order and leave out what is gone."""
        alive = list(map(GONE.__ne__, self._slots))
        offsets = array("q", compress(self._offsets, alive))
        slots = array("I", compress(self._slots, alive))
        if self._strays:
            offsets.extend(self._strays)
            slots.extend(self._strays.values())
            order = sorted(range(len(offsets)), key=offsets.__getitem__)
            offsets = array("q", map(offsets.__getitem__, order))
            slots = array("I", map(slots.__getitem__, order))
            self._strays = {}
        self._offsets, self._slots = offsets, slots
        self._dead = self._first = 0

    def first(self) -> int | None:
        """The lowest offset."""
        if self._strays:
            self._tidy()
        first = self._skip_gone()
        return self._offsets[first] if first < len(self._slots) else None

    def walk(self, after: int = NOWHERE) -> Iterator[tuple[int, int]]:
        """(offset, slot) in rising order, of offsets above `after`; nothing may change meanwhile."""
        if self._strays:
            self._tidy()
        for place in range(bisect_left(self._offsets, after + 1), len(self._offsets)):
            if self._slots[place] != GONE:
                yield self._offsets[place], self._slots[place]

    def slots(self) -> list[int]:
        """All of them, in the order of their offsets."""
        return [slot for slot in self.copied_slots() if slot != GONE]

    def copied_slots(self) -> "array[int]":
        """In the order of their offsets, with GONE here and there: a copy costs next to nothing."""
        if self._strays:
            self._tidy()
        return self._slots[self._first :]

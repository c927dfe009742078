"""A hierarchical timer wheel: to set, drop and find a timer costs the same with ten pending as with a million.

Four levels of buckets, each as wide as a whole turn of the level below: 512 of 5 ms, 64 of 2.56 s, 64 of 2.73
minutes, 64 of 2.91 hours. What lies beyond a turn of the last level is kept in buckets of its width, as far out as
anybody asks. A timer lies in the finest level whose present turn it falls into; when the time of a coarse bucket
comes, what it holds moves down.

A due time counts as the first tick at or after it, so a timer is never early and less than a tick late. A bucket whose
tick has come is due as a whole: the due times in it are not looked at again.

A dropped timer leaves its slot number behind in its bucket. The slot says whether that is still meant: a bucket skips
what is out of date when it is drained, and is cleaned before that if most of it is. So no bucket is ever changed while
somebody walks over it, and a drop cannot lose another timer.

The wheel never turns back. After the clock was set back, a new timer may be due before what the wheel has passed
already: such timers wait in a heap beside it.
"""

from array import array
from bisect import bisect_right, insort
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from goqueue.machines.delays.slots import FREE, TIMED, Slots

TICK_MS = 5
SHIFTS = (0, 9, 15, 21)
"""A bucket of each level is 2 to the power of so many ticks wide."""
TURN_SHIFT = 27
"""A turn of the last level: 7.77 days."""
LEVELS = len(SHIFTS)

_STALE_MIN = 64
_EXACT_MAX = 10_000
_SLOT_BITS = 32
_SLOT_MASK = (1 << _SLOT_BITS) - 1


class Drained(NamedTuple):
    """What `TimerWheel.collect` found: nothing has changed before it is given to `TimerWheel.commit`."""

    now_ms: int
    tick: int
    due: list[int]
    """Slots, in no order."""
    kept: list[int]
    """Slots of coarse buckets whose time has come, but not that of these slots; by their due times."""


class _Level:
    __slots__ = ("buckets", "numbers", "stale")

    def __init__(self) -> None:
        self.buckets: dict[int, array[int]] = {}
        self.numbers: list[int] = []
        """Invariant: the keys of `buckets`, sorted."""
        self.stale: dict[int, int] = {}
        """How many entries of a bucket are out of date. One whose slot was taken again for the same bucket counts too:
        with none out of date, every entry is meant and is there once."""

    def drop(self, number: int) -> None:
        del self.buckets[number]
        self.stale.pop(number, None)
        del self.numbers[bisect_right(self.numbers, number) - 1]


class TimerWheel:
    """Invariant: a slot is TIMED if and only if it is in the heap, being due at or before `_tick`, or in the bucket
    that `_place` names for it."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._tick = 0
        """All up to this tick was drained. 0: it has not been told the time yet."""
        self._levels = tuple(_Level() for _ in SHIFTS)
        self._behind: list[int] = []
        """A heap of due time and slot in one number."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def _place(self, tick: int) -> tuple[int, int]:
        """Level and number of the bucket for a tick that is still to come."""
        distance = tick ^ self._tick
        if distance < 1 << 9:
            return 0, tick
        if distance < 1 << 15:
            return 1, tick >> 9
        if distance < 1 << 21:
            return 2, tick >> 15
        return 3, tick >> 21

    # Changes

    def add(self, slot: int) -> None:
        """From now on it is TIMED and waits for its due time."""
        due_ms = self._slots.due_ms[slot]
        self._slots.state[slot] = TIMED
        self._count += 1
        tick = -(-due_ms // TICK_MS)
        if tick <= self._tick:
            heappush(self._behind, due_ms << _SLOT_BITS | slot)
            return
        level, number = self._place(tick)
        bucket = self._levels[level].buckets.get(number)
        if bucket is None:
            self._open_bucket(level, number).append(slot)
        else:
            bucket.append(slot)

    def add_many(self, slots: Iterable[int]) -> None:
        """As `add`, for a restart."""
        due_ms, state = self._slots.due_ms, self._slots.state
        ordered = sorted(slots, key=due_ms.__getitem__)
        passed = bisect_right(ordered, self._tick * TICK_MS, key=due_ms.__getitem__)
        for slot in ordered[:passed]:
            self.add(slot)
        for slot in ordered[passed:]:
            state[slot] = TIMED
        self._count += len(ordered) - passed
        self._spread(array("I", ordered[passed:]))

    def _spread(self, ordered: "array[int]") -> None:
        """Slots by their due times, all of them still to come: a bucket is filled in one go."""
        due_ms, begin, end = self._slots.due_ms, 0, len(ordered)
        while begin < end:
            level, number = self._place(-(-due_ms[ordered[begin]] // TICK_MS))
            last_ms = (((number + 1) << SHIFTS[level]) - 1) * TICK_MS
            until = bisect_right(ordered, last_ms, begin, end, key=due_ms.__getitem__)
            bucket = self._levels[level].buckets.get(number)
            (self._open_bucket(level, number) if bucket is None else bucket).extend(ordered[begin:until])
            begin = until

    def _open_bucket(self, level: int, number: int) -> "array[int]":
        bucket = self._levels[level].buckets[number] = array("I")
        insort(self._levels[level].numbers, number)
        return bucket

    def remove(self, slot: int) -> None:
        """It never fires. The slot is FREE for its owner to use otherwise."""
        self._slots.state[slot] = FREE
        self._count -= 1
        tick = -(-self._slots.due_ms[slot] // TICK_MS)
        if tick <= self._tick:
            return
        depth, number = self._place(tick)
        level = self._levels[depth]
        stale = level.stale[number] = level.stale.get(number, 0) + 1
        if stale > _STALE_MIN and 2 * stale > len(level.buckets[number]):
            meant = self._meant(depth, number)
            if meant:
                level.buckets[number] = array("I", meant)
                del level.stale[number]
            else:
                level.drop(number)

    def commit(self, drained: Drained) -> None:
        """What is due leaves the wheel: its slots are their owner's from now on."""
        for level, shift in zip(self._levels, SHIFTS):
            passed = bisect_right(level.numbers, drained.tick >> shift)
            for number in level.numbers[:passed]:
                del level.buckets[number]
                level.stale.pop(number, None)
            del level.numbers[:passed]
        while self._behind and self._behind[0] >> _SLOT_BITS <= drained.now_ms:
            heappop(self._behind)
        self._tick = drained.tick
        self._count -= len(drained.due)
        self._spread(array("I", drained.kept))

    # Questions

    def next_deadline_ms(self) -> int | None:
        """When there is something to collect, be it only a coarse bucket."""
        if not self._tick and self._count:
            return 0  # after a restart it does not know the time: the first drain sets it going
        deadline = self._behind[0] >> _SLOT_BITS if self._behind else None
        for level, shift in zip(self._levels, SHIFTS):
            if level.numbers:  # everything on a coarser level comes later
                first = (level.numbers[0] << shift) * TICK_MS
                return first if deadline is None else min(first, deadline)
        return deadline

    def collect(self, now_ms: int) -> Drained | None:
        """What is due, if there is anything to be done."""
        deadline = self.next_deadline_ms()
        if deadline is None or deadline > now_ms:
            return None
        tick = max(now_ms // TICK_MS, self._tick)
        due = self._due_behind(now_ms)
        kept: list[int] = []
        for depth, (level, shift) in enumerate(zip(self._levels, SHIFTS)):
            present = tick >> shift
            for number in level.numbers:
                if number > present:
                    break
                meant = self._meant(depth, number)
                if number < present or depth == 0:
                    due += meant
                else:  # sorted, and not one by one: it may hold very many, and what is due waits for them
                    when = self._slots.due_ms.__getitem__
                    meant.sort(key=when)
                    passed = bisect_right(meant, tick * TICK_MS, key=when)
                    due += meant[:passed]
                    kept = sorted([*kept, *meant[passed:]], key=when) if kept else meant[passed:]
        return Drained(now_ms, tick, due, kept)

    def _meant(self, depth: int, number: int) -> list[int]:
        """The slots that wait in a bucket."""
        level, shift = self._levels[depth], SHIFTS[depth]
        bucket = level.buckets[number]
        if number not in level.stale:
            return bucket.tolist()
        due_ms, state = self._slots.due_ms, self._slots.state
        before_ms = ((number << shift) - 1) * TICK_MS
        last_ms = (((number + 1) << shift) - 1) * TICK_MS
        found = {slot: None for slot in bucket if state[slot] == TIMED and before_ms < due_ms[slot] <= last_ms}
        return list(found)

    def _due_behind(self, now_ms: int) -> list[int]:
        """Reads only, so it walks the top of the heap."""
        found: dict[int, None] = {}
        heap, places = self._behind, [0]
        while places:
            place = places.pop()
            if place < len(heap) and (due_ms := heap[place] >> _SLOT_BITS) <= now_ms:
                slot = heap[place] & _SLOT_MASK
                if self._slots.state[slot] == TIMED and self._slots.due_ms[slot] == due_ms:
                    found[slot] = None
                places += (2 * place + 1, 2 * place + 2)
        return list(found)

    def earliest_due_ms(self) -> int | None:
        """When the first timer is due; if it shares a coarse bucket with very many, when that bucket begins."""
        dues = [self._slots.due_ms[slot] for slot in self._due_behind(1 << 62)]
        for depth, level in enumerate(self._levels):
            for number in level.numbers:
                if len(level.buckets[number]) > _EXACT_MAX:
                    dues.append((number << SHIFTS[depth]) * TICK_MS)
                else:
                    dues += [self._slots.due_ms[slot] for slot in self._meant(depth, number)]
                if dues:
                    return min(dues)
        return min(dues, default=None)

    def by_level(self) -> tuple[int, ...]:
        """How many timers lie on each level, and how many beyond the present turn of the last."""
        counts = [0] * (LEVELS + 1)
        turn = self._tick >> TURN_SHIFT
        for depth, level in enumerate(self._levels):
            for number, bucket in level.buckets.items():
                is_beyond = depth == LEVELS - 1 and number >> (TURN_SHIFT - SHIFTS[-1]) != turn
                counts[LEVELS if is_beyond else depth] += len(bucket) - level.stale.get(number, 0)
        counts[0] += self._count - sum(counts)
        return tuple(counts)

"""Fair queues inside a window: whose record comes next, where several senders have records ready in one lane.

The records of one sender are linked in the order of offsets, as those of a key are in `KeyChains`: eight bytes per
record, no object. A sender's line begins where it was last served and only moves on. What becomes ready again behind
that (a retry, a lease that ended) goes to the front of its sender's line. Nothing of it is stored: a restart begins
with all senders level.
"""

import re
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from math import frexp, ldexp

from goqueue.machines.deliveries.commands import Span
from goqueue.model.lanes import LANES

NO_SENDER = 0
SENDERS_MAX = 10_000
"""Senders that have a line of their own. More of them share lines."""
SHARED_LINES = 1000
TURN_EVERY = 32
"""One of so many records goes to whoever was served longest ago, however much it holds: a sender with a backlog, or one
whose consumer hangs, is served last, but not never.
"""
HALF_LIFE = 1000
"""After so many records a served one counts half."""
_GROWTH = 2 ** (1 / HALF_LIFE)
_RESCALED_BITS = 512
USED_LITTLE = 16
"""Senders that used less are level: so the second message of a quiet one is not passed by the first ones of others."""
_LITTLE = 0
_NOWHERE = -1
_STALE_MAX = 64
_LANE_BITS = 0x0F
_LEASED = 0x10
_NOT_DONE = re.compile(rb"[^\x50\x60]+")


class Looks:
    """Which of the records that are ready may be delivered now, as far as one may look."""

    def __init__(self, may_have: Callable[[int], bool], looks_max: int) -> None:
        self._may_have = may_have
        self.left = looks_max

    def allow(self, offset: int) -> bool:
        self.left -= 1
        return self.left >= 0 and self._may_have(offset)


class Line:
    """What one sender has in one lane. Invariant: each record that is ready is linked from `head`, or among `again`."""

    __slots__ = ("again", "head", "leased", "level", "ready", "used")

    def __init__(self) -> None:
        self.ready = 0
        self.leased = 0
        self.used = 0.0
        """Records that were served, later ones counting more: see `FairLane.weight`."""
        self.level = 0
        """Where it stands among `levels`, while something is ready."""
        self.head = _NOWHERE
        self.again: deque[int] = deque()


class FairLane:
    """A sender's use is how many of its records were served lately, and how many are leased now. Whoever used less
    comes first; senders that used little, or about the same, within a factor of two, take turns. So a sender that sends
    less than its share waits for nobody's backlog, and if all send more they are served equally.

    Invariant: `levels` and `turns` name the senders that have something ready, by what they used and by how long ago
    they were served.
    """

    __slots__ = ("_rescaled", "levels", "lines", "served", "turns", "weight")

    def __init__(self) -> None:
        self.lines: dict[int, Line] = {}
        self.levels: dict[int, dict[int, None]] = {}
        self.turns: dict[int, None] = {}
        self.served = 0
        self.weight = 1.0
        """What the next record counts: those before need not be made less then."""
        self._rescaled = 0

    def line(self, sender: int) -> Line:
        line = self.lines.get(sender)
        if line is None:
            line = self.lines[sender] = Line()
        return line

    def change(self, sender: int, ready: int, leased: int) -> None:
        """So many more, or fewer."""
        line = self.line(sender)
        was_ready, old = bool(line.ready), line.level
        line.ready += ready
        line.leased += leased
        line.level = self.level(line)
        is_served = leased > 0
        if was_ready and (is_served or not line.ready or line.level != old):
            self.levels[old].pop(sender)
            if not self.levels[old]:
                del self.levels[old]
            was_ready = False
        if not line.ready:
            line.head = _NOWHERE
            line.again.clear()
            self.turns.pop(sender, None)
        elif not was_ready:
            self.levels.setdefault(line.level, {})[sender] = None
            if is_served:
                self.turns.pop(sender, None)
            self.turns[sender] = None

    def level(self, line: Line, more: int = 0) -> int:
        """With so many more leased."""
        used = line.used + (line.leased + 2 * more) * self.weight
        return self._rescaled + frexp(used)[1] if used > USED_LITTLE * self.weight else _LITTLE

    def serve(self, sender: int, count: int) -> None:
        self.line(sender).used += count * self.weight
        self.served += count
        self.weight *= _GROWTH**count
        if self.weight > 2.0**_RESCALED_BITS:
            for line in self.lines.values():
                line.used = ldexp(line.used, -_RESCALED_BITS)
            self.weight = ldexp(self.weight, -_RESCALED_BITS)
            self._rescaled += _RESCALED_BITS
        self.change(sender, -count, count)


class FairQueues:
    """Invariant: `_tails` has every sender that has something ready or leased, and names the last of its chain."""

    def __init__(self) -> None:
        self._senders = array("I")
        self._steps = array("I")
        """How far it is to the next record of the same sender. 0: there is none."""
        self._tails: dict[int, int] = {}
        self._lanes = [FairLane() for _ in range(LANES)]
        self._idle: dict[int, None] = {}
        """Senders that may have nothing left."""

    @classmethod
    def over(cls, count: int, base: int, counts: Sequence[int], hints: Sequence[int]) -> "FairQueues":
        """Of a window of `count` records in which nobody has named a sender yet: all is of one. `counts` says how many
        are of each kind, `hints` below which nothing of a lane is ready.
        """
        fair = cls()
        fair.extend(count)
        if count:
            fair._steps[:-1] = array("I", (1,)) * (count - 1)
            fair._tails[NO_SENDER] = base + count - 1
            fair._idle[NO_SENDER] = None
            for lane, state in enumerate(fair._lanes):
                state.change(NO_SENDER, counts[lane], counts[_LEASED | lane])
                if counts[lane]:
                    state.lines[NO_SENDER].head = hints[lane]
        return fair

    @property
    def active(self) -> int:
        """Senders that have something ready or leased."""
        return len(self._tails)

    def sender_at(self, index: int) -> int:
        return self._senders[index]

    # Changing

    def extend(self, count: int) -> None:
        self._senders.frombytes(bytes(self._senders.itemsize * count))
        self._steps.frombytes(bytes(self._steps.itemsize * count))

    def observe(self, spans: Sequence[Span], kinds: bytearray, base: int) -> None:
        """These lie at the end of `kinds`, which says what each of them is."""
        self.extend(len(kinds) - len(self._senders))
        for span in spans:
            if not span.is_visible:
                continue
            sender = self._known(span.sender)
            low, high = span.first - base, span.last + 1 - base
            self._senders[low:high] = array("I", (sender,)) * (high - low)
            for kind, group in groupby(range(low, high), kinds.__getitem__):
                if kind < LANES:
                    found = list(group)
                    self._append(sender, kind, found[0], found[-1], base)

    def _known(self, sender: int) -> int:
        if sender in self._tails or len(self._tails) < SENDERS_MAX:
            return sender
        return sender % SHARED_LINES + 1

    def _append(self, sender: int, lane: int, first: int, last: int, base: int) -> None:
        """Neighbours, ready in this lane."""
        tail = self._tails.get(sender, _NOWHERE)
        if tail >= base:
            self._steps[tail - base] = base + first - tail
        self._steps[first:last] = array("I", (1,)) * (last - first)
        self._tails[sender] = base + last
        state = self._lanes[lane]
        state.change(sender, last + 1 - first, 0)
        line = state.lines[sender]
        if line.head == _NOWHERE:
            line.head = base + first

    def lease(self, lane: int, low: int, high: int, kinds: bytearray, base: int) -> None:
        """These were ready and are leased now."""
        state = self._lanes[lane]
        for sender, group in groupby(self._senders[low:high]):
            count = sum(1 for _ in group)
            state.serve(sender, count)
            line = state.lines[sender]
            if line.ready:
                self._pass_over(line, lane, kinds, base)

    def _pass_over(self, line: Line, lane: int, kinds: bytearray, base: int) -> None:
        """Up to what is ready."""
        again = line.again
        while again and (again[0] < base or kinds[again[0] - base] != lane):
            again.popleft()
        if len(again) > line.ready + _STALE_MAX:
            line.again = deque(dict.fromkeys(each for each in again if each >= base and kinds[each - base] == lane))
        if line.head != _NOWHERE:
            index = line.head - base
            while kinds[index] != lane:
                step = self._steps[index]
                if not step:
                    line.head = _NOWHERE
                    return
                index += step
            line.head = base + index

    def turn(self, low: int, old: bytearray, kinds: bytearray, base: int) -> None:
        """From `low` on were records of `old` kinds. What was not observed here yet is left out."""
        known = len(self._senders) - low
        for found in _NOT_DONE.finditer(old, 0, max(0, known)):
            begin, end = found.span()
            now = kinds[low + begin : low + end]
            counted = Counter(zip(self._senders[low + begin : low + end], old[begin:end], now, strict=True))
            for (sender, was, kind), count in counted.items():
                if was != kind:
                    self._turn_some(sender, was, kind, count)
            if min(now) < LANES:
                for index in range(begin, end):
                    kind = kinds[low + index]
                    if kind < LANES and kind != old[index]:
                        line = self._lanes[kind].lines[self._senders[low + index]]
                        line.again.append(base + low + index)

    def _turn_some(self, sender: int, was: int, kind: int, count: int) -> None:
        ready = -count if was < LANES else 0
        leased = -count if was & ~_LANE_BITS == _LEASED else 0
        if kind < LANES:
            ready += count
        if ready or leased:
            self._lanes[was & _LANE_BITS].change(sender, ready, leased)
            self._tails.setdefault(sender, _NOWHERE)
            self._idle[sender] = None

    def finish(self, low: int, count: int, lane: int) -> None:
        """So many from `low` on were leased and are done."""
        for sender, group in groupby(self._senders[low : low + count]):
            self._lanes[lane].change(sender, 0, -sum(1 for _ in group))
            self._idle[sender] = None

    def unfinish(self, low: int, count: int, lane: int) -> None:
        """As before `finish`."""
        for sender, group in groupby(self._senders[low : low + count]):
            self._lanes[lane].change(sender, 0, sum(1 for _ in group))
            self._idle.pop(sender, None)

    def sweep(self) -> None:
        """Forget those who have nothing left: nothing of theirs is linked that will be delivered."""
        for sender in self._idle:
            is_left = False
            for state in self._lanes:
                line = state.lines.get(sender)
                if line is not None:
                    if line.ready or line.leased:
                        is_left = True
                    else:
                        del state.lines[sender]
            if not is_left:
                self._tails.pop(sender, None)
        self._idle.clear()

    def trim(self, count: int, kinds: bytearray, base: int) -> None:
        """The first `count` go; none of them is ready. `kinds` and `base` are as before."""
        for lane, state in enumerate(self._lanes):
            for line in state.lines.values():
                if _NOWHERE < line.head < base + count:
                    self._pass_over(line, lane, kinds, base)
        del self._senders[:count]
        del self._steps[:count]

    # Asking

    def pick(self, lane: int, count: int, kinds: bytearray, base: int, looks: Looks | None = None) -> list[int]:
        """Offsets of the next `count` that are ready, each of the sender that used least; of several, of the one whose
        turn it is. Reads only.
        """
        state = self._lanes[lane]
        picked: list[int] = []
        taken: dict[int, int] = {}
        walks: dict[int, Iterator[int]] = {}

        def take(sender: int) -> bool:
            walk = walks.get(sender)
            if walk is None:
                walk = walks[sender] = self._walk(state.lines[sender], lane, kinds, base, looks)
            offset = next(walk, None)
            if offset is None:
                return False
            picked.append(offset)
            taken[sender] = taken.get(sender, 0) + 1
            return True

        turns = iter(state.turns)
        levels = iter(sorted(state.levels))
        level = next(levels, None)
        later: dict[int, list[int]] = {}
        """By level, who was served already and is there now."""
        while level is not None or later:
            now = min(later) if level is None else min((level, *later))
            for sender in chain(state.levels.get(now, ()) if now == level else (), later.pop(now, ())):
                if len(picked) < count and (state.served + len(picked) + 1) % TURN_EVERY == 0:
                    next((True for each in turns if each not in taken and take(each)), None)
                if len(picked) >= count:
                    return picked
                line = state.lines[sender]
                reached = state.level(line, taken[sender]) if sender in taken else line.level
                if reached > now or take(sender):
                    later.setdefault(max(now, state.level(line, taken[sender])), []).append(sender)
            if now == level:
                level = next(levels, None)
        return picked

    def _walk(self, line: Line, lane: int, kinds: bytearray, base: int, looks: Looks | None) -> Iterator[int]:
        given: set[int] = set()
        for offset in line.again:
            if offset >= base and kinds[offset - base] == lane and offset not in given:
                given.add(offset)
                if looks is None or looks.allow(offset):
                    yield offset
        if line.head == _NOWHERE:
            return
        index, step = line.head - base, 1
        while step and (looks is None or looks.left > 0):
            if kinds[index] == lane:
                offset = base + index
                if offset not in given and (looks is None or looks.allow(offset)):
                    yield offset
            step = self._steps[index]
            index += step

"""A window of a log as one group sees it: a byte per offset says what is the matter with it.

Kinds hold a state and a lane. Ready ones are the bare lanes, so that the next ready record of a lane is a `find` and
its neighbours a regular expression, both in C: no object and no Python loop per record.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence

from goqueue.machines.deliveries.blocks import (
    BLOCK,
    FOREVER,
    Range,
    Retry,
    blocks_of,
    clipped,
    ranges_of,
    shared,
    unpack_bits,
    unpack_retries,
    without,
)
from goqueue.machines.deliveries.commands import NEVER, NO_KEY, OWN_WINDOW, Span
from goqueue.machines.deliveries.facts import BlockStored, DeadStored
from goqueue.machines.deliveries.fair import FairQueues
from goqueue.machines.deliveries.keys import KeyChains
from goqueue.machines.deliveries.lanes import NO_DEFICITS
from goqueue.model.lanes import LANES

READY, LEASED, WAITING, HELD, DEAD, SETTLED, GAP = range(0x00, 0x70, 0x10)
"""HELD: behind a record of the same key. DEAD: its dead letter is not written yet. GAP: was never a record for us.
From DEAD on nothing is ever delivered again; from SETTLED on there is nothing left to do.
"""
UNDONE, FREED = 0x70, 0x71
"""Changes, not states: ready as if never leased; no longer held."""

WINDOW_MAX = 4 * 1024 * 1024
"""Offsets between the first that is not settled and the last that may be observed."""
ATTEMPTS_MAX = 254

LANE_BITS = 0x0F
_TRIM_MIN = 4096
_SETTLED_BYTE = bytes((SETTLED,))
_LEASED_BYTES = bytes(LEASED | lane for lane in range(LANES))
_DONE = re.compile(b"[%c%c]+" % (SETTLED, GAP))
_RUNS = [re.compile(b"%c+" % lane) for lane in range(LANES)]
_LEASED_RUNS = re.compile(b"[%c-%c]+" % (LEASED, LEASED | LANES - 1))
_GAPS = re.compile(b"%c+" % GAP)
_ONE_MORE = bytes(min(count + 1, 255) for count in range(256))
_ONE_LESS = bytes(max(count - 1, 0) for count in range(256))


def _table(state: int) -> bytes:
    """What a kind becomes: done stays done, a dead letter can only be settled, who is held must be freed first."""
    stays = {READY: (HELD, DEAD), WAITING: (HELD, DEAD), HELD: (DEAD,), DEAD: (DEAD,), SETTLED: (), GAP: (DEAD,)}

    def turned(kind: int) -> int:
        old, lane = kind & ~LANE_BITS, kind & LANE_BITS
        if state == FREED:
            return lane if old == HELD else kind
        if old >= SETTLED or old in stays[state]:
            return kind
        return state if state >= SETTLED else state | lane

    return bytes(turned(kind) for kind in range(256))


_TABLES = {state: _table(state) for state in (READY, WAITING, HELD, DEAD, SETTLED, GAP, FREED)}


class Window:
    """Invariant: `kinds`, `attempts` and `lease_of` cover `base`..`end`; everything below `start` is done.
    Invariant: no record of a lane is ready below its hint. Invariant: `counts` says how often each kind occurs.
    Invariant: a record with attempts that is not leased is among the retries of its stored block.
    """

    def __init__(self, number: int, start: int, orders_by_key: bool, chosen: Sequence[Range] = ()) -> None:
        self.number = number
        self.chosen = chosen
        """Of a replay: what is delivered again; the rest lies idle."""
        self.limit = chosen[-1][1] + 1 if number != OWN_WINDOW else FOREVER
        self.stored: dict[int, BlockStored] = {}
        self.stored_start = start
        """As the ledger knows it. Markers and gaps may have moved `start` on."""
        self.takes_old = True
        """Something of it may have been leased before the last restart."""
        self.forgot_below = 0
        """Leases with lower numbers, though of this boot, are as those from before the last restart."""
        self.shares = NO_DEFICITS
        self.unserved_since_ms = [0] * LANES
        self.clear(start, orders_by_key)

    def clear(self, start: int, orders_by_key: bool) -> None:
        """Nothing was observed yet."""
        self.base = self.start = self.end = start
        self.kinds = bytearray()
        self.attempts = bytearray()
        """Deliveries, the current one included."""
        self.lease_of = array("Q")
        """The last lease since the start of this process."""
        self.counts = [0] * UNDONE
        self.hints = [start] * LANES
        self.expires: dict[int, array[int]] = {}
        """By block, where something expires at all."""
        self.keys = KeyChains() if orders_by_key else None
        self.fair: FairQueues | None = None
        """From the first record on that names a sender, until all is done."""
        self.is_plain = not orders_by_key
        """Whatever is ready may be leased in the order of offsets."""

    @property
    def is_finished(self) -> bool:
        return self.start >= self.limit

    def has_ready(self) -> bool:
        return any(self.counts[:LANES])

    def only_lane(self) -> int | None:
        """The lane of all that is ready, if it is one."""
        ready = self.counts[:LANES]
        most = sum(ready)
        return ready.index(most) if most and most in ready else None

    # Observing

    def observe(self, spans: Sequence[Span], dead: Mapping[int, DeadStored], now_ms: int) -> Iterator[tuple[int, int]]:
        """New offsets at the end. Yields blocks in which something is due later, and when."""
        first = self.end
        for span in spans:
            self._append(span, now_ms)
        self.end = self.base + len(self.kinds)
        count = self.end - first
        self.attempts += bytes(count)
        self.lease_of.frombytes(bytes(self.lease_of.itemsize * count))
        last = self.end - 1
        for hole in without([(first, last)], self.chosen) if self.chosen else ():
            self.turn(*hole, GAP, now_ms)
        for number in shared(self.stored, blocks_of(first, last)):
            yield from self._overlay(self.stored[number], first, last, now_ms)
        for offset in shared(dead, range(first, last + 1)):
            if dead[offset].window == self.number:
                self.turn(offset, offset, DEAD, now_ms)
        if self.keys is not None:
            self.keys.extend(count)
        names_senders = self.fair is not None
        for span in spans:
            if self.keys is not None and span.key_hash != NO_KEY:
                self._chain(self.keys, span, now_ms)
            # Whoever asks for old records again wants them, expired or not.
            if span.expires_at_ms != NEVER and span.is_visible and self.number == OWN_WINDOW:
                yield from self._note_expiry(span)
            if span.sender:
                names_senders = True
        if names_senders:
            self._share(spans, first)
        self.advance(self.start)

    def _share(self, spans: Sequence[Span], first: int) -> None:
        """`spans`, from `first` on, are the first that name their senders, or follow those."""
        if self.fair is None:
            seen = first - self.base
            counts = [count - self.kinds.count(kind, seen) for kind, count in enumerate(self.counts)]
            self.fair, self.is_plain = FairQueues.over(seen, self.base, counts, self.hints), False
        self.fair.observe(spans, self.kinds, self.base)

    def _append(self, span: Span, now_ms: int) -> None:
        count = span.last - span.first + 1
        kind = span.lane if span.is_visible else GAP
        if kind < LANES and not self.counts[kind]:
            self.unserved_since_ms[kind] = now_ms
        self.counts[kind] += count
        self.kinds += bytes((kind,)) * count

    def _overlay(self, block: BlockStored, first: int, last: int, now_ms: int) -> Iterator[tuple[int, int]]:
        """What was known before the restart about what is observed now."""
        for low, high in clipped(ranges_of(block.number, unpack_bits(block.settled)), first, last):
            self.turn(low, high, SETTLED, now_ms)
        for retry in unpack_retries(block.number, block.retries, first, last):
            for low, high in clipped([retry[:2]], first, last):
                self.attempts[low - self.base : high + 1 - self.base] = bytes((retry.attempts,)) * (high + 1 - low)
                if retry.visible_at_ms > now_ms:
                    self.turn(low, high, WAITING, now_ms)
                    yield block.number, retry.visible_at_ms

    def _chain(self, keys: KeyChains, span: Span, now_ms: int) -> None:
        for offset in range(span.first, span.last + 1):
            if self.kinds[offset - self.base] < DEAD and not keys.add(offset - self.base, self.base, span.key_hash):
                self.turn(offset, offset, HELD, now_ms)

    def _note_expiry(self, span: Span) -> Iterator[tuple[int, int]]:
        for number in blocks_of(span.first, span.last):
            times = self.expires.get(number)
            if times is None:
                times = self.expires[number] = array("q", (FOREVER,)) * BLOCK
            for offset in range(max(span.first, number * BLOCK), min(span.last + 1, (number + 1) * BLOCK)):
                times[offset % BLOCK] = span.expires_at_ms
            yield number, span.expires_at_ms

    # Changing

    def turn(self, first: int, last: int, state: int, now_ms: int) -> bytearray:
        """All of first..last, which were observed, into `state` as far as they may; what they were."""
        low, high = first - self.base, last + 1 - self.base
        table = _TABLES[state]
        old = self.kinds[low:high]
        self.kinds[low:high] = old.translate(table)
        if old.count(kind := old[0]) == len(old):
            self._recount(kind, table[kind], len(old), first, now_ms)
        else:
            for each in set(old):
                self._recount(each, table[each], old.count(each), first, now_ms)
        if self.fair is not None:
            self.fair.turn(low, old, self.kinds, self.base)
        return old

    def _recount(self, old: int, new: int, count: int, first: int, now_ms: int) -> None:
        if old == new:
            return
        self.counts[old] -= count
        if new < LANES:
            if not self.counts[new]:
                self.unserved_since_ms[new] = now_ms
            self.hints[new] = min(self.hints[new], first)
        self.counts[new] += count

    def lease(self, lane: int, first: int, last: int, number: int, now_ms: int, *, is_fresh: bool) -> None:
        """`is_fresh`: none of first..last, which are ready in this lane, was delivered before."""
        base, kinds, hints, counts = self.base, self.kinds, self.hints, self.counts
        low, count, leased = first - base, last + 1 - first, LEASED | lane
        high = low + count
        if count == 1:
            kinds[low] = leased
            self.attempts[low] = 1 if is_fresh else _ONE_MORE[self.attempts[low]]
            self.lease_of[low] = number
        else:
            kinds[low:high] = _LEASED_BYTES[lane : lane + 1] * count
            self.attempts[low:high] = b"\1" * count if is_fresh else self.attempts[low:high].translate(_ONE_MORE)
            self.lease_of[low:high] = array("Q", (number,)) * count
        counts[lane] -= count
        counts[leased] += count
        self.unserved_since_ms[lane] = now_ms
        hint = hints[lane]
        if hint <= last:
            # Some may have been passed over: they had expired, or their key is busy elsewhere.
            passed_over = kinds.find(lane, hint - base, low) if hint < first else -1
            hints[lane] = last + 1 if passed_over < 0 else base + passed_over
        if self.fair is not None:
            self.fair.lease(lane, low, high, self.kinds, self.base)

    def finish(self, first: int, last: int, kind: int) -> None:
        """first..last, all of them leased and of this kind, are settled. Nothing is trimmed: see `unfinish`."""
        low, count, kinds, counts = first - self.base, last + 1 - first, self.kinds, self.counts
        if count == 1:
            kinds[low] = SETTLED
        else:
            kinds[low : low + count] = _SETTLED_BYTE * count
        counts[kind] -= count
        counts[SETTLED] += count
        if first <= self.start:
            after = last + 1
            is_last_done = after >= self.end or kinds[low + count] < SETTLED
            self.start = after if is_last_done else self.done_until(after)
        if self.fair is not None:
            self.fair.finish(low, count, kind & LANE_BITS)

    def unfinish(self, first: int, last: int, kind: int, now_ms: int) -> None:
        """As before `finish`."""
        low, count = first - self.base, last + 1 - first
        self.kinds[low : low + count] = bytes((kind,)) * count
        self._recount(SETTLED, kind, count, first, now_ms)
        self.start = min(self.start, first)
        if self.fair is not None:
            self.fair.unfinish(low, count, kind & LANE_BITS)

    def undo(self, first: int, last: int, now_ms: int) -> None:
        low, high = first - self.base, last + 1 - self.base
        self.attempts[low:high] = self.attempts[low:high].translate(_ONE_LESS)
        self.lease_of[low:high] = array("Q", (0,)) * (high - low)
        self.turn(first, last, READY, now_ms)

    def free_keys(self, first: int, old: bytes | bytearray, now_ms: int) -> Iterator[tuple[int, int]]:
        """From `first` on were records of `old` kinds that are done now: let those go that they held. Yields as
        `observe` does.
        """
        assert self.keys is not None
        for index, kind in enumerate(old, first - self.base):
            if kind >= HELD:
                continue
            head = self.keys.next_head(index, self.kinds, DEAD)
            if head is not None:
                offset = self.base + head
                self.turn(offset, offset, FREED, now_ms)
                retry = self.retry_of(offset)
                if retry is not None and retry.visible_at_ms > now_ms:
                    self.turn(offset, offset, WAITING, now_ms)
                    yield offset // BLOCK, retry.visible_at_ms

    def advance(self, start: int) -> None:
        """Everything below `start` is done."""
        if start > self.end:
            self.clear(start, self.keys is not None)
            return
        self.start = self.done_until(max(start, self.start))
        self.sweep()

    def sweep(self) -> None:
        """Forget what is done, if it is much."""
        count = self.start - self.base
        if self.fair is not None:
            self.fair.sweep()
            if self.start == self.end:
                self.fair, self.is_plain = None, self.keys is None
                self._trim(count)
                return
        if count >= _TRIM_MIN and count * 2 >= len(self.kinds):
            self._trim(count)

    def _trim(self, count: int) -> None:
        if self.fair is not None:
            self.fair.trim(count, self.kinds, self.base)
        del self.kinds[:count]
        del self.attempts[:count]
        del self.lease_of[:count]
        if self.keys is not None:
            self.keys.trim(count)
        self.base += count
        self.hints = [max(hint, self.base) for hint in self.hints]
        for number in [number for number in self.expires if (number + 1) * BLOCK <= self.base]:
            del self.expires[number]

    # Asking

    def kind_at(self, offset: int) -> int:
        """Also of what is below the window; not of what was not observed."""
        return self.kinds[offset - self.base] if offset >= self.base else SETTLED

    def all_leased(self, first: int, last: int, lease: int) -> bool:
        """Is every one of them leased right now, by this lease?"""
        low, high = first - self.base, last + 1 - self.base
        if low < 0 or high > len(self.kinds):
            return False
        if high - low == 1:
            return self.lease_of[low] == lease and self.kinds[low] & ~LANE_BITS == LEASED
        return self.lease_of[low:high] == array("Q", (lease,)) * (high - low) and not self.kinds[low:high].strip(
            _LEASED_BYTES
        )

    def leased_runs(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """Lease, first and last of what is leased within first..last, which were observed or lie below."""
        low, high = max(first - self.base, 0), last + 1 - self.base
        found: list[tuple[int, int, int]] = []
        for begin, end in [run.span() for run in _LEASED_RUNS.finditer(self.kinds, low, max(low, high))]:
            for index in range(begin, end):
                lease, offset = self.lease_of[index], self.base + index
                if found and found[-1][0] == lease and found[-1][2] == offset - 1:
                    found[-1] = lease, found[-1][1], offset
                else:
                    found.append((lease, offset, offset))
        return found

    def ready_runs(self, lane: int, count: int) -> Iterator[Range]:
        """The first `count` ready records of a lane, in the order of offsets."""
        position = self.hints[lane] - self.base
        while count > 0:
            position = self.kinds.find(lane, position)
            if position < 0:
                return
            run = _RUNS[lane].match(self.kinds, position, position + count)
            end = position if run is None else run.end()
            yield self.base + position, self.base + end - 1
            count -= end - position
            position = end

    def done_until(self, offset: int) -> int:
        """The first from `offset` on that is not done, or the end."""
        if offset >= self.end or self.kinds[offset - self.base] < SETTLED:
            return offset
        done = _DONE.match(self.kinds, offset - self.base)
        return offset if done is None else self.base + done.end()

    def gap_until(self, offset: int) -> int:
        """The first from `offset` on, which is a gap, that is none."""
        gap = _GAPS.match(self.kinds, offset - self.base)
        return offset if gap is None else self.base + gap.end()

    def retries(self, first: int, last: int) -> Iterator[Retry]:
        """What is stored about records of first..last that were delivered before."""
        for number in shared(self.stored, blocks_of(first, last)):
            if packed := self.stored[number].retries:
                yield from unpack_retries(number, packed, first, last)

    def retry_of(self, offset: int) -> Retry | None:
        return next(self.retries(offset, offset), None)

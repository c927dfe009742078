"""Finding the traces that producers brought along, off the hot path: what was received is searched for the header's
name, as bytes, and only batches that hold it are opened.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.topics.topics import Topics
from goqueue.machines.delays.commands import ScheduleKey
from goqueue.model.errors import GoQueueError
from goqueue.model.ranges import Range
from goqueue.records.batch import CODEC_MASK, Batch, split
from goqueue.records.portions import portions
from goqueue.records.slice import Slice
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Note, Step
from goqueue.telemetry.moved import Moved
from goqueue.telemetry.parents import Parents
from goqueue.telemetry.trace_ids import TRACEPARENT, Spot, TraceParent, parse_traceparent

PIECE_BYTES = 64 * 1024
SEARCHED_PER_S = 1024 * 1024
"""Bytes that are searched whatever they hold: a millisecond or two of a second."""
MORE_PER_S = 15 * 1024 * 1024
"""Bytes on top of that, of partitions in which traces were found lately. Of the others only one piece in many is looked
at, to see whether that has changed.
"""
PROBE_EVERY = 64
READ_COST = 32 * 1024
"""Finding a place in a log costs as much as searching so many bytes."""
LATELY = 256
"""Pieces."""
SECOND_MS = 1000
UNPACKED_COST = 4
"""A byte that comes out of a compressed batch counts as so many, and"""
RECORD_COST = 1024
"""each of its records as so many more."""
OPENED_COST_MAX = 4 * 1024 * 1024
"""What may be opened in one go: ten milliseconds. The rest is not looked at."""

WAITING_MAX = 1000
"""Delayed records that are looked at in one turn; the others have their trace when they are due."""

_RECEIVED, _SCHEDULED, _DUE = Step.RECEIVED, Step.SCHEDULED, Step.DUE
_NAME = TRACEPARENT.encode()


class Allowance:
    """So many bytes in a second, and no more at once."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left = float(per_second)
        self._at_ms = 0

    def fill(self, now_ms: int) -> None:
        passed_ms = min(max(0, now_ms - self._at_ms), SECOND_MS)
        self._left = min(self._per_second, self._left + passed_ms * self._per_second / SECOND_MS)
        self._at_ms = now_ms

    @property
    def is_there(self) -> bool:
        return self._left > 0

    def take(self, size: int) -> None:
        self._left -= size


class TraceIndex:
    def __init__(self, topics: Topics, schedules: Schedules, parents: Parents, moved: Moved, clock: Clock) -> None:
        self._topics = topics
        self._schedules = schedules
        self._clock = clock
        self._any, self._more = Allowance(SEARCHED_PER_S), Allowance(MORE_PER_S)
        self._pieces = 0
        self._opened_cost = 0
        """Of compressed batches, in this go."""
        self._found_at: dict[tuple[str, int], int] = {}
        """By partition: how many pieces had come when a trace was found in it."""
        self._parents = parents
        self._moved = moved
        self.skipped = 0
        """Records that were too many to be looked at."""

    def look(self, notes: Sequence[Note]) -> list[tuple[Spot, TraceParent]]:
        """What these notes say was received now: those that came with a trace."""
        # In comprehensions: most notes are of no interest here, and there may be many.
        scheduled = [note for note in notes if note.step is _SCHEDULED]
        received: dict[tuple[str, int], list[Range]] = {}
        for note in [note for note in notes if note.step is _RECEIVED]:
            _add(received, note, note.first)
        for note in [note for note in notes if note.step is _DUE]:
            if note.topic:
                self._moved.add(note)
                _add(received, note, int(note.detail))
        self._any.fill(self._clock.now_ms())
        self._more.fill(self._clock.now_ms())
        self._opened_cost = 0
        found: list[tuple[Spot, TraceParent]] = []
        for place, ranges in received.items():
            replica = self._topics.find_replica(*place)
            if replica is not None:
                for first, last in ranges:
                    self._search(replica, first, last, found)
        found += self._waiting(scheduled)
        for spot, parent in found:
            self._parents.add(spot, parent)
        return found

    def _waiting(self, scheduled: Iterable[Note]) -> Iterator[tuple[Spot, TraceParent]]:
        """Delayed records are not in their log yet."""
        spots = (Spot(note.topic, note.partition, at) for note in scheduled for at in range(note.first, note.last + 1))
        for spot in islice(spots, WAITING_MAX):
            waiting = self._schedules.look_up(ScheduleKey(*spot))
            parent = None if waiting is None else parent_of(waiting.body.headers)
            if parent is not None:
                yield spot, parent

    def restore(self, notes: Iterable[Note], parents: Iterable[tuple[Spot, TraceParent]]) -> None:
        """What was found before the last restart."""
        for note in notes:
            if note.step is Step.DUE:
                self._moved.add(note)
        for spot, parent in parents:
            self._parents.add(spot, parent)

    def _search(self, replica: Replica, first: int, last: int, found: list[tuple[Spot, TraceParent]]) -> None:
        offset, width = max(first, replica.start_offset), 1
        try:
            while offset <= last:
                if not self._may_look(replica.place):
                    # About as many as a piece holds. They are not even read.
                    following = min(last + 1, offset + width)
                    self.skipped += following - offset
                    offset = following
                    continue
                piece = replica.read(offset, PIECE_BYTES, last + 1) or replica.read(offset, 1, replica.end_offset)
                if piece is None:
                    return
                self._look_into(replica, piece, found)
                offset, width = piece.next_offset, max(1, piece.next_offset - offset)
        except GoQueueError:
            pass  # whoever reads it is told; here it costs a trace

    def _may_look(self, place: tuple[str, int]) -> bool:
        self._pieces += 1
        if self._any.is_there:
            return True
        is_likely = self._pieces - self._found_at.get(place, -LATELY) < LATELY
        return self._more.is_there and (is_likely or self._pieces % PROBE_EVERY == 0)

    def _look_into(self, replica: Replica, piece: Slice, found: list[tuple[Spot, TraceParent]]) -> None:
        allowance = self._any if self._any.is_there else self._more
        allowance.take(piece.length + READ_COST)
        data = piece.read()
        is_mentioned = _NAME in data
        for batch in split(memoryview(data)):
            is_compressed = batch.attributes & CODEC_MASK != 0
            if not is_compressed and not is_mentioned:
                return  # the others of its producer are most likely alike
            if not batch.is_control and (is_compressed or _NAME in bytes(batch.data)):
                before = len(found)
                with suppress(GoQueueError):  # whoever reads it is told; here it costs the traces of one batch
                    found += self._parents_of(replica, batch, is_compressed)
                if len(found) > before:
                    self._found_at[replica.place] = self._pieces

    def _parents_of(self, replica: Replica, batch: Batch, is_compressed: bool) -> Iterator[tuple[Spot, TraceParent]]:
        topic, partition = replica.place
        offset = batch.base_offset
        for portion in portions(batch) if self._may_open(is_compressed) else ():
            for record in portion.records:
                parent = parent_of(record.headers)
                if parent is not None:
                    yield Spot(topic, partition, record.offset), parent
                offset = record.offset + 1
            if is_compressed:
                cost = portion.unpacked_bytes * UNPACKED_COST + len(portion.records) * RECORD_COST
                self._more.take(cost)
                self._opened_cost += cost
                if not self._may_open(is_compressed):
                    break
        self.skipped += batch.next_offset - offset

    def _may_open(self, is_compressed: bool) -> bool:
        return not is_compressed or (self._more.is_there and self._opened_cost < OPENED_COST_MAX)


def parent_of(headers: Iterable[tuple[str, bytes | None]]) -> TraceParent | None:
    """Where the header is repeated, the last one counts."""
    value = None
    for name, each in headers:
        if name == TRACEPARENT:
            value = each
    return parse_traceparent(value)


def _add(received: dict[tuple[str, int], list[Range]], note: Note, first: int) -> None:
    """Neighbours as one; they come in order."""
    last, place = first + note.last - note.first, (note.topic, note.partition)
    ranges = received.get(place)
    if ranges is None:
        received[place] = [(first, last)]
    elif ranges[-1][1] == first - 1:
        ranges[-1] = ranges[-1][0], last
    else:
        ranges.append((first, last))

"""Finding the traces that producers brought along, off the hot path: what was received is searched for the header's
name, as bytes, and only batches that hold it are opened.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from goqueue.broker.schedules import Schedules
from goqueue.broker.topics import Topics
from goqueue.machines.delay_commands import ScheduleKey
from goqueue.model.errors import GoQueueError
from goqueue.model.ranges import Range, merge
from goqueue.records.batch import CODEC_MASK, Batch, split
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica
from goqueue.telemetry.journeys import Note, Step
from goqueue.telemetry.moved import Moved
from goqueue.telemetry.parents import Parents
from goqueue.telemetry.trace_ids import TRACEPARENT, Spot, TraceParent, parse_traceparent

PIECE_BYTES = 256 * 1024
BYTES_MAX = 16 * 1024 * 1024
"""Searched in one turn: about ten milliseconds."""
COMPRESSED_COST = 16
"""A byte that must be decompressed counts as so many."""

WAITING_MAX = 1000
"""Delayed records that are looked at in one turn; the others have their trace when they are due."""

_NAME = TRACEPARENT.encode()


class TraceIndex:
    def __init__(self, topics: Topics, schedules: Schedules, parents: Parents, moved: Moved) -> None:
        self._topics = topics
        self._schedules = schedules
        self._parents = parents
        self._moved = moved
        self.skipped = 0
        """Records that were too many to be looked at."""

    def look(self, notes: Iterable[Note]) -> list[tuple[Spot, TraceParent]]:
        """What these notes say was received now: those that came with a trace."""
        received: dict[tuple[str, int], list[Range]] = {}
        scheduled: list[Note] = []
        for note in notes:
            place = note.topic, note.partition
            if note.step is Step.RECEIVED:
                received.setdefault(place, []).append((note.first, note.last))
            elif note.step is Step.SCHEDULED:
                scheduled.append(note)
            elif note.step is Step.DUE and note.topic:
                self._moved.add(note)
                first = int(note.detail)
                received.setdefault(place, []).append((first, first + note.last - note.first))
        found: list[tuple[Spot, TraceParent]] = []
        budget = BYTES_MAX
        for place, ranges in received.items():
            replica = self._topics.find_replica(*place)
            for first, last in merge(ranges):
                if budget <= 0:
                    self.skipped += last + 1 - first
                elif replica is not None:
                    budget -= self._search(replica, first, last, budget, found)
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

    def _search(
        self, replica: Replica, first: int, last: int, budget: int, found: list[tuple[Spot, TraceParent]]
    ) -> int:
        """How much it cost."""
        cost = 0
        try:
            for batches, size in _mentioning(replica, first, last):
                cost += size
                for batch in batches:
                    cost += batch.size * (COMPRESSED_COST if batch.attributes & CODEC_MASK else 1)
                    found += self._parents_of(replica, batch)
                if cost > budget:
                    self.skipped += max(0, last + 1 - first)  # at most: some of it was looked at
                    break
        except GoQueueError:
            pass  # whoever reads it is told; here it costs a trace
        return max(cost, 1)

    def _parents_of(self, replica: Replica, batch: Batch) -> Iterator[tuple[Spot, TraceParent]]:
        topic, partition = replica.place
        for record in decode(batch):
            parent = parent_of(record.headers)
            if parent is not None:
                yield Spot(topic, partition, record.offset), parent


def parent_of(headers: Iterable[tuple[str, bytes | None]]) -> TraceParent | None:
    """Where the header is repeated, the last one counts."""
    value = None
    for name, each in headers:
        if name == TRACEPARENT:
            value = each
    return parse_traceparent(value)


def _mentioning(replica: Replica, first: int, last: int) -> Iterator[tuple[list[Batch], int]]:
    """Batches in which the header may be, piece by piece, and the size of each piece."""
    offset = max(first, replica.start_offset)
    while offset <= last:
        piece = replica.read(offset, PIECE_BYTES, last + 1) or replica.read(offset, 1, replica.end_offset)
        if piece is None:
            return
        data = memoryview(piece.read())
        is_mentioned = _NAME in data.obj  # type: ignore[operator]
        batches: list[Batch] = []
        for batch in split(data):
            is_compressed = batch.attributes & CODEC_MASK != 0
            if not is_compressed and not is_mentioned:
                break  # the others of its producer are most likely alike
            if not batch.is_control and (is_compressed or _NAME in bytes(batch.data)):
                batches.append(batch)
        yield batches, piece.length
        offset = piece.next_offset

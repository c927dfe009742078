"""What is asked about journeys, and what is told."""

from typing import NamedTuple

from goqueue.telemetry.journeys import Note, Step
from goqueue.telemetry.trace_ids import Spot

COMPLETED, ERROR, PENDING = "completed", "error", "pending"
STATUSES = (COMPLETED, ERROR, PENDING)
ALL_PARTITIONS = -1

_DONE = frozenset({Step.ACKED, Step.FETCHED, Step.CANCELLED, Step.REDRIVEN})
_FAILED = frozenset({Step.REJECTED, Step.EXPIRED, Step.DEAD_LETTERED, Step.REMOVED})
_OPEN = frozenset({Step.LEASED, Step.NACKED, Step.LEASE_ENDED, Step.RETURNED, Step.REPLAYED, Step.EXTENDED})


class TraceFilter(NamedTuple):
    topic: str | None = None
    partition: int = ALL_PARTITIONS
    group: str | None = None
    start_ms: int | None = None
    """Something happened to it then or later."""
    end_ms: int | None = None
    status: str | None = None
    spots: frozenset[Spot] | None = None
    """Only these."""

    def takes(self, note: Note) -> bool:
        return (
            (self.topic is None or note.topic == self.topic)
            and (self.partition == ALL_PARTITIONS or note.partition == self.partition)
            and (self.group is None or note.group == self.group)
            and (self.start_ms is None or note.at_ms >= self.start_ms)
            and (self.end_ms is None or note.at_ms <= self.end_ms)
        )


class Journey(NamedTuple):
    """All that is remembered of one record, in order."""

    trace_id: str
    spot: Spot
    """The first, if it was delayed."""
    steps: list[tuple[Spot, Note]]

    @property
    def start_ms(self) -> int:
        return self.steps[0][1].at_ms if self.steps else 0

    @property
    def end_ms(self) -> int:
        return self.steps[-1][1].at_ms if self.steps else 0

    @property
    def status(self) -> str:
        """An error if a group gave up on it; pending as long as somebody has still to do with it."""
        last: dict[str, Step] = {}
        for _, note in self.steps:
            if note.step in _DONE or note.step in _FAILED or note.step in _OPEN:
                last[note.group] = note.step
        found = set(last.values())
        if found & _FAILED:
            return ERROR
        return COMPLETED if found and not found & _OPEN else PENDING


class Chapter(NamedTuple):
    """Some of all that is kept, and where it goes on."""

    batches: list[bytes]
    """Of pages, as they are stored; or, where nothing is stored:"""
    notes: list[Note]
    next: int
    first: int
    end: int

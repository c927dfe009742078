"""What happens to records, noted as ranges of offsets: a batch that is published, leased or acked as one is one note.

Every room that does something to records tells it here, in one call; counters and journeys are both made of that. All
is counted. What is remembered is chosen by offset, so that a journey is remembered from its first step to its last or
not at all, but for what went wrong, which always is.
"""

from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

CAPACITY = 100_000
_new_tuple = tuple.__new__
"""As a named tuple is made, without the call of its own."""


class Step(IntEnum):
    RECEIVED = 1
    """Appended to its log, or taken to wait for its time."""
    PERSISTED = 2
    """As durable as its topic asks for: what was below the high watermark for the first time."""
    REPLICATED = 3
    SCHEDULED = 4
    DUE = 5
    """Published when its time came; `detail` names the offset that it has since."""
    CANCELLED = 6
    FETCHED = 7
    """Sent to a stream reader."""
    LEASED = 8
    ACKED = 9
    NACKED = 10
    """Given back by its consumer, to be delivered again."""
    LEASE_ENDED = 11
    """Not settled in time, to be delivered again."""
    EXTENDED = 12
    REJECTED = 13
    EXPIRED = 14
    DEAD_LETTERED = 15
    REDRIVEN = 16
    REPLAYED = 17
    REFUSED = 18
    """Not published: `detail` says why."""


ALWAYS = frozenset(
    {Step.NACKED, Step.LEASE_ENDED, Step.REJECTED, Step.EXPIRED, Step.DEAD_LETTERED, Step.REDRIVEN, Step.REFUSED}
)
"""Remembered whatever the sampling."""
_IS_ALWAYS = bytes(step in ALWAYS for step in range(max(Step) + 1))
"""The same, found without a hash: an enum's is slow."""


class Note(NamedTuple):
    at_ms: int
    step: Step
    topic: str
    partition: int
    first: int
    last: int
    group: str = ""
    consumer: str = ""
    detail: str = ""


class Journeys:
    """Invariant: `counts` has every record exactly once per step, whatever is remembered of it."""

    def __init__(self, sampling: float = 1.0, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.counts: list[dict[tuple[str, str], int]] = [{} for _ in range(max(Step) + 1)]
        """Records by step, and by topic and group."""
        self.noted = 0
        """Notes since the start; the last `capacity` of them are kept."""
        self._notes: deque[Note] = deque(maxlen=capacity)
        self.sampling = sampling

    @property
    def sampling(self) -> float:
        return self._sampling

    @sampling.setter
    def sampling(self, rate: float) -> None:
        """0 to 1: the part of all records whose journeys are remembered."""
        self._sampling = rate
        self._stride = 0 if rate <= 0 else max(1, round(1 / rate))

    def note(  # noqa: PLR0913  a step and whose it was
        self,
        at_ms: int,
        step: Step,
        topic: str,
        partition: int,
        first: int,
        last: int,
        group: str = "",
        consumer: str = "",
        detail: str = "",
    ) -> None:
        """All of first..last took this step."""
        counts = self.counts[step]
        key = (topic, group)
        counts[key] = counts.get(key, 0) + last + 1 - first
        stride = self._stride
        if stride != 1 and not _IS_ALWAYS[step] and (not stride or last // stride == (first - 1) // stride):
            return
        self.noted += 1
        self._notes.append(_new_tuple(Note, (at_ms, step, topic, partition, first, last, group, consumer, detail)))

    def is_sampled(self, offset: int) -> bool:
        return self._stride > 0 and offset % self._stride == 0

    def since(self, noted: int) -> Iterator[Note]:
        """All that was noted after the first `noted`, as far as it is still kept."""
        kept = len(self._notes)
        return islice(self._notes, max(0, kept - (self.noted - noted)), kept)

    def of(self, topic: str, partition: int, offset: int) -> list[Note]:
        """The journey of one record, as far as it is still kept."""
        return [
            note
            for note in self._notes
            if note.first <= offset <= note.last and note.partition == partition and note.topic == topic
        ]

    def forget_topic(self, topic: str) -> None:
        """Its counters: a name that is gone must not be counted on for ever."""
        for counts in self.counts:
            for key in [key for key in counts if key[0] == topic]:
                del counts[key]

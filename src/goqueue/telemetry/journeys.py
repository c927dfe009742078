"""What happens to records, noted as ranges of offsets: a batch that is published, leased or acked as one is one note.

Every room that does something to records tells it here, in one call; counters and journeys are both made of that. All
is counted. What is remembered is chosen by offset, so that a journey is remembered from its first step to its last or
not at all, but for what went wrong, which always is.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import islice

import msgspec

CAPACITY = 100_000


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
    """Given back by its consumer, to be delivered again; or to die, if that was its last attempt."""
    LEASE_ENDED = 11
    """Not settled in time; likewise."""
    EXTENDED = 12
    REJECTED = 13
    EXPIRED = 14
    DEAD_LETTERED = 15
    """Durable among the dead letters; `detail` says why and where."""
    REDRIVEN = 16
    REPLAYED = 17
    REFUSED = 18
    """Not published: `detail` says why. It has no offset, so the range ends with -1."""
    REMOVED = 19
    """By the retention of its log, before its group had settled it."""
    RETURNED = 20
    """Leased, and given back as if it never had been: it did not reach its consumer."""


ALWAYS = frozenset(
    {
        Step.NACKED,
        Step.LEASE_ENDED,
        Step.REJECTED,
        Step.EXPIRED,
        Step.DEAD_LETTERED,
        Step.REDRIVEN,
        Step.REFUSED,
        Step.REMOVED,
    }
)
"""Remembered whatever the sampling."""
_IS_ALWAYS = bytes(step in ALWAYS for step in range(max(Step) + 1))
"""The same, found without a hash: an enum's is slow."""


class Note(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Not a tuple: a hundred thousand of those would be looked at by the collector of cycles, at every turn of it."""

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
        self._counts: list[dict[tuple[str, str], int]] = [{} for _ in range(max(Step) + 1)]
        self.before_note: Callable[[], None] | None = None
        """Called before the next note, and before anybody looks, once: something is still to be noted."""
        self.on_news: Callable[[], None] | None = None
        """Called at the next note, once."""
        self._notes: deque[Note] = deque(maxlen=capacity)
        self._noted = 0
        self.sampling = sampling

    @property
    def counts(self) -> list[dict[tuple[str, str], int]]:
        """Records by step, and by topic and group."""
        self._settle()
        return self._counts

    @property
    def noted(self) -> int:
        """Notes since the start; the last `capacity` of them are kept."""
        self._settle()
        return self._noted

    def _settle(self) -> None:
        if self.before_note is not None:
            settle, self.before_note = self.before_note, None
            settle()

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
        if self.before_note is not None:
            self._settle()
        counts = self._counts[step]
        key = (topic, group)
        counts[key] = counts.get(key, 0) + last + 1 - first
        stride = self._stride
        if stride != 1 and not _IS_ALWAYS[step] and (not stride or last // stride == (first - 1) // stride):
            return
        self._noted += 1
        self._notes.append(Note(at_ms, step, topic, partition, first, last, group, consumer, detail))
        if self.on_news is not None:
            self.tell_news()

    def tell_news(self) -> None:
        """That there is, or will be, something to be noted."""
        if self.on_news is not None:
            tell, self.on_news = self.on_news, None
            tell()

    def count(self, step: Step, topic: str, group: str, records: int) -> None:
        """So many took this step, and it is not remembered which."""
        counts = self._counts[step]
        counts[topic, group] = counts.get((topic, group), 0) + records

    def is_sampled(self, offset: int) -> bool:
        return self._stride > 0 and offset % self._stride == 0

    def chosen(self, note: Note) -> range:
        """The offsets of a note whose journeys are remembered; all, if something went wrong with them."""
        first, last, stride = note.first, note.last, self._stride
        if stride == 1 or _IS_ALWAYS[note.step]:
            return range(first, last + 1)
        return range(first + -first % stride, last + 1, stride) if stride else range(0)

    def stride(self, step: Step) -> int:
        """Of the offsets of such a note every so-many-th is remembered: the multiples of it. 0: none."""
        return 1 if _IS_ALWAYS[step] else self._stride

    def since(self, noted: int) -> list[Note]:
        """All that was noted after the first `noted`, as far as it is still kept."""
        self._settle()
        found = list(islice(reversed(self._notes), self._noted - noted))
        found.reverse()
        return found

    def kept(self) -> list[Note]:
        """All of them, with those from before the last restart that were restored."""
        self._settle()
        return list(self._notes)

    def restore(self, notes: Sequence[Note]) -> None:
        """What was noted before the last restart: as much of it as there is room for. It is not counted."""
        room = self.capacity - len(self._notes)
        self._notes.extendleft(islice(reversed(notes), room))

    def of(self, topic: str, partition: int, offset: int) -> list[Note]:
        """The journey of one record, as far as it is still kept."""
        self._settle()
        return [
            note
            for note in self._notes
            if note.first <= offset <= note.last and note.partition == partition and note.topic == topic
        ]

    def forget_topic(self, topic: str) -> None:
        """A name that is gone must not be counted on for ever; and its notes are not about the next of that name."""
        self._settle()
        self._notes = deque(
            (
                msgspec.structs.replace(note, topic="", last=note.first - 1) if note.topic == topic else note
                for note in self._notes
            ),
            maxlen=self.capacity,
        )
        for counts in self._counts:
            for key in [key for key in counts if key[0] == topic]:
                del counts[key]

    def forget_group(self, group: str) -> None:
        """Likewise."""
        for counts in self._counts:
            for key in [key for key in counts if key[1] == group]:
                del counts[key]

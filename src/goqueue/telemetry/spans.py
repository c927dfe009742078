"""From notes to spans, as tracing systems know them: one for the publish, one for each delivery, with their parents.

A span is made when what it tells of is over. What began is kept as ranges until then, and bounded.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from goqueue.telemetry.journeys import Journeys, Note, Step
from goqueue.telemetry.moved import Moved
from goqueue.telemetry.parents import Parents
from goqueue.telemetry.trace_ids import Spot, TraceParent, make_span_id, make_trace_id

K = TypeVar("K")

SPANS_MAX = 5000
"""Made of the notes of one flush; what went wrong comes first."""
BEGUN_MAX = 10_000
"""Ranges per partition and group that wait for their end."""
PLACES_MAX = 10_000
"""Partitions and groups of which something waits."""

ENDS = frozenset({Step.ACKED, Step.NACKED, Step.LEASE_ENDED, Step.REJECTED, Step.EXPIRED, Step.RETURNED})
BEGINS = frozenset({Step.RECEIVED, Step.SCHEDULED, Step.LEASED, Step.EXTENDED, Step.RETURNED})
"""Of these no span is made, but of what they lead to."""
ERRORS = frozenset(
    {
        Step.NACKED,
        Step.LEASE_ENDED,
        Step.REJECTED,
        Step.EXPIRED,
        Step.DEAD_LETTERED,
        Step.REMOVED,
        Step.REFUSED,
    }
)
NAMES = {
    Step.RECEIVED: "publish.received",
    Step.PERSISTED: "publish.persisted",
    Step.REPLICATED: "publish.replicated",
    Step.SCHEDULED: "delay.scheduled",
    Step.DUE: "delay.due",
    Step.CANCELLED: "delay.cancelled",
    Step.FETCHED: "consume.fetched",
    Step.LEASED: "consume.leased",
    Step.ACKED: "consume.acked",
    Step.NACKED: "consume.nacked",
    Step.LEASE_ENDED: "consume.lease_ended",
    Step.EXTENDED: "consume.extended",
    Step.REJECTED: "consume.rejected",
    Step.EXPIRED: "consume.expired",
    Step.DEAD_LETTERED: "dead_letter.written",
    Step.REDRIVEN: "dead_letter.redriven",
    Step.REPLAYED: "consume.replayed",
    Step.REFUSED: "publish.refused",
    Step.REMOVED: "log.removed",
    Step.RETURNED: "consume.returned",
}


class Link(NamedTuple):
    trace_id: str
    span_id: str


class Span(NamedTuple):
    trace_id: str
    span_id: str
    parent_span_id: str
    """Empty: the first of its trace."""
    is_parent_remote: bool
    """The parent is a span of the producer, not of ours."""
    name: str
    kind: str
    """producer, consumer or internal"""
    event: str
    """How it ended, as NAMES has it."""
    start_ms: int
    end_ms: int
    topic: str
    partition: int
    offset: int
    consumer_group: str = ""
    consumer_id: str = ""
    error: str = ""
    links: tuple[Link, ...] = ()


class Identities:
    """Which trace a record belongs to, and the ids of its spans: the same whoever asks, now or after a restart."""

    def __init__(self, topic_id: Callable[[str], bytes], parents: Parents, moved: Moved) -> None:
        self._topic_id = topic_id
        self.parents = parents
        self.moved = moved

    def made_id(self, spot: Spot) -> str:
        return make_trace_id(self._topic_id(spot.topic), spot.partition, spot.offset)

    def parent(self, spot: Spot) -> TraceParent | None:
        first = self.moved.first(spot)
        found = self.parents.get(spot) or self.parents.get(first)
        if found is None and first == spot:
            now = self.moved.now(spot)
            found = None if now is None else self.parents.get(now)
        return found

    def trace_id(self, spot: Spot) -> str:
        parent = self.parent(spot)
        return self.made_id(self.moved.first(spot)) if parent is None else parent.trace_id

    def publish_span(self, spot: Spot) -> str:
        return make_span_id("publish", self.made_id(spot))

    def delivery_span(self, spot: Spot, group: str, consumer: str, at_ms: int) -> str:
        return make_span_id("deliver", self.made_id(spot), group, consumer, at_ms)

    def step_span(self, spot: Spot, note: Note) -> str:
        return make_span_id(note.step, self.made_id(spot), note.group, note.at_ms)


class Begun(NamedTuple):
    first: int
    last: int
    at_ms: int
    consumer: str = ""


class SpanMaker:
    """Belongs to the thread that exports."""

    def __init__(self, journeys: Journeys, identities: Identities) -> None:
        self._journeys = journeys
        self._ids = identities
        self._published: dict[tuple[str, int], deque[Begun]] = {}
        self._scheduled: dict[tuple[str, int], deque[Begun]] = {}
        self._leased: dict[tuple[str, int, str], deque[Begun]] = {}
        self.dropped = 0
        """Spans that were too many for their flush."""

    def make(self, notes: Iterable[Note]) -> list[Span]:
        """The spans that ended with these notes."""
        wrong: list[Span] = []
        fine: list[Span] = []
        for note in notes:
            if not note.topic and note.step is not Step.REFUSED:
                continue
            if note.step in BEGINS:
                self._begin(note)
                continue
            spans = wrong if note.step in ERRORS else fine
            room = SPANS_MAX - len(spans)
            spans += islice(self._of(note), room)
            ended = 1 if note.step is Step.REFUSED else len(self._journeys.chosen(note))
            self.dropped += max(0, ended - room)
        self.dropped += max(0, len(wrong) + len(fine) - SPANS_MAX)
        return (wrong + fine)[:SPANS_MAX]

    def _begin(self, note: Note) -> None:
        place = note.topic, note.partition
        begun = Begun(note.first, note.last, note.at_ms, note.consumer)
        if note.step is Step.RECEIVED:
            _keep(self._published, place, begun)
        elif note.step is Step.SCHEDULED:
            _keep(self._scheduled, place, begun)
        elif note.step is Step.LEASED:
            _keep(self._leased, (*place, note.group), begun)

    def _of(self, note: Note) -> Iterator[Span]:
        if note.step is Step.REFUSED:
            yield self._refused(note)
            return
        for offset in self._journeys.chosen(note):
            span = self._span(note, Spot(note.topic, note.partition, offset))
            if span is not None:
                yield span

    def _span(self, note: Note, spot: Spot) -> Span | None:
        step = note.step
        if step is Step.PERSISTED:
            return self._publish(note, spot)
        if step is Step.DUE:
            return self._due(note, spot)
        if step is Step.FETCHED:
            return self._child(note, spot, "fetch", "consumer", note.at_ms)
        if step in ENDS:
            begun = _find(self._leased.get((note.topic, note.partition, note.group)), spot.offset)
            if begun is not None:
                return self._delivery(note, spot, begun)
        links: tuple[Link, ...] = ()
        if step in (Step.DEAD_LETTERED, Step.REDRIVEN):
            now = moved_to(note, spot.offset)
            if now is not None:
                links = (Link(self._ids.trace_id(now), self._ids.publish_span(now)),)
        name = NAMES[step].partition(".")[2].replace("_", " ")
        return self._child(note, spot, name, "internal", note.at_ms)._replace(links=links)

    def _publish(self, note: Note, spot: Spot) -> Span | None:
        """None: it was not published now, but delayed before, or long ago."""
        waiting = self._published.get((note.topic, note.partition))
        while waiting and waiting[0].last < spot.offset:  # they are persisted in the order of offsets
            waiting.popleft()
        if not waiting or waiting[0].first > spot.offset:
            return None
        begun = waiting[0]
        span = self._child(note, spot, "publish", "producer", begun.at_ms)
        parent = self._ids.parent(spot)
        return span._replace(
            span_id=self._ids.publish_span(spot),
            parent_span_id="" if parent is None else parent.span_id,
            is_parent_remote=parent is not None,
        )

    def _due(self, note: Note, spot: Spot) -> Span:
        """The wait of a delayed record; deliveries of where it is now are children of it."""
        begun = _find(self._scheduled.get((note.topic, note.partition)), spot.offset)
        now = spot._replace(offset=int(note.detail) + spot.offset - note.first)
        span = self._child(note, spot, "delay", "internal", note.at_ms if begun is None else begun.at_ms)
        return span._replace(span_id=self._ids.publish_span(now))

    def _delivery(self, note: Note, spot: Spot, begun: Begun) -> Span:
        span = self._child(note, spot, "deliver", "consumer", begun.at_ms)
        span_id = self._ids.delivery_span(spot, note.group, begun.consumer, begun.at_ms)
        return span._replace(span_id=span_id, consumer_id=begun.consumer)

    def _child(self, note: Note, spot: Spot, name: str, kind: str, start_ms: int) -> Span:
        """Of the span in which the record was published."""
        return Span(
            trace_id=self._ids.trace_id(spot),
            span_id=self._ids.step_span(spot, note),
            parent_span_id=self._ids.publish_span(spot),
            is_parent_remote=False,
            name=f"{name} {note.topic}",
            kind=kind,
            event=NAMES[note.step],
            start_ms=start_ms,
            end_ms=max(start_ms, note.at_ms),
            topic=note.topic,
            partition=note.partition,
            offset=spot.offset,
            consumer_group=note.group,
            consumer_id=note.consumer,
            error=error_of(note),
        )

    def _refused(self, note: Note) -> Span:
        """It has no place, so its trace is made of what is known."""
        about = (note.at_ms, note.topic, note.partition, note.first, note.detail)
        return Span(
            trace_id=make_span_id("first half", *about) + make_span_id("second half", *about),
            span_id=make_span_id(*about),
            parent_span_id="",
            is_parent_remote=False,
            name=f"publish {note.topic}".strip(),
            kind="producer",
            event=NAMES[note.step],
            start_ms=note.at_ms,
            end_ms=note.at_ms,
            topic=note.topic,
            partition=note.partition,
            offset=-1,
            error=error_of(note),
        )


def error_of(note: Note) -> str:
    return (note.detail or note.step.name.lower().replace("_", " ")) if note.step in ERRORS else ""


def moved_to(note: Note, offset: int) -> Spot | None:
    """Where a record of a note went that became a dead letter or was redriven: its detail ends with the first place."""
    topic, *numbers = note.detail.rpartition("now ")[2].rsplit("/", 2)
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return None
    return Spot(topic, int(numbers[0]), int(numbers[1]) + offset - note.first)


def _keep(begun: dict[K, deque[Begun]], key: K, one: Begun) -> None:
    if key not in begun:
        if len(begun) >= PLACES_MAX:
            del begun[next(iter(begun))]
        begun[key] = deque(maxlen=BEGUN_MAX)
    begun[key].append(one)


def _find(begun: deque[Begun] | None, offset: int) -> Begun | None:
    """The latest."""
    for one in reversed(begun or ()):
        if one.first <= offset <= one.last:
            return one
    return None

"""Journeys looked up: of one record, of one trace, or those that a filter chooses."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noted_offsets import NotedOffsets
from goqueue.model.topics import Topic
from goqueue.telemetry.journeys import Journeys, Note
from goqueue.telemetry.spans import Identities
from goqueue.telemetry.trace_ids import Spot, read_trace_id, topic_tag
from goqueue.telemetry.traces import Journey, TraceFilter

CANDIDATES_MAX = 5000
"""Records that one search looks at, the latest first."""


class Traces:
    def __init__(self, journeys: Journeys, identities: Identities, topics: Topics) -> None:
        self._journeys = journeys
        self._ids = identities
        self._topics = topics

    def journey(self, spot: Spot) -> Journey:
        """Also of one of which nothing is remembered."""
        (journey,) = self._journeys_of([self._ids.moved.first(spot)], self._journeys.kept())
        return journey

    def spots(self, trace_id: str) -> list[Spot]:
        """The records of a trace; none: it is unknown."""
        found = self._ids.parents.spots(trace_id)
        return found or self._made(trace_id)

    def _made(self, trace_id: str) -> list[Spot]:
        tag, partition, offset = read_trace_id(trace_id)
        topic = next((each for each in self._topics.image.topics.values() if topic_tag(each.id) == tag), None)
        if topic is None or partition >= topic.partitions or not self._is_there(topic, partition, offset):
            return []
        return [Spot(topic.name, partition, offset)]

    def _is_there(self, topic: Topic, partition: int, offset: int) -> bool:
        replica = self._topics.find_replica(topic.name, partition)
        return replica is not None and 0 <= offset < replica.end_offset

    def of_trace(self, trace_id: str) -> list[Journey]:
        spots = dict.fromkeys(self._ids.moved.first(spot) for spot in self.spots(trace_id))
        return self._journeys_of(list(spots), self._journeys.kept())

    def search(self, wanted: TraceFilter, limit: int, notes: Sequence[Note]) -> tuple[list[Journey], int]:
        """The latest first, and how many there are among those looked at. Reads nothing but `notes`: it may be asked in
        another thread.
        """
        spots: dict[Spot, None] = {}
        for note in reversed(notes):
            if len(spots) >= CANDIDATES_MAX:
                break
            if note.topic and note.first >= 0 and wanted.takes(note):
                spots.update(dict.fromkeys(self._chosen(note, wanted, CANDIDATES_MAX - len(spots))))
        found = self._journeys_of(list(spots), notes)
        if wanted.status is not None:
            found = [each for each in found if each.status == wanted.status]
        return found[:limit], len(found)

    def page(
        self, wanted: TraceFilter, first: int, limit: int, notes: Sequence[Note]
    ) -> tuple[list[Journey], int | None]:
        """All of one partition, by offset from `first` on, and where the next page begins; None: this was the last.
        Also in another thread.
        """
        topic = wanted.topic or ""
        here = [note for note in notes if note.topic == topic and note.partition == wanted.partition]
        noted = NotedOffsets(self._journeys.chosen(note) for note in here if note.first >= 0 and wanted.takes(note))
        spots: list[Spot] = []
        following = None
        for offset in noted.following(first):
            if len(spots) >= limit:
                following = offset
                break
            spot = Spot(topic, wanted.partition, offset)
            now = self._ids.moved.now(spot)
            if now is None or now.offset not in noted:  # a delayed one comes with the later of its two places
                spots.append(self._ids.moved.first(spot))
        found = self._journeys_of(spots, here)
        if wanted.status is not None:
            found = [each for each in found if each.status == wanted.status]
        return found, following

    def _chosen(self, note: Note, wanted: TraceFilter, room: int) -> Iterator[Spot]:
        for offset in reversed(self._journeys.chosen(note)[-room:]):
            spot = Spot(note.topic, note.partition, offset)
            if wanted.spots is None or spot in wanted.spots:
                yield self._ids.moved.first(spot)

    def _journeys_of(self, spots: Sequence[Spot], notes: Iterable[Note]) -> list[Journey]:
        """One walk over all notes, however many records are asked for."""
        journeys = {spot: Journey(self._ids.trace_id(spot), spot, []) for spot in spots}
        wanted: dict[tuple[str, int], list[int]] = {}
        whose: dict[Spot, Spot] = {}
        for spot in spots:
            for each in (spot, self._ids.moved.now(spot)):
                if each is not None:
                    whose[each] = spot
                    wanted.setdefault(each[:2], []).append(each.offset)
        for offsets in wanted.values():
            offsets.sort()
        for note in notes:
            offsets = wanted.get((note.topic, note.partition), [])
            low, high = bisect_left(offsets, note.first), bisect_right(offsets, note.last)
            for offset in offsets[low:high]:
                spot = Spot(note.topic, note.partition, offset)
                journeys[whose[spot]].steps.append((spot, note))
        return list(journeys.values())

"""All about journeys of one node: what is noted, where it is kept, and who may ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goqueue.broker.reading.scan import scan
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.journal import Journal
from goqueue.broker.tracing.trace_index import TraceIndex
from goqueue.broker.tracing.traces import Traces
from goqueue.broker.tracing.why import Why
from goqueue.model.errors import GoQueueError
from goqueue.records.decode import DecodedRecord
from goqueue.runtime.clock import Clock
from goqueue.telemetry.export import Exporting
from goqueue.telemetry.journeys import Journeys
from goqueue.telemetry.spans import Identities
from goqueue.telemetry.trace_ids import Spot

KEY_WINDOW = 5000
KEY_RECORDS_MAX = 100_000
"""Of each partition, from its end backwards, when records of a key are looked for."""


@dataclass(frozen=True)
class Tracing:
    journeys: Journeys
    identities: Identities
    index: TraceIndex
    journal: Journal
    traces: Traces
    why: Why
    exporting: Exporting | None


OnFound = Callable[[list[tuple[Spot, DecodedRecord]] | GoQueueError], None]


class KeySearch:
    """The latest records of one key in partitions that are led here, at most `limit` in each; the latest first."""

    def __init__(self, topics: Topics, clock: Clock, topic: str, key: bytes, limit: int, on_found: OnFound) -> None:
        self._topics = topics
        self._clock = clock
        self._topic = topic
        self._key = key
        self._limit = limit
        self._on_found = on_found
        self._found: list[tuple[Spot, DecodedRecord]] = []

    def start(self) -> None:
        topic = self._topics.image.topics.get(self._topic)
        self._look([] if topic is None else self._topics.led(self._topic, range(topic.partitions)))

    def _look(self, partitions: Sequence[int]) -> None:
        if not partitions:
            self._found.sort(key=lambda one: (one[1].timestamp, one[0].offset), reverse=True)
            self._on_found(self._found)
            return
        partition, *rest = partitions
        try:
            end = self._topics.replica(self._topic, partition).last_stable_offset
        except GoQueueError as error:
            self._on_found(error)
            return
        self._look_back(partition, end, end, lambda: self._look(rest))

    def _look_back(self, partition: int, end: int, log_end: int, on_done: Callable[[], None]) -> None:
        """[end - window, end), and then what is before it, until there are enough."""
        replica = self._topics.find_replica(self._topic, partition)
        start = max(end - KEY_WINDOW, 0 if replica is None else replica.start_offset)
        here: list[tuple[Spot, DecodedRecord]] = []

        def take(records: list[DecodedRecord]) -> bool:
            here.extend((Spot(self._topic, partition, each.offset), each) for each in records if each.key == self._key)
            return True

        def ended(error: GoQueueError | None) -> None:
            self._found.extend(here[-self._limit :])
            if error is not None:
                self._on_found(error)
            elif here or log_end - start >= KEY_RECORDS_MAX:
                on_done()
            else:
                self._look_back(partition, start, log_end, on_done)

        if replica is None or start >= end:
            on_done()
            return
        scan(replica, (start, end), self._clock, take, ended)

"""Following a topic as it grows. The log is the buffer: a slow reader reads later, and no more is kept for it than the
piece of the log that it is in.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from goqueue.broker.reading.scan import Reader
from goqueue.broker.topics.topics import Topics
from goqueue.model.errors import GoQueueError
from goqueue.records.decode import DecodedRecord
from goqueue.records.filters import RecordFilter
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock, Timer

FIRST_OFFSET = 0


class Piece(NamedTuple):
    """What one read of one partition gave."""

    partition: int
    records: list[DecodedRecord]
    first_offset: int
    """Where it began to read: later than it had come to if retention was faster."""
    missed: int
    """Offsets that retention took before they could be read."""


class Follower:
    """Invariant: `positions` says for every partition which offset is read next."""

    def __init__(
        self, topics: Topics, clock: Clock, topic: str, positions: Mapping[int, int], filter: RecordFilter
    ) -> None:
        self._topics = topics
        self._clock = clock
        self._topic = topics.image.topics[topic]
        self._follows_all = len(positions) == self._topic.partitions
        self._filter = filter
        self.positions = dict(positions)
        self._replicas: dict[int, Replica] = {}
        self._readers: dict[int, Reader] = {}
        """Those that are in the middle of a piece of their log."""
        self._next = 0
        self._waiting: Callable[[bool], None] | None = None
        self._timer: Timer | None = None
        self.is_stopped = False
        for partition in positions:
            self._open(partition)
        self._unfollow: Callable[[], None] | None = topics.follow(topic, lambda: self._wake(is_news=True))

    def _open(self, partition: int) -> None:
        replica = self._replicas[partition] = self._topics.replica(self._topic.name, partition)
        replica.watch(self, lambda: self._wake(is_news=True))

    def take(self) -> Piece | None:
        """The next piece, of each partition in turn. None: all was read. Refused: the topic is gone, or out of
        service.
        """
        self._look_for_new_partitions()
        numbers = list(self.positions)
        for turn in range(len(numbers)):
            number = numbers[(self._next + turn) % len(numbers)]
            piece = self._read(number)
            if piece is not None:
                self._next = (self._next + turn + 1) % len(numbers)
                return piece
        return None

    def _look_for_new_partitions(self) -> None:
        topic = self._topics.image.topics.get(self._topic.name)
        if self._follows_all and topic is not None and topic.id == self._topic.id:
            for number in range(len(self.positions), topic.partitions):
                self.positions[number] = FIRST_OFFSET
                self._open(number)

    def _read(self, partition: int) -> Piece | None:
        replica = self._replicas[partition]
        if self._topics.replica(self._topic.name, partition) is not replica:
            raise GoQueueError(f"topic {self._topic.name!r} was deleted")
        offset = self.positions[partition]
        first = max(offset, replica.start_offset)
        reader = self._readers.pop(partition, None)
        if reader is None or first > offset:
            reader = Reader(replica, first, replica.last_stable_offset)
        records = reader.take()
        if records is None:
            self.positions[partition] = first
            return Piece(partition, [], first, first - offset) if first > offset else None
        self.positions[partition] = reader.offset
        if reader.holds_piece:
            self._readers[partition] = reader
        chosen = records if self._filter.is_empty else [each for each in records if self._filter.matches(each)]
        return Piece(partition, chosen, first, first - offset)

    # -- waiting

    def wait(self, wait_ms: int, on_wake: Callable[[bool], None]) -> "Follower":
        """Call back when there may be more to take, or after a while: then with False."""
        self._waiting = on_wake
        self._timer = self._clock.call_after(wait_ms, lambda: self._wake(is_news=False))
        if self.is_stopped:
            self._wake(is_news=True)
        return self

    def cancel(self) -> None:
        """Nobody waits any more."""
        self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self, is_news: bool) -> None:
        waiting = self._waiting
        self.cancel()
        if waiting is not None:
            waiting(is_news)

    def stop(self) -> None:
        """Whoever follows shall say goodbye."""
        self.is_stopped = True
        self._wake(is_news=True)

    def close(self) -> None:
        """Closing twice is fine."""
        self.cancel()
        if self._unfollow is not None:
            self._unfollow()
            self._unfollow = None
        for replica in self._replicas.values():
            replica.unwatch(self)

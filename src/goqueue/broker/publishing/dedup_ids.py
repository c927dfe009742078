"""What is known of the deduplication ids of a topic, and what a batch says against it."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple, Protocol

from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic
from goqueue.records.batch import NO_PRODUCER, Batch
from goqueue.replica.reads import NO_TIMESTAMP
from goqueue.replica.replica import Appended

IDS_MAX = 1_000_000
"""Per topic, about 250 bytes each; beyond that the oldest are forgotten early, and the log says so."""
KEY_BYTES = 16
SWEEP_MS, SWEPT_MAX = 1000, 10_000


class Acknowledger(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def failure(self) -> GoQueueError | None: ...

    @property
    def high_watermark(self) -> int: ...

    def when_reached(self, offset: int, call: Callable[[], None], /) -> None: ...


class Origin:
    """Where the batch of an id stands: said once for all of its ids, when it is appended."""

    __slots__ = ("acknowledger", "base_offset", "partition", "published_ms")

    def __init__(self, partition: int, base_offset: int, published_ms: int, acknowledger: Acknowledger) -> None:
        self.partition = partition
        self.base_offset = base_offset
        self.published_ms = published_ms
        self.acknowledger = acknowledger


class Known(NamedTuple):
    """Where the first record of an id is."""

    origin: Origin
    place: int
    """In its batch."""

    @property
    def partition(self) -> int:
        return self.origin.partition

    @property
    def offset(self) -> int:
        return self.origin.base_offset + self.place

    def is_at(self, partition: int, offset: int) -> bool:
        return self.partition == partition and self.offset == offset

    def published(self, at_ms: int) -> "Known":
        return Known(Origin(self.partition, self.offset, at_ms, self.acknowledger), 0)

    @property
    def acknowledger(self) -> Acknowledger:
        """Whoever says when it is durable: before that, a duplicate of it must not be acknowledged either."""
        return self.origin.acknowledger


class Looked:
    """What the ids of one batch say; offsets as its producer counts them."""

    __slots__ = ("again", "duplicates", "fresh", "ids", "origin", "stands_at")

    def __init__(
        self, ids: "Ids | None" = None, origin: Origin | None = None, stands_at: Appended | None = None
    ) -> None:
        self.ids = ids
        self.origin = origin
        self.stands_at = stands_at
        """This very batch was sent before and is there."""
        self.fresh: dict[bytes, Known] = {}
        """Ids that did not come before."""
        self.again: dict[bytes, Known] = {}
        """Those that did."""
        self.duplicates: dict[int, Known | None] = {}
        """Offsets of records that must not be published; None: the first of the id stands in the same batch."""


NOTHING = Looked()


class Ids:
    """Of one topic. Invariant: in the order in which they were published."""

    def __init__(self, topic: Topic, dedup_ms: int, scope: str) -> None:
        self.topic_id = topic.id
        self.dedup_ms = dedup_ms
        self.scope = scope
        self.known: dict[bytes, Known] = {}
        self.undecided: dict[int, list[int]] = {}
        """By partition: batches of transactions that may not have ended, with ids in them."""
        self.unread: dict[int, int] = {}
        """In a cluster: partitions whose logs may have ids that are not known here, since another node led them; and
        a number that is another one after every change of leader."""
        self._sweep_ms = 0
        self._changes = 0

    def forget_partition(self, partition: int) -> None:
        """Another node leads it, or this one anew: some of its ids may be gone, and others may have come."""
        for key in [key for key, known in self.known.items() if known.partition == partition]:
            del self.known[key]
        self.undecided.pop(partition, None)
        self._changes += 1
        self.unread[partition] = self._changes

    def key(self, given: bytes, record_key: bytes | None) -> bytes:
        """A digest: ids may be long, and there may be many."""
        scope = (record_key or b"") if self.scope == "key" else b""
        return blake2b(given, digest_size=KEY_BYTES, key=blake2b(scope, digest_size=KEY_BYTES).digest()).digest()

    def find(self, key: bytes, now_ms: int) -> Known | None:
        known = self.known.get(key)
        if known is not None and known.origin.published_ms + self.dedup_ms <= now_ms:
            del self.known[key]
            return None
        return known

    def expire(self, now_ms: int) -> None:
        """Now and then, and some at a time: whoever asks for one is told whether its time is over."""
        if now_ms < self._sweep_ms:
            return
        expired = []
        for key, known in islice(self.known.items(), SWEPT_MAX):
            if known.origin.published_ms + self.dedup_ms > now_ms:
                break
            expired.append(key)
        for key in expired:
            del self.known[key]
        if len(expired) < SWEPT_MAX:
            self._sweep_ms = now_ms + SWEEP_MS

    def add(self, key: bytes, known: Known) -> None:
        self.known.setdefault(key, known)
        self.make_room()

    def make_room(self) -> bool:
        """True: there is none left."""
        if len(self.known) > IDS_MAX:
            for key in list(islice(self.known, len(self.known) - IDS_MAX)):
                del self.known[key]
        return len(self.known) >= IDS_MAX


class DuplicateAcknowledger:
    """A acknowledger to whoever waits for a batch of which some records came before: it also waits for these."""

    def __init__(self, acknowledger: Acknowledger, base_offset: int, duplicates: Iterable[Known | None]) -> None:
        self._keeper = acknowledger
        self._base_offset = base_offset
        self._duplicates = [each for each in duplicates if each is not None]

    @property
    def start_offset(self) -> int:
        return self._keeper.start_offset

    @property
    def high_watermark(self) -> int:
        own = self._keeper.high_watermark
        is_there = all(each.offset < each.acknowledger.high_watermark for each in self._duplicates)
        return own if is_there else min(own, self._base_offset)

    @property
    def failure(self) -> GoQueueError | None:
        failures = (each.acknowledger.failure for each in self._duplicates)
        return self._keeper.failure or next((failure for failure in failures if failure is not None), None)

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        waiting = len(self._duplicates) + 1

        def reached() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                call()

        for each in self._duplicates:
            each.acknowledger.when_reached(each.offset + 1, reached)
        self._keeper.when_reached(offset, reached)


def all_before(batch: Batch, partition: int, looked: Looked) -> tuple["DuplicateAcknowledger", Appended] | None:
    """A batch of which every record came before, in this partition and in a row, is answered with where they are."""
    if batch.producer_id != NO_PRODUCER or len(looked.duplicates) < batch.record_count:
        return None
    found: list[Known] = [each for each in looked.duplicates.values() if each is not None]
    first = found[0] if found else None
    if first is None or len(found) < batch.record_count:
        return None
    base_offset = first.offset
    if not all(each.is_at(partition, base_offset + number) for number, each in enumerate(found)):
        return None
    acknowledger = first.acknowledger
    return DuplicateAcknowledger(acknowledger, first.offset, found), Appended(
        first.offset, first.offset + len(found), NO_TIMESTAMP
    )

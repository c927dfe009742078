"""Deduplication: on topics with `dedup.ms`, a record whose `gq-dedup-id` came before is not published again.

The ids stand in the records, so nothing else is stored: a publish and its id are durable together, and after a restart
the last `dedup.ms` of the log and what still waits for its time tell all ids. They count for the whole topic, which one
node holds; with `dedup.scope = key` for the records of one key. A record of a transaction counts from its commit.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple, Protocol

from goqueue.broker.delays.firing import PUBLISHED_AT, SCHEDULED_AS
from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.publishing.opening import open_published
from goqueue.broker.queues.observe import Aborted
from goqueue.broker.topics.topics import Topics
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic, TopicOptions, TopicsChange
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord
from goqueue.records.native import Headers
from goqueue.records.portions import portions
from goqueue.records.wishes import DEDUP_ID, dedup_id, mentions_wishes
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock, SteadyClock
from goqueue.telemetry.logs import get_logger

IDS_MAX = 1_000_000
"""Per topic, about 250 bytes each; beyond that the oldest are forgotten early, and the log says so."""
READ_BYTES = 1024 * 1024
ONE_BATCH = 1
KEY_BYTES = 16

events = get_logger("broker")


class Keeper(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def failure(self) -> GoQueueError | None: ...

    @property
    def high_watermark(self) -> int: ...

    def when_reached(self, offset: int, call: Callable[[], None], /) -> None: ...


class Known(NamedTuple):
    """Where the first record of an id is."""

    partition: int
    offset: int
    published_ms: int
    """By the clock of the deduplication, which is never set."""
    keeper: Keeper
    """Whoever says when it is durable: before that, a twin of it must not be acknowledged either."""


class Looked(NamedTuple):
    """What the ids of one batch say; offsets as its producer counts them."""

    fresh: dict[bytes, int]
    """Ids that did not come before, and the offsets of their records."""
    twins: dict[int, Known | None]
    """Offsets of records that must not be published; None: the first of the id stands in the same batch."""


NOTHING = Looked({}, {})


class _Ids:
    """Of one topic. Invariant: in the order in which they were published."""

    def __init__(self, topic: Topic, dedup_ms: int, scope: str) -> None:
        self.topic_id = topic.id
        self.dedup_ms = dedup_ms
        self.scope = scope
        self.known: dict[bytes, Known] = {}
        self.undecided: dict[int, list[int]] = {}
        """By partition: batches of transactions that may not have ended, with ids in them."""

    def key(self, given: bytes, record_key: bytes | None) -> bytes:
        """A digest: ids may be long, and there may be many."""
        scope = (record_key or b"") if self.scope == "key" else b""
        return blake2b(given, digest_size=KEY_BYTES, key=blake2b(scope, digest_size=KEY_BYTES).digest()).digest()

    def expire(self, now_ms: int) -> None:
        while self.known:
            oldest = next(iter(self.known))
            if self.known[oldest].published_ms + self.dedup_ms > now_ms:
                return
            del self.known[oldest]

    def add(self, key: bytes, known: Known) -> None:
        self.known.setdefault(key, known)
        if len(self.known) > IDS_MAX:
            del self.known[next(iter(self.known))]


class Deduplication:
    def __init__(self, topics: Topics, schedules: Schedules, clock: Clock) -> None:
        self._topics = topics
        self._schedules = schedules
        self._clock = SteadyClock(clock, 0)
        """An id counts for so long after its first record, whatever becomes of the wall clock meanwhile."""
        self._ids: dict[str, _Ids] = {}

    # -- publishing

    def covers(self, topic: str) -> bool:
        return topic in self._ids

    def find(self, topic: str, given: bytes, record_key: bytes | None) -> tuple[bytes, Known | None]:
        """What stands for an id of this topic, and where it came before if it did."""
        ids = self._ids[topic]
        self._refresh(topic, ids)
        key = ids.key(given, record_key)
        return key, ids.known.get(key)

    def look(
        self, topic: str, partition: int, batch: Batch, options: TopicOptions, stands_at: Appended | None
    ) -> Looked:
        """`stands_at`: this very batch was sent before and is there. InvalidWish: an id that is none."""
        ids = self._ids.get(topic)
        if ids is None:
            return NOTHING
        self._refresh(topic, ids)
        looked = Looked({}, {})
        records = open_published(batch, options)
        shift = None if stands_at is None else stands_at.base_offset - batch.base_offset
        for record in records:
            given = dedup_id(record.headers) if record.headers else None
            if given is None:
                continue
            key = ids.key(given, record.key)
            known = ids.known.get(key)
            if known is not None and (shift is None or known[:2] != (partition, record.offset + shift)):
                looked.twins[record.offset] = known
            elif key in looked.fresh:
                looked.twins[record.offset] = None
            else:
                looked.fresh[key] = record.offset
        return looked

    def remember(
        self, topic: str, partition: int, batch: Batch, base_offset: int, fresh: dict[bytes, int], keeper: Keeper
    ) -> None:
        """They are in the log now, or will be. What is never kept after all is forgotten again."""
        ids = self._ids.get(topic)
        if ids is None or not fresh:
            return
        if batch.is_transactional:
            ids.undecided.setdefault(partition, []).append(base_offset)
            return
        now_ms, shift = self._clock.now_ms(), base_offset - batch.base_offset
        for key, offset in fresh.items():
            ids.add(key, Known(partition, offset + shift, now_ms, keeper))
        if len(ids.known) >= IDS_MAX:
            events.warning("more ids than can be remembered: the oldest are forgotten", topic=topic, ids=IDS_MAX)

        def kept() -> None:
            if keeper.failure is not None:
                for key in fresh:
                    ids.known.pop(key, None)

        keeper.when_reached(base_offset + batch.last_offset_delta + 1, kept)

    def _refresh(self, topic: str, ids: _Ids) -> None:
        ids.expire(self._clock.now_ms())
        for partition, offsets in ids.undecided.items():
            try:
                replica = self._topics.replica(topic, partition)
            except GoQueueError:
                continue  # out of service: nothing of it can be read
            while offsets and offsets[0] < replica.last_stable_offset:
                self._decided(ids, replica, partition, offsets.pop(0))

    def _decided(self, ids: _Ids, replica: Replica, partition: int, offset: int) -> None:
        piece = replica.read(offset, ONE_BATCH, replica.last_stable_offset)
        if piece is not None:
            aborted = Aborted(replica.producers.open_transactions.aborted_in(offset, piece.next_offset - 1))
            for batch in split(piece.view()):
                if batch.base_offset == offset and not aborted.holds(batch):
                    now_ms = self._clock.now_ms()
                    for key, known in _known(ids, batch, replica, partition, now_ms):
                        ids.add(key, known._replace(published_ms=now_ms))

    # -- topics

    def start(self) -> None:
        """Before the doors open: what the logs and the schedules know."""
        for topic in self._topics.image.topics.values():
            ids = self._ids_of(topic)
            if ids is not None:
                self._ids[topic.name] = ids
                found = sorted(self._stored(topic, ids), key=lambda one: one[1].published_ms)
                for key, known in found:
                    ids.add(key, known)
                ids.expire(self._clock.now_ms())

    def topics_changed(self, change: TopicsChange) -> None:
        """Ids count from the moment when a topic is told to look at them."""
        for topic in change.gone:
            self._ids.pop(topic.name, None)
        for topic in change.present:
            ids, before = self._ids_of(topic), self._ids.get(topic.name)
            if ids is None:
                self._ids.pop(topic.name, None)
            elif before is None or (before.topic_id, before.scope) != (ids.topic_id, ids.scope):
                self._ids[topic.name] = ids
            else:
                before.dedup_ms = ids.dedup_ms

    def _ids_of(self, topic: Topic) -> _Ids | None:
        if "dedup.ms" not in topic.overrides:  # parsing all options of every topic would cost more
            return None
        options = topic.options(self._topics.defaults)
        return _Ids(topic, options.dedup_ms, options.dedup_scope) if options.dedup_ms else None

    def _stored(self, topic: Topic, ids: _Ids) -> Iterator[tuple[bytes, Known]]:
        for partition in range(topic.partitions):
            try:
                replica = self._topics.replica(topic.name, partition)
            except GoQueueError:
                continue  # out of service: nobody can publish there
            yield from self._in_log(ids, replica, partition)
            for offset, body in self._schedules.unpublished(topic.name, partition):
                given = _id_of(body.headers)
                if given is not None and offset >= 0:  # no place was kept free for what comes by itself
                    yield ids.key(given, body.key), Known(partition, offset, body.published_ms, replica)

    def _in_log(self, ids: _Ids, replica: Replica, partition: int) -> Iterator[tuple[bytes, Known]]:
        """The records of transactions that have not ended are looked at when they have."""
        now_ms = self._clock.now_ms()
        first = replica.first_at_or_after(now_ms - ids.dedup_ms)
        offset = replica.end_offset if first is None else first.offset
        stable = replica.last_stable_offset
        while (piece := replica.read(offset, READ_BYTES, replica.end_offset)) is not None:
            transactions = replica.producers.open_transactions
            aborted = Aborted(transactions.aborted_in(piece.first_offset, piece.next_offset - 1))
            for batch in split(piece.view()):
                if batch.is_control:
                    aborted.ended(batch)
                elif not mentions_wishes(batch, opens_compressed=True) or aborted.holds(batch):
                    continue
                elif batch.is_transactional and batch.base_offset >= stable:
                    ids.undecided.setdefault(partition, []).append(batch.base_offset)
                else:
                    yield from _known(ids, batch, replica, partition, now_ms)
            offset = piece.next_offset


def _known(ids: _Ids, batch: Batch, replica: Replica, partition: int, now_ms: int) -> Iterator[tuple[bytes, Known]]:
    try:
        for portion in portions(batch):
            for record in portion.records:
                given = _id_of(record.headers)
                if given is not None:
                    yield ids.key(given, record.key), _known_as(record, replica, partition, now_ms)
    except GoQueueError:
        return  # its producer filled the rest with nonsense


def _known_as(record: DecodedRecord, replica: Replica, partition: int, now_ms: int) -> Known:
    place, published_ms = (partition, record.offset), min(record.timestamp, now_ms)
    about = dict(record.headers)
    if SCHEDULED_AS in about:  # under this name its producer knows it
        place = _place(about[SCHEDULED_AS]) or place
        published_ms = min(_number(about.get(PUBLISHED_AT)) or published_ms, now_ms)
    return Known(*place, published_ms, replica)


def _id_of(headers: Headers) -> bytes | None:
    """Of what is stored: a value that says nothing counts as absent."""
    return dict(headers).get(DEDUP_ID) or None if headers else None


def _place(text: bytes | None) -> tuple[int, int] | None:
    partition, _, offset = (text or b"").partition(b"/")
    return (int(partition), int(offset)) if partition.isdigit() and offset.isdigit() else None


def _number(text: bytes | None) -> int | None:
    return int(text) if text and text.isdigit() else None


class Twinned:
    """A keeper to whoever waits for a batch of which some records came before: it also waits for these."""

    def __init__(self, keeper: Keeper, base_offset: int, twins: Iterable[Known | None]) -> None:
        self._keeper = keeper
        self._base_offset = base_offset
        self._twins = [each for each in twins if each is not None]

    @property
    def start_offset(self) -> int:
        return self._keeper.start_offset

    @property
    def high_watermark(self) -> int:
        own = self._keeper.high_watermark
        is_there = all(each.offset < each.keeper.high_watermark for each in self._twins)
        return own if is_there else min(own, self._base_offset)

    @property
    def failure(self) -> GoQueueError | None:
        failures = (each.keeper.failure for each in self._twins)
        return self._keeper.failure or next((failure for failure in failures if failure is not None), None)

    def when_reached(self, offset: int, call: Callable[[], None]) -> None:
        waiting = len(self._twins) + 1

        def reached() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                call()

        for each in self._twins:
            each.keeper.when_reached(each.offset + 1, reached)
        self._keeper.when_reached(offset, reached)

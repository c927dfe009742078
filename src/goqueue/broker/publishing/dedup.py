"""Deduplication: on topics with `dedup.ms`, a record whose `gq-dedup-id` came before is not published again.

The ids stand in the records, so nothing else is stored: a publish and its id are durable together, and after a restart
the last `dedup.ms` of the log and what still waits for its time tell all ids. They count for the whole topic, which one
node holds; with `dedup.scope = key` for the records of one key. A record of a transaction counts from its commit.

In a cluster such a topic has one partition, or the scope is a key, so that one leader knows all ids that matter. A new
leader reads them from the end of the log before it takes the first record with an id.
"""

from collections.abc import Iterator, Sequence

from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.publishing.dedup_ids import NOTHING, Acknowledger, Ids, Known, Looked, Origin
from goqueue.broker.publishing.opening import in_portions
from goqueue.broker.publishing.turns import Steps, run_at_once
from goqueue.broker.queues.observe import Aborted
from goqueue.broker.topics.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.errors import CoordinatorLoading, GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.topics import Topic, TopicsChange
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord
from goqueue.records.delayed import PUBLISHED_AT, SCHEDULED_AS
from goqueue.records.native import Headers
from goqueue.records.portions import portions
from goqueue.records.wishes import DEDUP_ID, dedup_id, mentions_wishes
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock, SteadyClock
from goqueue.telemetry.logs import get_logger

READ_BYTES = 1024 * 1024
ONE_BATCH = 1
TURN_IDS = 500

events = get_logger("broker")


class Deduplication:
    def __init__(self, topics: Topics, schedules: Schedules, clock: Clock, *, is_spread: bool = False) -> None:
        """`is_spread`: in a cluster, where leaders change."""
        self._is_spread = is_spread
        self._topics = topics
        self._schedules = schedules
        self._clock = SteadyClock(clock, 0)
        """An id counts for so long after its first record, whatever becomes of the wall clock meanwhile."""
        self._ids: dict[str, Ids] = {}

    # -- publishing

    def covers(self, topic: str) -> bool:
        return topic in self._ids

    def find(self, topic: str, given: bytes, record_key: bytes | None) -> tuple[bytes, Known | None]:
        """What stands for an id of this topic, and where it came before if it did."""
        ids = self._ids[topic]
        run_at_once(self._refresh(topic, ids))
        key = ids.key(given, record_key)
        return key, ids.find(key, self._clock.now_ms())

    def look(
        self,
        place: tuple[str, int],
        batch: Batch,
        records: Sequence[DecodedRecord],
        replica: Replica,
    ) -> Steps[Looked]:
        """InvalidWish: an id that is none."""
        topic, partition = place
        ids = self._ids.get(topic)
        if ids is None:
            return NOTHING
        yield from self._refresh(topic, ids)
        looked = Looked(ids, Origin(partition, 0, self._clock.now_ms(), replica), replica.find_sent(batch))
        for number, portion in enumerate(in_portions(records)):
            if number:
                yield None
            self._look_at(looked, ids, batch, portion)
        return looked

    def _look_at(self, looked: Looked, ids: Ids, batch: Batch, records: Sequence[DecodedRecord]) -> None:
        assert looked.origin is not None
        partition, now_ms = looked.origin.partition, self._clock.now_ms()
        shift = None if looked.stands_at is None else looked.stands_at.base_offset - batch.base_offset
        for record in records:
            given = dedup_id(record.headers) if record.headers else None
            if given is None:
                continue
            key = ids.key(given, record.key)
            known = ids.find(key, now_ms)
            if known is not None and shift is not None and known.is_at(partition, record.offset + shift):
                continue  # itself
            if known is not None:
                looked.duplicates[record.offset] = looked.again[key] = known
            elif key in looked.fresh:
                looked.duplicates[record.offset] = None
            else:
                looked.fresh[key] = Known(looked.origin, record.offset - batch.base_offset)

    def still_holds(self, topic: str, looked: Looked, batch: Batch, replica: Replica) -> bool:
        """Whether nobody has published any of these ids since they were looked at. Cheap for many too: it is asked in
        the turn in which they are published."""
        ids = self._ids.get(topic)
        if ids is None or ids is not looked.ids:
            return ids is looked.ids
        if looked.stands_at != replica.find_sent(batch):
            return False
        if looked.origin is not None and looked.origin.partition in ids.unread:
            return False
        known = ids.known
        is_decided = not any(self._ended(topic, partition, offsets) for partition, offsets in ids.undecided.items())
        are_fresh = known.keys().isdisjoint(looked.fresh)
        return is_decided and are_fresh and list(map(known.get, looked.again)) == list(looked.again.values())

    def remember(
        self, place: tuple[str, int], batch: Batch, base_offset: int, looked: Looked, acknowledger: Acknowledger
    ) -> None:
        """They are in the log now, or will be. What is never kept after all is forgotten again."""
        topic, partition = place
        ids, fresh, origin = self._ids.get(topic), looked.fresh, looked.origin
        if ids is None or origin is None or not fresh:
            return
        if batch.is_transactional:
            ids.undecided.setdefault(partition, []).append(base_offset)
            return
        origin.base_offset, origin.published_ms, origin.acknowledger = base_offset, self._clock.now_ms(), acknowledger
        ids.known.update(fresh)
        if ids.make_room():
            known = len(ids.known)
            events.warning("more ids than can be remembered: the oldest are forgotten", topic=topic, ids=known)

        def kept() -> None:
            if acknowledger.failure is not None:
                for key in fresh:
                    ids.known.pop(key, None)

        acknowledger.when_reached(base_offset + batch.last_offset_delta + 1, kept)

    def _refresh(self, topic: str, ids: Ids) -> Steps[None]:
        """What was decided of transactions since somebody looked. Done by two at a time it is done twice, and by none
        in part."""
        ids.expire(self._clock.now_ms())
        while (partition := next((each for each in ids.unread if self._topics.leads(topic, each)), None)) is not None:
            yield from self._read(topic, ids, partition)
        for partition, offsets in list(ids.undecided.items()):
            while (replica := self._ended(topic, partition, offsets)) is not None:
                offset = offsets[0]
                yield from self._decided(ids, replica, partition, offset)
                if offsets and offsets[0] == offset:
                    del offsets[0]

    def _read(self, topic: str, ids: Ids, partition: int) -> Steps[None]:
        """What the log of a new leader tells, in slices. Refused: its delays are not loaded yet, try again."""
        change = ids.unread[partition]
        try:
            found = []
            for number, one in enumerate(self._stored_in(topic, ids, partition), 1):
                found.append(one)
                if not number % TURN_IDS:
                    yield None
        except CoordinatorLoading as error:
            raise Refused(Code.NOT_ENOUGH_REPLICAS, f"ids of {topic}/{partition} are not known yet: {error}") from error
        if ids.unread.get(partition) != change:
            return  # it has another leader, or has been read meanwhile
        del ids.unread[partition]
        found.sort(key=lambda one: one[1].origin.published_ms)
        for key, known in found:
            ids.add(key, known)

    def partition_changed(self, place: tuple[str, int]) -> None:
        """In a cluster: this node leads it now, or does not any more."""
        ids = self._ids.get(place[0])
        if ids is not None:
            ids.forget_partition(place[1])

    def _ended(self, topic: str, partition: int, offsets: list[int]) -> Replica | None:
        """The log in which the first of these batches is decided. None: it is not, or is out of service, so that
        nothing of it can be read."""
        if not offsets:
            return None
        replica = self._topics.find_replica(topic, partition)
        is_there = replica is not None and replica.failure is None
        return replica if is_there and offsets[0] < replica.last_stable_offset else None  # type: ignore[union-attr]

    def _decided(self, ids: Ids, replica: Replica, partition: int, offset: int) -> Steps[None]:
        piece = replica.read(offset, ONE_BATCH, replica.last_stable_offset)
        if piece is None:
            return
        aborted = Aborted(replica.producers.open_transactions.aborted_in(offset, piece.next_offset - 1))
        for batch in split(memoryview(piece.read())):  # the log's memory is not ours beyond this turn
            if batch.base_offset == offset and not aborted.holds(batch):
                now_ms = self._clock.now_ms()
                for number, (key, known) in enumerate(_known(ids, batch, replica, partition, now_ms)):
                    if number and not number % TURN_IDS:
                        yield None
                    ids.add(key, known.published(now_ms))

    # -- topics

    def start(self) -> None:
        """Before the doors open: what the logs and the schedules know."""
        for topic in self._topics.image.topics.values():
            ids = self._ids_of(topic)
            if ids is not None:
                self._ids[topic.name] = ids
                found = sorted(self._stored(topic, ids), key=lambda one: one[1].origin.published_ms)
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
                if self._is_spread:
                    for partition in range(topic.partitions):
                        ids.forget_partition(partition)
            else:
                before.dedup_ms = ids.dedup_ms

    def _ids_of(self, topic: Topic) -> Ids | None:
        if "dedup.ms" not in topic.overrides:  # parsing all options of every topic would cost more
            return None
        options = topic.options(self._topics.defaults)
        return Ids(topic, options.dedup_ms, options.dedup_scope) if options.dedup_ms else None

    def _stored(self, topic: Topic, ids: Ids) -> Iterator[tuple[bytes, Known]]:
        for partition in range(topic.partitions):
            yield from self._stored_in(topic.name, ids, partition)

    def _stored_in(self, topic: str, ids: Ids, partition: int) -> Iterator[tuple[bytes, Known]]:
        try:
            replica = self._topics.replica(topic, partition)
        except GoQueueError:
            return  # out of service: nobody can publish there
        yield from self._in_log(ids, replica, partition)
        for offset, body in self._schedules.unpublished(topic, partition):
            given = _id_of(body.headers)
            if given is not None and offset >= 0:  # no place was kept free for what comes by itself
                yield ids.key(given, body.key), Known(Origin(partition, offset, body.published_ms, replica), 0)

    def _in_log(self, ids: Ids, replica: Replica, partition: int) -> Iterator[tuple[bytes, Known]]:
        """The records of transactions that have not ended are looked at when they have."""
        now_ms = self._clock.now_ms()
        first = replica.first_at_or_after(now_ms - ids.dedup_ms)
        offset = replica.end_offset if first is None else first.offset
        stable = replica.last_stable_offset
        while (piece := replica.read(offset, READ_BYTES, replica.end_offset)) is not None:
            transactions = replica.producers.open_transactions
            aborted = Aborted(transactions.aborted_in(piece.first_offset, piece.next_offset - 1))
            for batch in split(memoryview(piece.read())):  # the log's memory is not ours beyond this turn
                if batch.is_control:
                    aborted.ended(batch)
                elif not mentions_wishes(batch, opens_compressed=True) or aborted.holds(batch):
                    continue
                elif batch.is_transactional and batch.base_offset >= stable:
                    ids.undecided.setdefault(partition, []).append(batch.base_offset)
                else:
                    yield from _known(ids, batch, replica, partition, now_ms)
            offset = piece.next_offset


def _known(ids: Ids, batch: Batch, replica: Replica, partition: int, now_ms: int) -> Iterator[tuple[bytes, Known]]:
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
    return Known(Origin(*place, published_ms, replica), 0)


def _id_of(headers: Headers) -> bytes | None:
    """Of what is stored: a value that says nothing counts as absent."""
    return dict(headers).get(DEDUP_ID) or None if headers else None


def _place(text: bytes | None) -> tuple[int, int] | None:
    partition, _, offset = (text or b"").partition(b"/")
    return (int(partition), int(offset)) if partition.isdigit() and offset.isdigit() else None


def _number(text: bytes | None) -> int | None:
    return int(text) if text and text.isdigit() else None

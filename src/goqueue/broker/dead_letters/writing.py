"""Dead letters: records that a group gives up on are written to a topic of their own before they are settled.

`{topic}.dlq`, or the one that a topic names (`dead.letter.topic`), is an ordinary topic, made when first needed. A
dead letter has the key, the value and the headers of its record, and headers that say where it came from and why it
died.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from goqueue.broker.dead_letters.identities import Identity, LetterBatch, LetterProducers, Target
from goqueue.broker.delays.firing import record_bytes
from goqueue.broker.publishing.publish import Publisher
from goqueue.broker.queues.leased_records import LeasedRecords, read_slices
from goqueue.broker.queues.queues import Queues
from goqueue.broker.remote.appends import RemoteAppends
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import DETAIL_CHARS_MAX, runs_of
from goqueue.machines.controller_commands import CreateTopic, Result
from goqueue.machines.deliveries.commands import DeadLetter, DeadLettersWritten, LeasedRun, Place
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.kept_options import LONG_MAX
from goqueue.model.topics import Topic
from goqueue.records.batch import HEADER_BYTES
from goqueue.records.build import NewRecord, build_fitting
from goqueue.records.dead_letters import (
    ATTEMPTS,
    DIED_AT,
    ERROR,
    FIRST_DELIVERED,
    GROUP,
    OFFSET,
    PARTITION,
    REASON,
    TIMESTAMP,
    TOPIC,
    dead_letter_topic,
    letter_headers,
)
from goqueue.records.decode import DecodedRecord
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Journeys, Step
from goqueue.telemetry.logs import get_logger

RECORDS_PER_BATCH = 100
RETRY_MS = 1000
NOT_SHOWN_MS = 50
READ_BYTES = 512 * 1024
ABOUT_BYTES = 16 * 1024
"""More than the headers of a dead letter take that its record did not have."""

events = get_logger("broker")


def dead_letters_of(topics: Topics, topic: str) -> str:
    """The topic for the dead letters of `topic`: the one that it names, or one made for it."""
    known = topics.image.topics.get(topic)
    named = known.overrides.get("dead.letter.topic", "") if known is not None else ""
    return named if named and named != topic else dead_letter_topic(topic)


def make_dead_letter_topic(
    topics: Topics, source: Topic, on_reply: Callable[[Result | GoQueueError], None], partitions: int | None = None
) -> None:
    """What the source took must fit, with all that is said about it. One partition has to do where the node cannot have
    as many as the source. Replies with a GoQueueError if there is none.
    """
    bytes_max = max(source.options(topics.defaults).max_message_bytes, topics.defaults.max_message_bytes) + ABOUT_BYTES
    options = {"max.message.bytes": str(min(bytes_max, LONG_MAX))}
    count = source.partitions if partitions is None else partitions

    def created(reply: Result | GoQueueError) -> None:
        if isinstance(reply, GoQueueError) or reply.code in (Code.NONE, Code.TOPIC_ALREADY_EXISTS):
            on_reply(reply)
        elif reply.code is Code.INVALID_PARTITIONS and count > 1:
            make_dead_letter_topic(topics, source, on_reply, partitions=1)
        else:
            on_reply(GoQueueError(reply.message))

    name = dead_letters_of(topics, source.name)
    topics.submit(CreateTopic(name, topics.new_id(), count, options, may_collide=True), created)


def when_shown(topics: Topics, name: str, clock: Clock, call: Callable[[], None]) -> None:
    """Call soon; or a little later, if another node has made the topic and this one was not told of it yet."""
    if name in topics.image.topics:
        clock.call_soon(call)
    else:
        clock.call_after(NOT_SHOWN_MS, call)


class DeadLetterWriter:
    """One batch per place at a time; what fails is tried again until it succeeds, and is settled only then."""

    def __init__(self, queues: Queues, topics: Topics, publisher: Publisher, clock: Clock, journeys: Journeys) -> None:
        self._queues = queues
        self._topics = topics
        self._publisher = publisher
        self._clock = clock
        self._journeys = journeys
        self._records = LeasedRecords()
        self._under_way: set[Place] = set()
        self.written = 0
        self.written_by_reason: Counter[str] = Counter()
        self.written_by_topic: Counter[str] = Counter()
        """By the topic that they came from."""
        self.create_errors = 0
        self.publish_errors = 0
        self.appends: RemoteAppends | None = None
        """In a cluster: to dead letters whose partition another node leads."""
        self.producers: LetterProducers | None = None
        """In a cluster, where the answer to a write may be lost."""
        queues.on_dying.append(self._write)

    def write_pending(self) -> None:
        """After a restart: what died before it and was not settled."""
        for group_id in list(self._queues.groups()):
            for place in self._queues.places(group_id):
                self._write(place)

    def _write(self, place: Place) -> None:
        if place in self._under_way:
            return
        try:
            due = self._queues.peek_at(place).dead_due(place)
        except GoQueueError:
            return  # it tells of them again when it is loaded
        if not due:
            return
        self._under_way.add(place)
        again = None if self.producers is None else self.producers.unsure(place, due)
        if again is not None:
            self._append(again)
            return
        letters = due[:RECORDS_PER_BATCH]
        try:
            source = self._topics.image.topics.get(place.topic)
            name = dead_letters_of(self._topics, place.topic)
            if source is not None and name not in self._topics.image.topics:
                self._create(source, place)
                return
            if self.appends is None:
                self._publish(place, name, letters)
            else:
                self._when_committed(place, name, letters)
        except GoQueueError as error:
            self.publish_errors += 1
            self._failed(place, error)

    def _when_committed(self, place: Place, name: str, letters: Sequence[DeadLetter]) -> None:
        """Another leader may not know of a death that is not: it would deliver what is a dead letter already."""

        def confirmed(error: GoQueueError | None) -> None:
            if error is not None:
                self._under_way.discard(place)  # who leads then is told of it
                return
            try:
                self._publish(place, name, letters)
            except GoQueueError as mistake:
                self.publish_errors += 1
                self._failed(place, mistake)

        self._queues.confirm(place, confirmed)

    def _create(self, source: Topic, place: Place) -> None:
        def created(reply: object) -> None:
            if isinstance(reply, GoQueueError):
                self.create_errors += 1
                self._failed(place, reply)
            else:
                when_shown(self._topics, dead_letters_of(self._topics, source.name), self._clock, again)

        def again() -> None:
            self._again(place)

        make_dead_letter_topic(self._topics, source, created)

    def _publish(self, place: Place, name: str, letters: Sequence[DeadLetter]) -> None:
        target = Target(place, name, place.partition % self._topics.image.topics[name].partitions)
        if self.producers is None:
            self._build(target, letters, None)
            return

        def taken(identity: Identity | None) -> None:
            try:
                self._build(target, letters, identity)
            except GoQueueError as mistake:
                self.publish_errors += 1
                self._failed(place, mistake)

        self.producers.take(target, taken)

    def _build(self, target: Target, letters: Sequence[DeadLetter], identity: Identity | None) -> None:
        place, name, partition = target
        if self.appends is not None and self.appends.is_elsewhere(name, partition):
            bytes_max = self.appends.bytes_max(name)
        else:
            bytes_max = self._topics.replica(name, partition).log.options.batch_bytes_max
        records, written, settles = self._read(place, letters, min(READ_BYTES, bytes_max - HEADER_BYTES))
        if not records:  # retention was faster
            self._settle(place, settles)
            return
        made = build_fitting(records, bytes_max, **({} if identity is None else identity._asdict()))
        if len(made) > bytes_max:
            self.publish_errors += 1
            where = {"topic": place.topic, "partition": place.partition, "offset": written[0].offset}
            events.error("dead letter left out: too large", **where, bytes=len(made), limit=bytes_max)
            self._settle(place, settles)
            return
        self._append(LetterBatch(target, bytes(made), records, written, settles))

    def _append(self, batch: LetterBatch) -> None:
        place, name, partition = batch.target

        def stored(base_offset: int | GoQueueError) -> None:
            if isinstance(base_offset, GoQueueError):
                self.publish_errors += 1
                if self.producers is not None:
                    self.producers.failed(batch, base_offset)
                self._failed(place, base_offset)
                return
            if self.producers is not None:
                self.producers.succeeded(batch)
            self.written += len(batch.records)
            self.written_by_topic[place.topic] += len(batch.records)
            self.written_by_reason.update((dict(record[3])[REASON] or b"").decode() for record in batch.records)
            self._note(place, dict(enumerate(batch.written, base_offset)), f"{name}/{partition}")
            self._settle(place, batch.settles)

        if self.appends is not None and self.appends.is_elsewhere(name, partition):
            self.appends.append(name, partition, batch.data, stored)
            return
        try:
            data = memoryview(bytearray(batch.data))
            acknowledger, appended = self._publisher.publish(name, partition, data, is_own=True)
        except GoQueueError as error:
            stored(error.kept())
            return
        acknowledger.when_reached(
            appended.next_offset,
            lambda: stored(appended.base_offset if acknowledger.failure is None else acknowledger.failure),
        )

    def _read(
        self, place: Place, letters: Sequence[DeadLetter], bytes_max: int
    ) -> tuple[list[NewRecord], Sequence[DeadLetter], Sequence[DeadLetter]]:
        """As many as fit into one batch, at least one; the letters that these are, and those that this settles."""
        replica = self._topics.replica(place.topic, place.partition)
        there = [each.offset for each in letters if each.offset >= replica.start_offset]
        runs = [LeasedRun(offset, offset, 0, 0) for offset in there]
        slices = read_slices(replica, runs, READ_BYTES)
        found, unreadable, not_reached = self._records.read(replica, slices)
        for run in unreadable:
            events.error("dead letter unreadable", topic=place.topic, partition=place.partition, offset=run.first)
        by_offset = {each.offset: each for each in letters}
        now_ms = self._clock.now_ms()
        records: list[NewRecord] = []
        taken: list[DeadLetter] = []
        size = 0
        for record, _ in found:
            made = _dead_letter(record, by_offset[record.offset], place, now_ms)
            size += record_bytes(made)
            if records and size > bytes_max:
                break
            records.append(made)
            taken.append(by_offset[record.offset])
        if len(taken) < len(found):
            return records, taken, taken
        left_out = {run.first for run in (*slices.left_out, *not_reached)}
        return records, taken, [each for each in letters if each.offset not in left_out]

    def _note(self, place: Place, written: Mapping[int, DeadLetter], where: str) -> None:
        """Neighbours that died alike together. `written`: by the offsets that they have now."""
        group, topic, partition = place
        now_ms = self._clock.now_ms()
        for (reason, error), alike in groupby(written.items(), lambda one: (one[1].reason, one[1].error)):
            why = f"{reason}: {error}" if error else reason
            for first, last, offset in runs_of((letter.offset, new) for new, letter in alike):
                detail = f"{why[:DETAIL_CHARS_MAX]}; now {where}/{offset}"
                self._journeys.note(now_ms, Step.DEAD_LETTERED, topic, partition, first, last, group, detail=detail)

    def _settle(self, place: Place, letters: Sequence[DeadLetter]) -> None:
        def settled(reply: object) -> None:
            if isinstance(reply, GoQueueError):
                self._failed(place, reply)
            else:
                self._clock.call_soon(lambda: self._again(place))

        self._queues.submit(DeadLettersWritten(place, tuple(each.offset for each in letters)), settled)

    def _failed(self, place: Place, error: GoQueueError) -> None:
        events.error("dead letters not written yet", topic=place.topic, group=place.group_id, reason=str(error))
        self._clock.call_after(RETRY_MS, lambda: self._again(place))

    def _again(self, place: Place) -> None:
        self._under_way.discard(place)
        self._write(place)


def _dead_letter(record: DecodedRecord, letter: DeadLetter, place: Place, now_ms: int) -> NewRecord:
    """Its timestamp is the time of its death, so that retention of the dead letters counts from then."""
    headers = letter_headers(record.headers)
    about: dict[str, str | int] = {
        TOPIC: place.topic,
        PARTITION: place.partition,
        OFFSET: letter.offset,
        GROUP: place.group_id,
        REASON: letter.reason,
        ERROR: letter.error,
        ATTEMPTS: letter.attempts,
        FIRST_DELIVERED: letter.first_delivered_ms,
        DIED_AT: letter.died_ms,
        TIMESTAMP: record.timestamp,
    }
    headers += [(name, str(value).encode()) for name, value in about.items()]
    return now_ms, record.key, record.value, headers

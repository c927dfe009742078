"""Records into a topic, for every door that does not send batches: spread over partitions, one batch for each."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias

from goqueue.broker.publishing.dedup import Deduplication
from goqueue.broker.publishing.dedup_ids import Known
from goqueue.broker.publishing.outliving import Outliving
from goqueue.broker.publishing.publish import Acknowledger, Publisher
from goqueue.broker.publishing.together import OnSent, Send, Together
from goqueue.broker.publishing.turns import Steps
from goqueue.broker.topics.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, GoQueueError, InvalidWish
from goqueue.model.refusal import InvalidRecords, NotAppended, NotLeader, Refused
from goqueue.model.topics import Topic, TopicsChange
from goqueue.records.build import NewRecord, build_batch, build_fitting
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.partitioners import Partitioner, RoundRobin, check_partition, partition_for
from goqueue.records.wishes import PREFIX, dedup_id
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

DIVIDED_PER_TURN = 64
"""A batch of so many messages that is refused for one of them is divided in a later turn."""

LOOKED_INTO = frozenset({"schema.validation", "delay.order", "dedup.ms"})
"""Options of topics for which a batch is looked into: what is found of one message may cost the others of its batch
something, so that each send has batches of its own."""

events = get_logger("broker")


class Spread(Protocol):
    def __call__(
        self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, *, at_once: bool = False
    ) -> None: ...


class Sender:
    def __init__(self, topics: Topics, publisher: Publisher, dedup: Deduplication, clock: Clock) -> None:
        self._topics = topics
        self._publisher = publisher
        self._dedup = dedup
        self._clock = clock
        self._turns = RoundRobin()
        self.spread: Spread | None = None
        """In a cluster: gives each message to the leader of its partition."""
        self.charges_time: Callable[[], bool] = lambda: False
        """Whether time is charged to who uses it: then each send is one of its own, in the turn of its client."""
        self._together = Together(clock, self._send_all)

    def send(self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, *, at_once: bool = False) -> None:
        """Publish all of them, each on its own: `on_sent` gets one answer per message once all are acknowledged. What
        comes in one turn of the event loop is published together; `at_once`: what can be told now is told now."""
        (self.spread or self.send_here)(topic, messages, on_sent, at_once=at_once)

    def refused(self, topic: str, error: GoQueueError) -> None:
        """A message found no partition."""
        self._publisher.refused(topic, -1, 1, error)

    def send_here(self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, *, at_once: bool = False) -> None:
        """As `send`, to partitions that this node leads."""
        is_alone = (
            at_once
            or self.charges_time()
            or self._publisher.rooms(topic) is not None
            or not (self._takes_plain(topic) and all(map(_is_plain, messages)))
        )
        self._together.send(topic, messages, on_sent, is_alone=is_alone)

    def _takes_plain(self, topic: str) -> bool:
        """A message is looked at here for what it asks for and for nothing else, so that one has no bearing on
        another."""
        known = self._topics.image.topics.get(topic)
        return known is not None and not known.overrides.keys() & LOOKED_INTO

    def _send_all(self, topic: str, sends: Sequence[Send], started_s: float) -> None:
        """Each is told when its own messages are acknowledged, whatever becomes of the others."""
        sendings = [
            _Sending(len(messages), partial(self._told, topic, started_s, on_sent)) for messages, on_sent in sends
        ]
        try:
            known = self._find(topic)
        except GoQueueError as error:
            self._publisher.refused(topic, -1, sum(len(sending.sent) for sending in sendings), error)
            told = error.kept()
            call_each([partial(sending.refused, told) for sending in sendings])
            return
        partitioner = self._topics.partitioner(known)
        by_partition: dict[int, list[Slot]] = {}
        for sending, (messages, _) in zip(sendings, sends, strict=True):
            duplicates = self._duplicates(topic, messages) if self._dedup.covers(topic) else {}
            for place, message in enumerate(messages):
                if place in duplicates:
                    continue
                try:
                    partition = self._choose(known, message, partitioner)
                except GoQueueError as error:
                    self._publisher.refused(topic, -1, 1, error)
                    sending.sent[place] = Sent(-1, -1, error.kept())
                else:
                    by_partition.setdefault(partition, []).append((sending, place, message))
            self._answer_duplicates(topic, duplicates, sending)
        for partition, slots in by_partition.items():
            for sending in _sendings_of(slots):
                sending.begin()
            steps = self._publish(topic, partition, slots)
            self._publisher.turns.run(steps, partial(self._ended, partition, slots), order=(topic, partition))
        call_each([sending.done for sending in sendings])

    def _told(self, topic: str, started_s: float, on_sent: OnSent, sent: list[Sent]) -> None:
        stored = next((one for one in sent if one.error is None and one.offset >= 0), None)
        if stored is not None:
            self._publisher.acknowledged(topic, stored.partition, stored.offset, started_s)
        on_sent(sent)

    def _ended(self, partition: int, slots: "list[Slot]", result: Exception | None) -> None:
        if result is not None:
            events.error("publishing failed", exc_info=result)
            _fail(partition, slots, Refused(Code.UNKNOWN_SERVER_ERROR, "a fault of the broker"))
        call_each([sending.done for sending in _sendings_of(slots)])

    def choose(self, topic: str, message: NewMessage) -> int:
        """The partition that a message goes to. Refused: there is none such."""
        known = self._find(topic)
        return self._choose(known, message, self._topics.partitioner(known))

    def _duplicates(self, topic: str, messages: Sequence[NewMessage]) -> dict[int, int | Known]:
        """Messages that were published before: where; or that repeat an earlier one of these: which."""
        found: dict[int, int | Known] = {}
        here: dict[bytes, int] = {}
        for number, message in enumerate(messages):
            with suppress(InvalidWish):  # whoever publishes it meets the same error, and tells it
                given = dedup_id(message.all_headers())
                if given is None:
                    continue
                key, known = self._dedup.find(topic, given, message.key)
                if known is not None:
                    found[number] = known
                elif here.setdefault(key, number) != number:
                    found[number] = here[key]
        return found

    def _answer_duplicates(self, topic: str, duplicates: dict[int, int | Known], sending: "_Sending") -> None:
        for place, first in duplicates.items():
            if isinstance(first, int):
                sending.repeats[place] = first
            else:
                self._answer_duplicate(topic, place, first, sending)

    def _answer_duplicate(self, topic: str, place: int, first: Known, sending: "_Sending") -> None:
        partition, offset, acknowledger = first.partition, first.offset, first.acknowledger
        sending.begin()

        def reached() -> None:
            failure = acknowledger.failure
            durability = self._topics.durability(topic, partition)
            sending.sent[place] = Sent(partition, -1 if failure else offset, failure, durability)
            sending.done()

        acknowledger.when_reached(offset + 1, reached)

    def topics_changed(self, change: TopicsChange) -> None:
        for topic in change.gone:
            self._turns.forget(topic.name)

    def _find(self, name: str) -> Topic:
        topic = self._topics.image.topics.get(name)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return topic

    def _choose(self, topic: Topic, message: NewMessage, partitioner: Partitioner) -> int:
        if message.partition is not None:
            return check_partition(message.partition, topic.partitions)
        if message.key is None or partitioner is Partitioner.ROUND_ROBIN:
            return self._turns.choose(topic.name, topic.partitions)
        return partition_for(message.key, topic.partitions, partitioner)

    def _publish(self, topic: str, partition: int, slots: "list[Slot]") -> Steps[None]:
        now_ms = self._clock.now_ms()
        try:
            records = [_record(message, now_ms) for _, _, message in slots]
            if len(slots) == 1 and slots[0][2].may_be_compressed:
                data = build_fitting(records, self._topics.replica(topic, partition).log.options.batch_bytes_max)
            else:
                data = build_batch(records, is_of_any_time=any(record[0] < 0 for record in records))
            acknowledger, appended = yield from self._publisher.steps(topic, partition, memoryview(data))
        except (ValueError, GoQueueError) as mistake:
            is_divided = len(slots) > 1 and _is_of_one(mistake)
            if not is_divided:
                error = _as_error(mistake)
                self._publisher.refused(topic, partition, len(slots), error)
                _fail(partition, slots, error.kept())
                del error  # its frames hold it no longer
        else:
            is_divided = False
            known = self._acknowledged_by(acknowledger, appended)
            _wait(partition, slots, known, appended, partial(self._topics.durability, topic, partition))
        if is_divided:
            if len(slots) >= DIVIDED_PER_TURN:
                yield None
            half = len(slots) // 2
            yield from self._publish(topic, partition, slots[:half])
            yield from self._publish(topic, partition, slots[half:])

    def _acknowledged_by(self, acknowledger: Acknowledger, appended: Appended) -> "Acknowledger | Outliving":
        """In a cluster a batch that was not acknowledged when its leader changed may be so by the next one."""
        if self.spread is None or not isinstance(acknowledger, Replica):
            return acknowledger
        return Outliving(acknowledger, appended.next_offset, self._clock)


class _Sending:
    """The answers to one `send`."""

    def __init__(self, count: int, on_all: Callable[[list[Sent]], None]) -> None:
        self.sent: list[Sent] = [Sent(-1, -1)] * count
        self.repeats: dict[int, int] = {}
        """Of messages with the id of an earlier one of them: which that is. They are told what it is told."""
        self._on_all = on_all
        self._waiting = 1
        """Answers that are not known yet, and who asks for them."""

    def begin(self) -> None:
        self._waiting += 1

    def done(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            for place, first in self.repeats.items():
                self.sent[place] = self.sent[first]
            self._on_all(self.sent)

    def refused(self, error: GoQueueError) -> None:
        self.sent = [Sent(-1, -1, error)] * len(self.sent)
        self.done()


Slot: TypeAlias = tuple[_Sending, int, NewMessage]
"""A message, and where its answer belongs."""


def _sendings_of(slots: Sequence[Slot]) -> list[_Sending]:
    """Each once."""
    return list(dict.fromkeys(sending for sending, _, _ in slots))


def _fail(partition: int, slots: Iterable[Slot], error: GoQueueError) -> None:
    for sending, place, _ in slots:
        sending.sent[place] = Sent(partition, -1, error)


def _wait(
    partition: int,
    slots: Sequence[Slot],
    acknowledger: "Acknowledger | Outliving",
    appended: Appended,
    durability: Callable[[], str],
) -> None:
    sendings = _sendings_of(slots)
    for sending in sendings:
        sending.begin()

    def reached() -> None:
        failure, reached_durability = acknowledger.failure, durability()
        for number, (sending, place, _) in enumerate(slots):
            offset = -1 if failure else appended.base_offset + number
            sending.sent[place] = Sent(partition, offset, failure, reached_durability)
        call_each([sending.done for sending in sendings])

    acknowledger.when_reached(appended.next_offset, reached)


def _is_plain(message: NewMessage) -> bool:
    """Its batch is all that is written of it."""
    if message.delay_ms is not None or message.deliver_at_ms is not None or message.dedup_id is not None:
        return False
    return not any(name[: len(PREFIX)] == PREFIX for name, _ in message.headers)


def _record(message: NewMessage, now_ms: int) -> NewRecord:
    timestamp_ms = now_ms if message.timestamp_ms is None else message.timestamp_ms
    return timestamp_ms, message.key, message.value, message.all_headers()


def _as_error(mistake: ValueError | GoQueueError) -> GoQueueError:
    """Whatever was raised, nothing was appended."""
    if isinstance(mistake, NotLeader):
        return NotAppended(str(mistake), mistake.leader, mistake.epoch)
    return mistake if isinstance(mistake, GoQueueError) else Refused(Code.INVALID_RECORD, str(mistake))


def _is_of_one(mistake: Exception) -> bool:
    """One message may be what is wrong with a batch; the others shall not suffer for it."""
    if isinstance(mistake, Refused):
        return isinstance(mistake, InvalidRecords) or mistake.code is Code.INVALID_RECORD
    return isinstance(mistake, ValueError | InvalidWish | BatchTooLarge)

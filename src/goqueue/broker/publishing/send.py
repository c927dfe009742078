"""Records into a topic, for every door that does not send batches: spread over partitions, one batch for each."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from goqueue.broker.publishing.dedup import Deduplication
from goqueue.broker.publishing.dedup_ids import Known
from goqueue.broker.publishing.outliving import Outliving
from goqueue.broker.publishing.publish import Acknowledger, Publisher
from goqueue.broker.publishing.together import OnSent, Together
from goqueue.broker.publishing.turns import Steps
from goqueue.broker.topics.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, GoQueueError, InvalidWish
from goqueue.model.refusal import InvalidRecords, NotAppended, NotLeader, Refused
from goqueue.model.topics import Topic, TopicsChange
from goqueue.records.build import NewRecord, build_batch, build_fitting
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.partitioners import Partitioner, RoundRobin, check_partition, partition_for
from goqueue.records.wishes import dedup_id
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

DIVIDED_PER_TURN = 64
"""A batch of so many messages that is refused for one of them is divided in a later turn."""

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
        is_alone = at_once or self.charges_time() or self._publisher.rooms(topic) is not None
        self._together.send(topic, messages, on_sent, is_alone=is_alone)

    def _send_all(
        self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, started_s: float, requests: int
    ) -> None:
        by_partition: dict[int, list[int]] = {}
        try:
            known = self._find(topic)
        except GoQueueError as error:
            self._publisher.refused(topic, -1, len(messages), error)
            on_sent([Sent(-1, -1, error.kept())] * len(messages))
            return
        partitioner = self._topics.partitioner(known)
        duplicates = self._duplicates(topic, messages) if self._dedup.covers(topic) else {}

        def all_sent(sent: list[Sent]) -> None:
            for number, first in duplicates.items():
                if isinstance(first, int):
                    sent[number] = sent[first]  # it is told what the first of them is told
            stored = next((one for one in sent if one.error is None and one.offset >= 0), None)
            if stored is not None:
                self._publisher.acknowledged(topic, stored.partition, stored.offset, started_s, requests)
            on_sent(sent)

        sending = _Sending(len(messages), all_sent)
        for number, message in enumerate(messages):
            if number in duplicates:
                continue
            try:
                by_partition.setdefault(self._choose(known, message, partitioner), []).append(number)
            except GoQueueError as error:
                self._publisher.refused(topic, -1, 1, error)
                sending.failed(-1, (number,), error.kept())
        for partition, numbers in by_partition.items():
            sending.begin()
            ended = partial(self._ended, sending, partition, numbers)
            steps = self._publish(topic, partition, messages, numbers, sending)
            self._publisher.turns.run(steps, ended, order=(topic, partition))
        for number, first in duplicates.items():
            if isinstance(first, Known):
                self._answer_duplicate(topic, number, first, sending)
        sending.done()

    def _ended(self, sending: "_Sending", partition: int, numbers: list[int], result: Exception | None) -> None:
        if result is not None:
            events.error("publishing failed", exc_info=result)
            sending.failed(partition, numbers, Refused(Code.UNKNOWN_SERVER_ERROR, "a fault of the broker"))
        sending.done()

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

    def _answer_duplicate(self, topic: str, number: int, first: Known, sending: "_Sending") -> None:
        partition, offset, acknowledger = first.partition, first.offset, first.acknowledger
        sending.begin()

        def reached() -> None:
            failure = acknowledger.failure
            durability = self._topics.durability(topic, partition)
            sending.sent[number] = Sent(partition, -1 if failure else offset, failure, durability)
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

    def _publish(
        self, topic: str, partition: int, messages: Sequence[NewMessage], numbers: list[int], sending: "_Sending"
    ) -> Steps[None]:
        now_ms = self._clock.now_ms()
        try:
            records = [_record(messages[number], now_ms) for number in numbers]
            if len(numbers) == 1 and messages[numbers[0]].may_be_compressed:
                data = build_fitting(records, self._topics.replica(topic, partition).log.options.batch_bytes_max)
            else:
                data = build_batch(records, is_of_any_time=any(record[0] < 0 for record in records))
            acknowledger, appended = yield from self._publisher.steps(topic, partition, memoryview(data))
        except (ValueError, GoQueueError) as mistake:
            is_divided = len(numbers) > 1 and _is_of_one(mistake)
            if not is_divided:
                error = _told(mistake)
                self._publisher.refused(topic, partition, len(numbers), error)
                sending.failed(partition, numbers, error.kept())
                del error  # its frames hold it no longer
        else:
            is_divided = False
            known = self._acknowledged_by(acknowledger, appended)
            sending.wait(partition, numbers, known, appended, partial(self._topics.durability, topic, partition))
        if is_divided:
            if len(numbers) >= DIVIDED_PER_TURN:
                yield None
            half = len(numbers) // 2
            yield from self._publish(topic, partition, messages, numbers[:half], sending)
            yield from self._publish(topic, partition, messages, numbers[half:], sending)

    def _acknowledged_by(self, acknowledger: Acknowledger, appended: Appended) -> "Acknowledger | Outliving":
        """In a cluster a batch that was not acknowledged when its leader changed may be so by the next one."""
        if self.spread is None or not isinstance(acknowledger, Replica):
            return acknowledger
        return Outliving(acknowledger, appended.next_offset, self._clock)


class _Sending:
    """The answers to one `send`."""

    def __init__(self, count: int, on_all: Callable[[list[Sent]], None]) -> None:
        self.sent: list[Sent] = [Sent(-1, -1)] * count
        self._on_all = on_all
        self._waiting = 1
        """Answers that are not known yet, and who asks for them."""

    def begin(self) -> None:
        self._waiting += 1

    def done(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._on_all(self.sent)

    def failed(self, partition: int, numbers: Iterable[int], error: GoQueueError) -> None:
        for number in numbers:
            self.sent[number] = Sent(partition, -1, error)

    def wait(
        self,
        partition: int,
        numbers: list[int],
        acknowledger: "Acknowledger | Outliving",
        appended: Appended,
        durability: Callable[[], str],
    ) -> None:
        self.begin()

        def reached() -> None:
            failure, reached_durability = acknowledger.failure, durability()
            for place, number in enumerate(numbers):
                offset = -1 if failure else appended.base_offset + place
                self.sent[number] = Sent(partition, offset, failure, reached_durability)
            self.done()

        acknowledger.when_reached(appended.next_offset, reached)


def _record(message: NewMessage, now_ms: int) -> NewRecord:
    timestamp_ms = now_ms if message.timestamp_ms is None else message.timestamp_ms
    return timestamp_ms, message.key, message.value, message.all_headers()


def _told(mistake: ValueError | GoQueueError) -> GoQueueError:
    """Whatever was raised, nothing was appended."""
    if isinstance(mistake, NotLeader):
        return NotAppended(str(mistake), mistake.leader, mistake.epoch)
    return mistake if isinstance(mistake, GoQueueError) else Refused(Code.INVALID_RECORD, str(mistake))


def _is_of_one(mistake: Exception) -> bool:
    """One message may be what is wrong with a batch; the others shall not suffer for it."""
    if isinstance(mistake, Refused):
        return isinstance(mistake, InvalidRecords) or mistake.code is Code.INVALID_RECORD
    return isinstance(mistake, ValueError | InvalidWish | BatchTooLarge)

"""Delays: records that wait for their time in a companion of their partition and are published, once, when it has come.

A delayed record never touches its log before it is due: its batch is stored without it, and the offset that it
would have had stays free. That place is its name. When its time comes it is published like any other record, at the
end of the same partition, under a producer of our own, so that a publish repeated after a crash is known as such.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from goqueue.broker.delays.firing import Body, body_of
from goqueue.broker.delays.key_order import HeldKeys
from goqueue.broker.delays.partition import Around, Found, PartitionDelays
from goqueue.broker.publishing.joint_acknowledgement import JointAcknowledger
from goqueue.broker.queues.delayed_places import SecondPlaces
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.machines.delays.commands import (
    CancelSchedule,
    DelayMeasure,
    EndTransactionSchedules,
    FoundRecurring,
    FoundSchedule,
    NewSchedule,
    Reschedule,
    Schedule,
    ScheduleKey,
    ScheduleReply,
)
from goqueue.machines.delays.machine import Delays
from goqueue.machines.delays.timer_wheel import LEVELS
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.topics import Topic, TopicOptions, TopicsChange
from goqueue.records.batch import NO_PRODUCER, Batch
from goqueue.records.decode import DecodedRecord
from goqueue.records.wishes import NO_WISHES, NOW, read_wishes
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.coordinators import Coordinators
from goqueue.telemetry.journeys import Journeys
from goqueue.telemetry.logs import get_logger

HOLD_KEY = "hold_key"

events = get_logger("broker")

Place = tuple[str, int]
"""Topic and partition."""
Key = tuple[bytes, int]
"""Topic id and partition."""


class Delayed(NamedTuple):
    record: DecodedRecord
    due_ms: int
    is_delay: bool
    sent_ms: int
    """What a delay counts from."""


class Companions(NamedTuple):
    """How the companions of partitions that keep their delays are found and made."""

    on_disk: Callable[[], Sequence[Key]]
    open: Callable[[Topic, int], Coordinator[Delays]]
    """It is not loaded by this. LogPoisoned: it cannot be opened."""
    load: Callable[[Coordinator[Delays]], None] = Coordinator.load_now
    """One that was opened. In a cluster it may go on from a standby, and serves when that is committed."""
    make: Callable[[Topic, int], None] = lambda topic, partition: None
    """Before one is opened that nobody has needed before. In a cluster its ledger is made by this, in the role of its
    partition, and whoever leads opens it by that."""


class Schedules:
    def __init__(
        self,
        companions: Companions,
        topics: Topics,
        clock: Clock,
        journeys: Journeys,
        ids: ProducerIds,
        is_home: Callable[[str, Key], bool],
        *,
        may_run: Callable[[FoundRecurring], bool] = lambda _found: True,
        is_spread: bool = False,
    ) -> None:
        """`is_home`: whether the recurring schedule of a name belongs to a partition. `may_run`: whether its owner may
        still write to its topic. `is_spread`: in a cluster."""
        self.coordinators: Coordinators[Key, Delays] = Coordinators("delays")
        self._companions = companions
        self._topics = topics
        self._clock = clock
        self.second_places = SecondPlaces()
        self._held_keys = HeldKeys(self._waiting)
        self._around = Around(
            topics,
            clock,
            journeys,
            ids,
            self.second_places,
            is_home,
            may_run,
            self._held_keys.changed,
            self._held_keys.fired,
            is_spread,
        )
        self._by_topic: dict[str, dict[int, PartitionDelays]] = {}
        """Those that there are, by topic and partition, which is rising."""
        self._failed: dict[Place, GoQueueError] = {}
        """Companions that could not be opened, and why."""
        self._unopened: set[Key] | None = None
        """On the disk, of topics that were not met yet. None: the disk was not looked at."""
        self.check_due: Callable[[str, int], None] = lambda topic, due_ms: None
        """Raises if a message of this topic may not wait until then."""
        self.held = self.held_delay_ms = 0
        """Since the start: records that had to wait, and all their delays together."""
        self._fired = self._cancelled = 0
        """Of topics that are gone."""

    # -- companions

    def of(self, topic: str, partition: int) -> PartitionDelays | None:
        """None: nothing was ever delayed there. Refused: that cannot be told."""
        found = self._by_topic.get(topic, {}).get(partition)
        if found is None and (topic, partition) in self._failed:
            raise Refused(Code.KAFKA_STORAGE_ERROR, str(self._failed[topic, partition]))
        return found

    def of_topic(self, topic: str) -> list[PartitionDelays]:
        return list(self._by_topic.get(topic, {}).values())

    def __iter__(self) -> Iterator[PartitionDelays]:
        for topic in list(self._by_topic):
            yield from self.of_topic(topic)

    def of_or_made(self, topic: Topic, partition: int) -> PartitionDelays:
        """Refused, or LogPoisoned: it cannot be opened."""
        found = self.of(topic.name, partition)
        if found is None:
            self._companions.make(topic, partition)
            found = self.of(topic.name, partition)
        return self._open(topic, partition) if found is None else found

    def _open(self, topic: Topic, partition: int) -> PartitionDelays:
        coordinator = self._companions.open(topic, partition)
        found = PartitionDelays(topic, partition, coordinator, self._around)
        known = {**self._by_topic.get(topic.name, {}), partition: found}
        self._by_topic[topic.name] = dict(sorted(known.items()))
        self.coordinators.add((topic.id, partition), coordinator)
        self._companions.load(coordinator)
        return found

    def lead(self, topic: Topic, partition: int) -> None:
        """In a cluster: this node leads the partition now, and there is a ledger."""
        self._open_found(topic, partition)

    def lose(self, topic: Topic, partition: int) -> None:
        """In a cluster: it does not any more. Whoever waits is told, and nothing fires here."""
        known = self._by_topic.get(topic.name, {})
        each = known.pop(partition, None)
        if each is not None:
            self._drop(each, (topic.id, partition))
        if not known:
            self._by_topic.pop(topic.name, None)
        self._failed.pop((topic.name, partition), None)
        self.coordinators.unopened.pop((topic.id, partition), None)

    def _drop(self, each: PartitionDelays, key: Key) -> None:
        self._held_keys.changed(each.place)
        if each.coordinator.is_active:
            measure = each.peek().measure()
            self._fired, self._cancelled = self._fired + measure.fired, self._cancelled + measure.cancelled
        self.coordinators.unload(key)

    def topics_changed(self, change: TopicsChange) -> None:
        for topic in change.gone:
            self._forget(topic)
        if self._unopened is None:
            self._unopened = set(self._companions.on_disk())
        if self._unopened:
            for topic in change.present:
                for partition in range(topic.partitions):
                    if (topic.id, partition) in self._unopened:
                        self._unopened.discard((topic.id, partition))
                        self._open_found(topic, partition)

    def _open_found(self, topic: Topic, partition: int) -> None:
        """One that cannot be opened costs the others nothing."""
        try:
            self._open(topic, partition)
        except GoQueueError as error:
            self._failed[topic.name, partition] = error
            self.coordinators.unopened[topic.id, partition] = f"{self.coordinators.kind}-{topic.name}-{partition}"
            events.error("delays not opened", topic=topic.name, partition=partition, reason=str(error))

    def _forget(self, topic: Topic) -> None:
        """Its companions go with it."""
        for number, each in self._by_topic.pop(topic.name, {}).items():
            self._drop(each, (topic.id, number))
        for partition in range(topic.partitions):
            self._failed.pop((topic.name, partition), None)
            self.coordinators.unopened.pop((topic.id, partition), None)

    # -- publishing

    def find(
        self,
        records: Iterable[DecodedRecord],
        place: Place,
        options: TopicOptions,
        now_ms: int,
        left_out: Container[int] = (),
    ) -> list[Delayed]:
        """Those whose time has not come. InvalidWish: a header that says nothing we know."""
        holds = options.delay_order == HOLD_KEY
        known = self.of(*place)
        if known is not None:
            known.coordinator.notice_clock()
        found = []
        for record in records:
            wishes = read_wishes(record.headers, now_ms) if record.headers else NO_WISHES
            due_ms, is_delay = wishes.deliver_at_ms, wishes.is_delay
            if record.offset in left_out:
                continue
            if holds and record.key is not None:
                due_ms = self._held_keys.due_ms(place, record.key, due_ms, now_ms)
                if due_ms >= now_ms:
                    found.append(Delayed(record, due_ms, is_delay or wishes.deliver_at_ms == NOW, now_ms))
            elif due_ms > now_ms:
                found.append(Delayed(record, due_ms, is_delay, now_ms))
        return found

    def not_held(self, place: Place) -> None:
        """What `find` found was not stored after all."""
        self._held_keys.changed(place)

    def revision(self, place: Place, options: TopicOptions) -> tuple[int, int] | None:
        """Another one: what `find` found there may not hold any more."""
        return self._held_keys.revision(place) if options.delay_order == HOLD_KEY else None

    def holds_keys(self, place: Place, options: TopicOptions) -> bool:
        """Whether records without any wish may have to wait there too."""
        return options.delay_order == HOLD_KEY and bool(self._held_keys.of(place))

    def hold(
        self, replica: Replica, batch: Batch, appended: Appended, delayed: Sequence[Delayed], place: Place
    ) -> JointAcknowledger:
        """Keep what is delayed of a batch that was appended without it."""
        topic, partition = place
        shift = appended.base_offset - batch.base_offset
        now_ms = self._clock.now_ms()
        ttl_ms = replica.options.message_ttl_ms
        schedules = tuple(
            NewSchedule(
                one.record.offset + shift, one.due_ms, body_of(one.record, ttl_ms, one.sent_ms).encode(), one.is_delay
            )
            for one in delayed
        )
        producer = (batch.producer_id, batch.producer_epoch) if batch.is_transactional else (NO_PRODUCER, -1)
        self.held += len(delayed)
        self.held_delay_ms += sum(max(0, one.due_ms - now_ms) for one in delayed)
        held = JointAcknowledger(replica, appended.base_offset)
        epoch = replica.epoch_at(appended.base_offset)
        try:
            known = self._topics.image.topics.get(topic)
            if known is None:
                raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")
            companion = self.of_or_made(known, partition)
        except GoQueueError as error:
            self._held_keys.changed(place)
            held.settled(error)
        else:
            companion.submit(Schedule(schedules, *producer, epoch), held.settled)
        return held

    def end_transaction(
        self, place: Place, producer: tuple[int, int], is_commit: bool, on_reply: OnReply[ScheduleReply | None]
    ) -> None:
        """Before the marker goes into the log: what was delayed in this partition begins to wait, or is dropped."""
        try:
            known = self.of(*place)
            is_open = known is not None and known.peek().has_open_transaction(producer[0])
        except GoQueueError as error:
            on_reply(error)
            return
        if known is None or not is_open:
            on_reply(None)
            return
        self._held_keys.changed(place)
        known.submit(EndTransactionSchedules(*producer, is_commit), on_reply)

    # -- what others ask

    def _waiting(self, place: Place) -> Iterator[tuple[bytes | None, int]]:
        known = self.of(*place)
        return iter(()) if known is None else known.waiting_keys()

    def unpublished(self, topic: str, partition: int) -> Iterator[tuple[int, Body]]:
        """Offsets and records of all that is not known to be in its log: what waits, and what is being published. Not
        those of transactions that have not ended: they may never be.
        """
        known = self.of(topic, partition)
        return iter(()) if known is None else known.unpublished()

    def find_schedule(self, key: ScheduleKey) -> FoundSchedule | None:
        """None: fired, being fired, cancelled or never there."""
        known = self.of(key.topic, key.partition)
        return None if known is None else known.peek().find(key.offset)

    def is_firing(self, key: ScheduleKey) -> bool:
        known = self.of(key.topic, key.partition)
        return known is not None and any(key.offset in job.records.offsets for job in known.peek().firing())

    def look_up(self, key: ScheduleKey) -> Found | None:
        known, schedule = self.of(key.topic, key.partition), self.find_schedule(key)
        return None if known is None or schedule is None else next(iter(known.with_bodies([schedule])), None)

    def waiting(self, topic: str, partition: int | None, after: ScheduleKey | None, limit: int) -> list[FoundSchedule]:
        """By partition and offset, from behind `after` on."""
        return list(islice(self._walk(topic, partition, after), limit))

    def _walk(self, topic: str, partition: int | None, after: ScheduleKey | None) -> Iterator[FoundSchedule]:
        for known in self.of_topic(topic):
            number = known.place[1]
            if partition in (None, number) and (after is None or number >= after.partition):
                yield from known.peek().walk(after.offset if after is not None and number == after.partition else -1)

    def pending(self, topic: str, partition: int | None, after: ScheduleKey | None, limit: int) -> list[Found]:
        """As `waiting`, with the records."""
        found = self.waiting(topic, partition, after, limit)
        known = {each.place[1]: each for each in self.of_topic(topic)}
        by_partition = groupby(found, key=lambda each: each.key.partition)
        return [one for number, some in by_partition for one in known[number].with_bodies(some)]

    def cancel(self, key: ScheduleKey, on_reply: OnReply[ScheduleReply]) -> None:
        self._change(key, CancelSchedule(key.offset), on_reply)

    def reschedule(self, key: ScheduleKey, due_ms: int, on_reply: OnReply[ScheduleReply]) -> None:
        try:
            found = self.look_up(key)
        except GoQueueError as error:
            on_reply(error)
            return
        if found is None:
            on_reply(Refused(Code.INVALID_REQUEST, f"nothing waits at {key.topic}/{key.partition}/{key.offset}"))
            return
        try:
            self.check_due(key.topic, due_ms)
        except GoQueueError as error:
            on_reply(error)
            return
        self._change(key, Reschedule(key.offset, due_ms, found.body.encode()), on_reply)

    def _change(self, key: ScheduleKey, command: CancelSchedule | Reschedule, on_reply: OnReply[ScheduleReply]) -> None:
        try:
            known = self.of(key.topic, key.partition)
        except GoQueueError as error:
            on_reply(error)
            return
        if known is None:
            place = f"{key.topic}/{key.partition}"
            on_reply(ScheduleReply(Code.UNKNOWN_TOPIC_OR_PARTITION, f"nothing waits for {place}"))
            return
        self._held_keys.changed(known.place)
        known.submit(command, on_reply)

    def count(self, topic: str) -> int:
        """Of what waits for `topic`."""
        return sum(each.peek().count() for each in self.of_topic(topic))

    def pending_by_topic(self) -> dict[str, int]:
        """Only topics for which something waits."""
        counts = {topic: self.count(topic) for topic in sorted(self._by_topic)}
        return {topic: count for topic, count in counts.items() if count}

    def measure(self) -> DelayMeasure:
        """Of all that can be asked now."""
        measures = [each.peek().measure() for each in self if each.coordinator.is_active]
        sums = [sum(numbers) for numbers in zip(*(each[:5] for each in measures))] or [0] * 5
        pending, waiting, firing, fired, cancelled = sums
        due_ms = [each.next_due_ms for each in measures if each.next_due_ms >= 0]
        by_level = tuple(map(sum, zip(*(each.by_level for each in measures))))
        return DelayMeasure(
            pending,
            waiting,
            firing,
            fired + self._fired,
            cancelled + self._cancelled,
            min(due_ms, default=-1),
            by_level or (0,) * (LEVELS + 1),
        )

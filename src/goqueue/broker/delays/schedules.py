"""Delays: records that wait for their time in a ledger of their own and are published, once, when it has come.

A delayed record never touches its log before it is due: its batch is stored without it, and the offset that it
would have had stays free. That place is its name. When its time comes it is published like any other record, at the
end of the same partition, under a producer of our own, so that a publish repeated after a crash is known as such.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from goqueue.broker.delays.firing import Body, body_of, check_fits, decode_body, publish_job, read_bodies
from goqueue.broker.delays.hosts import follow_hosts
from goqueue.broker.delays.key_order import HeldKeys
from goqueue.broker.publishing.joint_acknowledgement import JointAcknowledger
from goqueue.broker.queues.delayed_places import SecondPlaces
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import Journeys, note_delay, note_due
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.machines.delays.commands import (
    CancelSchedule,
    DelayMeasure,
    DropRecurring,
    EndTransactionSchedules,
    FiringDone,
    FollowHost,
    ForgetTopic,
    FoundRecurring,
    FoundSchedule,
    NewSchedule,
    Reschedule,
    Schedule,
    ScheduleKey,
    StoreRecurring,
    TakeProducer,
)
from goqueue.machines.delays.jobs import FiringJob
from goqueue.machines.delays.machine import Delays
from goqueue.machines.machine import ClockSet, Fact
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.topics import Image, TopicOptions, TopicsChange
from goqueue.records.batch import NO_PRODUCER, Batch
from goqueue.records.decode import DecodedRecord
from goqueue.records.partitioners import Partitioner, partition_for
from goqueue.records.wishes import NO_WISHES, NOW, read_wishes, without_delay
from goqueue.replica.replica import Appended, Replica
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator, OnReply
from goqueue.telemetry.logs import get_logger

__all__ = [
    "Body",
    "Found",
    "FoundRecurring",
    "FoundSchedule",
    "JointAcknowledger",
    "Recurring",
    "ScheduleKey",
    "Schedules",
]

RETRY_MS = 1000
HOLD_KEY = "hold_key"
PENDING_MAX = 1 << 62

events = get_logger("broker")

CheckRecord = Callable[[str, TopicOptions, bytes | None, Sequence[tuple[str, bytes | None]]], None]
"""Raises one of our errors if such a record may not be published."""


class Delayed(NamedTuple):
    record: DecodedRecord
    due_ms: int
    is_delay: bool


class Found(NamedTuple):
    """A schedule with its record."""

    schedule: FoundSchedule
    body: Body


class Recurring(NamedTuple):
    """A message to be published whenever a cron expression says so."""

    name: str
    topic: str
    cron: str
    value: bytes | None
    key: bytes | None = None
    """Chooses the partition; without one it is the first."""
    headers: Sequence[tuple[str, bytes | None]] = ()
    timezone: str = "UTC"


class Schedules:
    def __init__(
        self, coordinator: Coordinator[Delays], topics: Topics, clock: Clock, journeys: Journeys, ids: ProducerIds
    ) -> None:
        self._coordinator = coordinator
        self._topics = topics
        self._clock = clock
        self._journeys = journeys
        self.second_places = SecondPlaces()
        self._ids = ids
        self.check_record: CheckRecord = lambda topic, options, value, headers: None
        self._image = Image()
        self._under_way: set[int] = set()
        self._appended: set[int] = set()
        """Jobs whose records are in their log, though that they are may not be stored yet."""
        self._reach: WeakKeyDictionary[Replica, int] = WeakKeyDictionary()
        """How far a log must be durable before the next job is published to it."""
        self._held_keys = HeldKeys(self._waiting)
        self._asks_for_producer = False
        self.held = self.held_delay_ms = 0
        """Since the start: records that had to wait, and all their delays together."""
        coordinator.after_apply = self._applied
        coordinator.on_loaded = self._loaded

    @property
    def machine(self) -> Delays:  # for questions only
        return self._coordinator.peek()

    # -- publishing

    def find(
        self,
        records: Iterable[DecodedRecord],
        place: tuple[str, int],
        options: TopicOptions,
        now_ms: int,
        left_out: Container[int] = (),
    ) -> list[Delayed]:
        """Those whose time has not come. InvalidWish: a header that says nothing we know."""
        holds = options.delay_order == HOLD_KEY
        self._coordinator.notice_clock()
        found = []
        for record in records:
            wishes = read_wishes(record.headers, now_ms) if record.headers else NO_WISHES
            due_ms, is_delay = wishes.deliver_at_ms, wishes.is_delay
            if record.offset in left_out:
                continue
            if holds and record.key is not None:
                due_ms = self._held_keys.due_ms(place, record.key, due_ms, now_ms)
                if due_ms >= now_ms:
                    found.append(Delayed(record, due_ms, is_delay or wishes.deliver_at_ms == NOW))
            elif due_ms > now_ms:
                found.append(Delayed(record, due_ms, is_delay))
        return found

    def not_held(self, place: tuple[str, int]) -> None:
        """What `find` found was not stored after all."""
        self._held_keys.changed(place)

    def revision(self, place: tuple[str, int], options: TopicOptions) -> tuple[int, int] | None:
        """Another one: what `find` found there may not hold any more."""
        return self._held_keys.revision(place) if options.delay_order == HOLD_KEY else None

    def holds_keys(self, place: tuple[str, int], options: TopicOptions) -> bool:
        """Whether records without any wish may have to wait there too."""
        return options.delay_order == HOLD_KEY and bool(self._held_keys.of(place))

    def hold(
        self, replica: Replica, batch: Batch, appended: Appended, delayed: Sequence[Delayed], place: tuple[str, int]
    ) -> JointAcknowledger:
        """Keep what is delayed of a batch that was appended without it."""
        topic, partition = place
        shift = appended.base_offset - batch.base_offset
        now_ms = self._clock.now_ms()
        ttl_ms = replica.options.message_ttl_ms
        schedules = tuple(
            NewSchedule(
                one.record.offset + shift, one.due_ms, body_of(one.record, ttl_ms, now_ms).encode(), one.is_delay
            )
            for one in delayed
        )
        known = self._topics.image.topics.get(topic)
        topic_id = known.id if known is not None else b""
        producer = (batch.producer_id, batch.producer_epoch) if batch.is_transactional else (NO_PRODUCER, -1)
        self.held += len(delayed)
        self.held_delay_ms += sum(max(0, one.due_ms - now_ms) for one in delayed)
        held = JointAcknowledger(replica, appended.base_offset)
        epoch = replica.epoch_at(appended.base_offset)
        self._coordinator.submit(Schedule(topic, topic_id, partition, schedules, *producer, epoch), held.settled)
        return held

    def end_transaction(
        self, place: tuple[str, int], producer: tuple[int, int], is_commit: bool, on_reply: OnReply
    ) -> None:
        """Before the marker goes into the log: what was delayed in this partition begins to wait, or is dropped."""
        if not self.machine.has_open_transaction(producer[0]):
            on_reply(None)
            return
        self._held_keys.changed(place)
        self._coordinator.submit(EndTransactionSchedules(*place, *producer, is_commit), on_reply)

    # -- firing

    def _applied(self, facts: Iterable[Fact]) -> None:
        if isinstance(self._coordinator.command, ClockSet):
            self._held_keys.forget()
        if not isinstance(self._coordinator.command, FollowHost):
            note_delay(self._journeys, facts, self._image, self._clock.now_ms())
            self._fire()

    def _loaded(self) -> None:
        self._held_keys.forget()
        self._under_way, self._appended = set(), set()  # what is in its log is not published twice
        follow_hosts(self._coordinator, self.machine, self._topics, self._image)
        self._clock.call_soon(self._fire)  # whoever gives out producer ids has not read its ledger yet

    def _fire(self) -> None:
        """Only what is durable: a job that a crash could take back would be made anew, with another sequence."""
        if not self._coordinator.is_active or not self._image.revision:  # the load, or the start, asks again
            return
        jobs = [job for job in self.machine.firing() if job.number not in self._under_way]
        if not jobs:
            return
        producer = self.machine.producer()
        if producer is None:
            self._ask_for_producer()
            return
        self._under_way.update(job.number for job in jobs)

        def publish() -> None:
            for job in jobs:
                self._when_places_are_durable(job, lambda job=job: self._publish(job, producer))  # type: ignore[misc]

        self._coordinator.when_durable(publish)

    def _when_places_are_durable(self, job: FiringJob, publish: Callable[[], None]) -> None:
        """A batch that its log could still lose would be sent again, and what was delayed in it would fire twice."""
        replica = self._topics.find_replica(job.topic, job.partition)
        if replica is None:
            publish()
            return
        # Jobs of one partition are published in their order, whichever places they are from.
        reach = self._reach[replica] = max(self._reach.get(replica, 0), max(job.records.offsets) + 1)
        replica.when_reached(min(reach, replica.end_offset), publish)

    def _ask_for_producer(self) -> None:
        if self._asks_for_producer:
            return
        self._asks_for_producer = True

        def taken(producer_id: int | GoQueueError) -> None:
            if not isinstance(producer_id, GoQueueError):
                self._asks_for_producer = False
                self._coordinator.submit(TakeProducer(producer_id, 0), lambda reply: self._fire())

        self._ids.take(taken)
        self._clock.call_after(RETRY_MS, self._fire_again)

    def _fire_again(self) -> None:
        self._asks_for_producer = False
        self._fire()

    def _publish(self, job: FiringJob, producer: tuple[int, int]) -> None:
        topic = self._image.topics.get(job.topic)
        if topic is None or topic.id != job.topic_id:
            events.warning("delayed records dropped: their topic is gone", topic=job.topic, records=len(job.records))
            self._done(job)
            return
        try:
            replica = self._topics.replica(job.topic, job.partition)
            bodies = read_bodies(self._coordinator, job)
            end_offset, now_ms = replica.end_offset, self._clock.now_ms()
            next_offset = publish_job(replica, job, bodies, producer, now_ms)
        except GoQueueError as error:
            self._failed(job, error)
            return
        self._held_keys.fired((job.topic, job.partition), zip((body.key for body in bodies.bodies), job.records.due_ms))
        self._appended.add(job.number)
        # Without more, a crash came after it was published.
        more = next_offset - end_offset
        if more and note_due(self._journeys, job, end_offset, more, now_ms):
            self.second_places.add(replica, end_offset, next_offset - 1)
        if more:
            replica.tell_persisted()
        replica.when_reached(
            next_offset,
            lambda: self._done(job) if replica.failure is None else self._failed(job, replica.failure),
        )

    def _failed(self, job: FiringJob, error: GoQueueError) -> None:
        events.error("delayed records not published yet", topic=job.topic, partition=job.partition, reason=str(error))

        def again() -> None:
            self._under_way.discard(job.number)
            self._fire()

        self._clock.call_after(RETRY_MS, again)

    def _done(self, job: FiringJob) -> None:
        def stored(reply: Any) -> None:
            self._under_way.discard(job.number)
            self._appended.discard(job.number)
            if isinstance(reply, GoQueueError):
                self._failed(job, reply)

        self._coordinator.submit(FiringDone(job.number), stored)

    def _waiting(self, place: tuple[str, int]) -> Iterator[tuple[bytes | None, int]]:
        for found in self.pending(*place, None, PENDING_MAX):
            yield found.body.key, found.schedule.due_ms
        for job in self.machine.firing():
            if (job.topic, job.partition) == place and job.number not in self._appended:
                yield from zip((body.key for body in read_bodies(self._coordinator, job).bodies), job.records.due_ms)

    def unpublished(self, topic: str, partition: int) -> Iterator[tuple[int, Body]]:
        """Offsets and records of all that is not known to be in its log: what waits, and what is being published. Not
        those of transactions that have not ended: they may never be.
        """
        for found in self.pending(topic, partition, None, PENDING_MAX):
            if not found.schedule.waits_for_transaction:
                yield found.schedule.key.offset, found.body
        for job in self.machine.firing():
            if (job.topic, job.partition) == (topic, partition):
                yield from zip(job.records.offsets, read_bodies(self._coordinator, job).bodies)

    # -- what users ask

    def look_up(self, key: ScheduleKey) -> Found | None:
        schedule = self.machine.find(key)
        return None if schedule is None else self._with_bodies([schedule])[0]

    def pending(self, topic: str, partition: int | None, after: ScheduleKey | None, limit: int) -> list[Found]:
        return self._with_bodies(self.machine.pending(topic, partition, after, limit))

    def _with_bodies(self, schedules: Iterable[FoundSchedule]) -> list[Found]:
        found = list(schedules)
        facts = self._coordinator.read_facts([one.ledger_offset for one in found])
        return [
            Found(one, decode_body(facts[one.ledger_offset].body))  # type: ignore[attr-defined]
            for one in found
            if one.ledger_offset in facts
        ]

    def cancel(self, key: ScheduleKey, on_reply: OnReply) -> None:
        self._held_keys.changed(key[:2])
        self._coordinator.submit(CancelSchedule(key), on_reply)

    def reschedule(self, key: ScheduleKey, due_ms: int, on_reply: OnReply) -> None:
        found = self.look_up(key)
        if found is None:
            on_reply(Refused(Code.INVALID_REQUEST, f"nothing waits at {key.topic}/{key.partition}/{key.offset}"))
            return
        self._held_keys.changed(key[:2])
        self._coordinator.submit(Reschedule(key, due_ms, found.body.encode()), on_reply)

    def measure(self) -> DelayMeasure:
        return self.machine.measure()

    def store_recurring(self, wanted: Recurring, on_reply: OnReply) -> None:
        """Publish a message again and again; the reply says when first, or what is wrong with the times."""
        topic = self._image.topics.get(wanted.topic)
        if topic is None:
            on_reply(Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.topic!r}"))
            return
        partitioner, partition = self._topics.partitioner(topic), 0
        if wanted.key is not None and partitioner is not Partitioner.ROUND_ROBIN:
            partition = partition_for(wanted.key, topic.partitions, partitioner)
        now_ms = self._clock.now_ms()
        body = Body(now_ms, wanted.key, wanted.value, without_delay(wanted.headers))
        try:
            read_wishes(wanted.headers, now_ms)
            replica = self._topics.replica(wanted.topic, partition)
            check_fits(body, replica.log.options.batch_bytes_max)
            self.check_record(wanted.topic, replica.options, wanted.value, wanted.headers)
        except GoQueueError as error:
            on_reply(error)
            return
        self._coordinator.submit(
            StoreRecurring(wanted.name, wanted.topic, topic.id, partition, wanted.cron, wanted.timezone, body.encode()),
            on_reply,
        )

    def drop_recurring(self, name: str, on_reply: OnReply) -> None:
        self._coordinator.submit(DropRecurring(name), on_reply)

    def recurring(self) -> list[FoundRecurring]:
        return self.machine.recurring()

    def recurring_body(self, found: FoundRecurring) -> Body | None:
        """None: the disk cannot give it back."""
        fact: Any = self._coordinator.read_facts([found.ledger_offset]).get(found.ledger_offset)
        return None if fact is None else decode_body(fact.body)

    def topics_changed(self, change: TopicsChange) -> None:
        self._image = change.image
        for topic in change.gone:
            for partition in range(topic.partitions):
                self._held_keys.changed((topic.name, partition))
            self._coordinator.submit(ForgetTopic(topic.name, topic.id))
        if not change.before.revision:
            self._fire()

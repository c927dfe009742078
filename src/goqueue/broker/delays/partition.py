"""The delays of one partition: a companion of its log, in which records wait for their time, and what publishes them
when it has come.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from goqueue.broker.delays.firing import Body, decode_body, publish_job, read_bodies
from goqueue.broker.delays.hosts import host_of
from goqueue.broker.queues.delayed_places import SecondPlaces
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import note_delay, note_due
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.machines.delays.commands import (
    DropRecurring,
    FiringDone,
    FollowHost,
    FoundRecurring,
    FoundSchedule,
    HoldRecurring,
    TakeProducer,
)
from goqueue.machines.delays.jobs import FiringJob
from goqueue.machines.delays.machine import Delays
from goqueue.machines.machine import ClockSet, Command, Fact
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic
from goqueue.replica.replica import Replica
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.journeys import Journeys
from goqueue.telemetry.logs import get_logger

R = TypeVar("R")

RETRY_MS = 1000
STRAY_MS = 30_000
"""After which a node of a cluster has heard where a recurring schedule lives: whoever wanted to place it has given up
by then."""

events = get_logger("broker")

Keys = Iterable[tuple[bytes | None, int]]
"""Keys of records, and when they are due."""


class Found(NamedTuple):
    """A schedule with its record."""

    schedule: FoundSchedule
    body: Body


class Around(NamedTuple):
    """What the delays of all partitions share."""

    topics: Topics
    clock: Clock
    journeys: Journeys
    ids: ProducerIds
    second_places: SecondPlaces
    is_home: Callable[[str, tuple[bytes, int]], bool]
    """Whether the recurring schedule of this name belongs to this partition."""
    may_run: Callable[[FoundRecurring], bool]
    """Whether whoever has stored a recurring schedule may still write to its topic."""
    on_times_changed: Callable[[tuple[str, int]], None]
    """Records of this place are due at other times than they were."""
    on_fired: Callable[[tuple[str, int], Keys], None]
    """These are in the log of this place."""
    is_spread: bool = False
    """In a cluster, where news of the metadata may come late."""


class PartitionDelays:
    """Invariant: before anything else is decided after a load, the ledger has followed the log of its partition."""

    def __init__(self, topic: Topic, partition: int, coordinator: Coordinator[Delays], around: Around) -> None:
        self.topic = topic
        self.place = topic.name, partition
        self.key = topic.id, partition
        self.coordinator = coordinator
        self._around = around
        self._under_way: set[int] = set()
        self._appended: set[int] = set()
        """Jobs whose records are in their log, though that they are may not be stored yet."""
        self._reach = 0
        """How far the log must be durable before the next job is published to it."""
        self._asks_for_producer = False
        coordinator.after_apply = self._applied
        coordinator.on_loaded = self._loaded

    def peek(self) -> Delays:
        """For questions only. The refusal of the coordinator: it is not active."""
        return self.coordinator.peek()

    def submit(self, command: Command[R], on_reply: OnReply[R]) -> None:
        """Not while it is loaded: it would be decided before the ledger has followed its log."""
        if self.coordinator.is_active:
            self.coordinator.submit(command, on_reply)
        else:
            on_reply(self.coordinator.refusal())

    def _is_gone(self) -> bool:
        """Its topic was deleted, and perhaps made again under that name."""
        return self._around.topics.image.by_id(self.topic.id) is None

    def _replica(self) -> Replica | None:
        """Of the partition, also one that is out of service."""
        return None if self._is_gone() else self._around.topics.find_replica(*self.place)

    # -- a load

    def _loaded(self) -> None:
        self._under_way.clear()
        self._appended.clear()  # a job that is in its log already is not published twice: see `publish_job`
        self._around.on_times_changed(self.place)
        self._follow()
        # A crash came before these were placed, or after they were moved.
        strays = [each.name for each in self.peek().recurring() if not self._around.is_home(each.name, self.key)]
        if not self._around.is_spread:
            self._drop(strays)
        elif strays:  # or the leader before is about to place them: see `RecurringSchedules.places_changed`
            for name in strays:
                self.coordinator.submit(HoldRecurring(name))
            self._around.clock.call_after(STRAY_MS, lambda: self._drop(strays))
        for name in self.shut_out():
            self.coordinator.submit(HoldRecurring(name))
        self._around.clock.call_soon(self._fire)

    def shut_out(self) -> list[str]:
        """Recurring schedules whose owners may not write to the topic any more."""
        return [each.name for each in self.peek().recurring() if not self._around.may_run(each)]

    def _drop(self, strays: Iterable[str]) -> None:
        for name in strays:
            if self.coordinator.is_active and not self._around.is_home(name, self.key):
                self.coordinator.submit(DropRecurring(name))

    def _follow(self) -> None:
        """A log that cannot be opened is left as it is: nothing can be published to it."""
        replica = self._replica()
        if replica is None or replica.failure is not None:
            return

        def followed(reply: bool | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                events.error("delays not compared with their log", log=replica.name, reason=str(reply))
            elif reply:
                self._follow()

        self.coordinator.submit(host_of(self.peek(), replica), followed)

    # -- firing

    def _applied(self, facts: Iterable[Fact]) -> None:
        command = self.coordinator.command
        if isinstance(command, ClockSet):
            self._around.on_times_changed(self.place)
        if not isinstance(command, FollowHost):
            note_delay(self._around.journeys, facts, self._around.topics.image, self._around.clock.now_ms())
            self._fire()

    def _fire(self) -> None:
        """Only what is durable: a job that a crash could take back would be made anew, with another sequence."""
        if not self.coordinator.is_active:
            return  # it is asked again when it is loaded
        jobs = [job for job in self.peek().firing() if job.number not in self._under_way]
        if not jobs:
            return
        producer = self.peek().producer()
        if producer is None:
            self._ask_for_producer()
            return
        self._under_way.update(job.number for job in jobs)

        def publish() -> None:
            for job in jobs:
                self._when_places_are_durable(job, lambda job=job: self._publish(job, producer))  # type: ignore[misc]

        self.coordinator.when_durable(publish)

    def _when_places_are_durable(self, job: FiringJob, publish: Callable[[], None]) -> None:
        """A batch that its log could still lose would be sent again, and what was delayed in it would fire twice."""
        replica = self._replica()
        if replica is None:
            publish()
            return
        # Jobs are published in their order, whichever places they are from.
        self._reach = max(self._reach, max(job.records.offsets) + 1)
        replica.when_reached(min(self._reach, replica.end_offset), publish)

    def _ask_for_producer(self) -> None:
        if self._asks_for_producer:
            return
        self._asks_for_producer = True

        def taken(producer_id: int | GoQueueError) -> None:
            self._asks_for_producer = False
            if isinstance(producer_id, GoQueueError):
                self._around.clock.call_after(RETRY_MS, self._fire)
            else:
                self.submit(TakeProducer(producer_id, 0), took)

        def took(reply: object) -> None:
            if isinstance(reply, GoQueueError):
                self._around.clock.call_after(RETRY_MS, self._fire)
            else:
                self._fire()

        self._around.ids.take(taken)

    def _publish(self, job: FiringJob, producer: tuple[int, int]) -> None:
        around = self._around
        if self._is_gone():
            return  # and its companion is about to be
        try:
            replica = around.topics.replica(*self.place)
            bodies = read_bodies(self.coordinator, job)
            end_offset, now_ms = replica.end_offset, around.clock.now_ms()
            next_offset = publish_job(replica, job, bodies, producer, now_ms)
        except GoQueueError as error:
            self._failed(job, error)
            return
        around.on_fired(self.place, zip((body.key for body in bodies.bodies), job.records.due_ms))
        self._appended.add(job.number)
        # Without more, a crash came after it was published.
        more = next_offset - end_offset
        if more and note_due(around.journeys, job, end_offset, more, now_ms):
            around.second_places.add(replica, end_offset, next_offset - 1)
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

        self._around.clock.call_after(RETRY_MS, again)

    def _done(self, job: FiringJob) -> None:
        def stored(reply: object) -> None:
            self._under_way.discard(job.number)
            self._appended.discard(job.number)
            if isinstance(reply, GoQueueError):
                self._failed(job, reply)

        self.submit(FiringDone(job.number), stored)

    # -- questions

    def waiting_keys(self) -> Iterator[tuple[bytes | None, int]]:
        """Key and due time of all that waits, or is being published and not in the log yet."""
        for found in self.with_bodies(self.peek().walk()):
            yield found.body.key, found.schedule.due_ms
        for job in self.peek().firing():
            if job.number not in self._appended:
                yield from zip((body.key for body in read_bodies(self.coordinator, job).bodies), job.records.due_ms)

    def unpublished(self) -> Iterator[tuple[int, Body]]:
        """Offsets and records of all that is not known to be in its log: what waits, and what is being published. Not
        those of transactions that have not ended: they may never be.
        """
        for found in self.with_bodies(self.peek().walk()):
            if not found.schedule.waits_for_transaction:
                yield found.schedule.key.offset, found.body
        for job in self.peek().firing():
            yield from zip(job.records.offsets, read_bodies(self.coordinator, job).bodies)

    def with_bodies(self, schedules: Iterable[FoundSchedule]) -> list[Found]:
        """Without those that the disk cannot give back."""
        found = list(schedules)
        facts: dict[int, Any] = self.coordinator.read_facts([one.ledger_offset for one in found])
        return [Found(one, decode_body(facts[one.ledger_offset].body)) for one in found if one.ledger_offset in facts]

"""Queue groups and their places: what receiving and settling share. What is known of a place lies by its partition."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from goqueue.broker.groups.starts import start_offset
from goqueue.broker.queues.companions import Opening
from goqueue.broker.queues.direct import DirectWay, answer
from goqueue.broker.queues.lag import time_of
from goqueue.broker.queues.lane_rates import LaneRates
from goqueue.broker.queues.lost_ends import LostEnds
from goqueue.broker.queues.observe import Look, observe
from goqueue.broker.queues.policies import Policies
from goqueue.broker.queues.queue_groups import OptionsStore, QueueGroups
from goqueue.broker.queues.reopening import Reopening
from goqueue.broker.queues.stands import OnStands, stands_of
from goqueue.broker.queues.watchers import Watchers
from goqueue.broker.reading.open_batches import OpenBatches, Turn
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import note_acked, note_delivery
from goqueue.machines.deliveries.commands import (
    LeaseReply,
    Measure,
    Observe,
    OpenDelivery,
    Place,
    PlaceCommand,
    Seek,
    Settle,
)
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.deliveries.why import RecordState
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import ISOLATION, READ_UNCOMMITTED, START
from goqueue.model.lag import LaneStats, QueueLag
from goqueue.model.refusal import Refused
from goqueue.model.topics import Image, Topic, TopicsChange
from goqueue.replica.replica import Replica
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.journeys import Journeys
from goqueue.telemetry.meters import Meters

READS_PER_TURN = 4
"""Of the log, of a mebibyte each, before others get their turn."""

PLACES_PER_TURN = 256
"""Whoever waits for one of them is told, before others get their turn."""

NO_LEASE_NUMBER = 1
"""Of a lease of nothing: whatever is not 0."""

R = TypeVar("R")


class Queues(QueueGroups):
    def __init__(
        self,
        opening: Opening,
        store: OptionsStore,
        topics: Topics,
        clock: Clock,
        journeys: Journeys,
        meters: Meters,
    ) -> None:
        super().__init__(opening, store, clock)
        self._topics = topics
        self._journeys = journeys
        self._image = Image()
        """The last one of groups without options: a load asks for it thousands of times."""
        self.on_woken: list[Callable[[Place], None]] = []
        """Called when something may be ready in a place, never from within a command."""
        self.on_dying: list[Callable[[Place], None]] = []
        """Called when a place has dead letters to be written."""
        self._lost_ends = LostEnds(topics.find_replica)
        self._to_tell: dict[Deliveries, None] = {}
        """Machines in which something may have become ready, or has died."""
        self._watchers = Watchers(clock)
        self.watch, self.unwatch = self._watchers.add, self._watchers.remove
        """Call when something was leased, settled or given back: in this group, or in another."""
        self._direct = DirectWay(journeys, meters, clock, self._watchers, self._settled_directly)
        self._rates = LaneRates()
        self._batches = OpenBatches()
        self.companions.on_applied = self._applied
        self.companions.on_acked = partial(note_acked, journeys)
        self._policies = Policies(self.companions, topics, clock, self.options)
        reopening = Reopening(self.companions, self._lost_ends, topics, clock, self._policies.of)
        self.companions.to_open = reopening.commands
        self.companions.on_loaded = self._loaded
        self.on_options_changed = self._policies.group_changed

    def submit(self, command: PlaceCommand[R], on_reply: OnReply[R] | None = None) -> None:
        """Commands of the delivery machine about one place."""
        place = command.place
        if self.elsewhere is not None and self.elsewhere.submit(command, on_reply):
            return
        coordinator = self.companions.at((place.topic, place.partition))
        if coordinator is None:
            try:
                self.companions.find(place.topic, place.partition)
            except GoQueueError as error:
                answer(on_reply, error.kept())
            else:
                answer(on_reply, self.nothing(command))
        elif isinstance(command, Settle):
            self._direct.settle(coordinator, command, on_reply)  # type: ignore[arg-type]  # it is of a Settle
        else:
            coordinator.submit(command, on_reply)

    def lease(self, place: Place, consumer: str, records_max: int, lease_ms: int | None) -> LeaseReply | GoQueueError:
        """At once, so never from within a reply of the coordinator."""
        coordinator = self.companions.find(place.topic, place.partition)
        if coordinator is None:
            return LeaseReply(NO_LEASE_NUMBER, self._clock.now_ms(), ())
        return self._direct.lease(coordinator, place, consumer, records_max, lease_ms)

    def take(
        self, place: Place, consumer: str, records_max: int, lease_ms: int | None
    ) -> tuple[Replica, LeaseReply] | None:
        """`observe` and `lease` in one, where all of the log was observed before and what comes next is plain. None: it
        takes both; also where the place is not open, or busy. Refused: as `observe` says.
        """
        _, topic, partition = place
        coordinator = self.companions.at((topic, partition))
        if coordinator is None:
            return None
        replica = self._topics.replica(topic, partition)
        if replica.freshness is not None:
            replica.check_fresh()
        log = replica.log.start_offset, replica.high_watermark
        reply = self._direct.lease_plain(coordinator, place, consumer, records_max, lease_ms, log)
        return None if reply is None else (replica, reply)

    # -- what goes on

    def _loaded(self, coordinator: Coordinator[Deliveries]) -> None:
        self.companions.coordinators.touch(coordinator)
        self._policies.loaded(coordinator)
        self._changed(coordinator.peek())

    def _applied(self, coordinator: Coordinator[Deliveries], facts: Iterable[Fact]) -> None:
        machine = coordinator.peek()
        note_delivery(self._journeys, machine, facts, self._clock.now_ms())
        self._changed(machine)

    def _settled_directly(self, coordinator: Coordinator[Deliveries], machine: Deliveries) -> None:
        self.companions.coordinators.touch(coordinator)
        if machine.woken or machine.dying or self._watchers.by_group:
            self._changed(machine)

    def _changed(self, machine: Deliveries) -> None:
        if machine.woken or machine.dying:
            if not self._to_tell:
                self._clock.call_soon(self._tell)
            self._to_tell[machine] = None
        self._watchers.changed()

    def _tell(self) -> None:
        calls = self._due_calls()
        if self._to_tell:
            self._clock.call_soon(self._tell)
        call_each(calls)

    def _due_calls(self) -> list[Callable[[], None]]:
        """So many that the loop is not held up: a load wakes every place of its partition."""
        calls: list[Callable[[], None]] = []
        for machine in list(self._to_tell):
            for places, told in ((machine.woken, self.on_woken), (machine.dying, self.on_dying)):
                for place in list(islice(places, PLACES_PER_TURN - len(calls))):
                    del places[place]
                    calls += (partial(call, place) for call in told)
            if machine.woken or machine.dying:
                break
            del self._to_tell[machine]
        return calls

    # -- topics

    def topics_changed(self, change: TopicsChange) -> None:
        """Groups forget topics that are gone, and hear of options that were changed."""
        self._image = change.image
        self.companions.topics_changed(change)
        known = change.before.topics
        for topic in change.present:
            if topic.name in known and known[topic.name].overrides != topic.overrides:
                self._policies.topic_changed(topic)

    def is_paused(self, place: Place) -> bool:
        """Topic or group say that nothing is leased there for now."""
        topic = self._image.topics.get(place.topic)
        return topic is not None and self._policies.of(place.group_id, topic).is_paused

    # -- places

    def open(
        self,
        place: Place,
        start: str,
        on_open: Callable[[GoQueueError | None], None],
        at: int | None = None,
        *,
        is_member: bool = False,
    ) -> None:
        """Begin to deliver there: if the group is new there, at the offset `at`, or else at one end of the log.
        `on_open` once that is durable. `is_member`: a member of a consumer group wants it.
        """
        if self.elsewhere is not None and self.elsewhere.open(place, start, on_open, at, is_member=is_member):
            return
        is_new = not is_member and not self.is_open(place)
        try:
            if is_new:
                self.check_is_queue(place.group_id)
        except GoQueueError as error:
            on_open(error.kept())
            return
        if is_new:
            self._begin(place.group_id, lambda done: self._open(place, start, done, at), on_open)
        else:
            self._open(place, start, on_open, at)

    def _open(self, place: Place, start: str, on_open: Callable[[GoQueueError | None], None], at: int | None) -> None:
        try:
            replica = self.replica(place)
            topic = self.topic(place.topic)
            coordinator = self.companions.of_or_made(topic, place.partition)
        except GoQueueError as error:
            on_open(error.kept())
            return
        offset = start_offset(replica, self.options(place.group_id).get(START, start), self._clock.now_ms())
        if at is not None:
            offset = max(replica.start_offset, min(at, replica.high_watermark))
        log_end = None if self.is_open(place) else self._lost_ends.of(place)

        def opened(reply: Code | GoQueueError) -> None:
            self._lost_ends.tried(place, coordinator, reply)
            on_open(reply if isinstance(reply, GoQueueError) else None)

        policy = self._policies.of(place.group_id, topic)
        coordinator.submit(OpenDelivery(place, topic.id, offset, policy, log_end), opened)

    def _end(self, place: Place, replica: Replica) -> int:
        """As far as the group may see: mostly to the first record whose transaction is open."""
        is_uncommitted = self.options(place.group_id).get(ISOLATION) == READ_UNCOMMITTED
        return replica.high_watermark if is_uncommitted else replica.last_stable_offset

    def _look(self, place: Place, replica: Replica) -> Look:
        return Look.of(replica.options, self.options(place.group_id).get(ISOLATION) == READ_UNCOMMITTED)

    def leader_epoch(self, place: Place) -> int:
        """Of the partition here, in which leases are given; -1: it is not served here."""
        return self._topics.leader_epoch(place.topic, place.partition)

    def observe(self, place: Place) -> Replica:
        """Tell the delivery what its log holds by now. Refused: there is no such partition, or it cannot be read."""
        replica = self.replica(place)
        replica.check_fresh()
        machine = self.peek_at(place)
        limit_offset = self._end(place, replica)
        if not machine.wants_to_observe(place, replica.start_offset, limit_offset):
            return replica
        look = self._look(place, replica)
        if replica.start_offset and self._knows_less(place, replica):
            self.submit(Observe(place, (), 0, replica.start_offset))
        turn = Turn()
        for _ in range(READS_PER_TURN):
            offset = max(machine.observed_end(place), replica.start_offset)
            if offset >= limit_offset or machine.observe_room(place) <= 0 or turn.is_over:
                break
            spans, next_offset = observe(replica, (offset, limit_offset), look, self._batches, turn)
            self.submit(Observe(place, spans, next_offset, replica.start_offset))
        for _ in range(READS_PER_TURN):
            self._observe_replays(place, replica, look, turn)
            if machine.has_ready(place):
                break
        return replica

    def _knows_less(self, place: Place, replica: Replica) -> bool:
        """The log may have lost its beginning to retention since anybody looked."""
        machine = self.peek_at(place)
        return machine.measure(place).start_offset < replica.start_offset or bool(machine.replays(place))

    def _observe_replays(self, place: Place, replica: Replica, look: Look, turn: Turn) -> None:
        for window, offset, end in self.peek_at(place).replays(place):
            if offset < end:
                first = max(offset, replica.start_offset)
                found = observe(replica, (first, end), look, self._batches, turn) if first < end else ((), end)
                spans, next_offset = found
                self.submit(Observe(place, spans, next_offset, replica.start_offset, window))

    def is_behind(self, place: Place, replica: Replica) -> bool:
        """There is more to observe, and room for it; of a replay only if nothing is ready before that."""
        machine = self.peek_at(place)
        if machine.observed_end(place) < self._end(place, replica) and machine.observe_room(place) > 0:
            return True
        return not machine.has_ready(place) and any(offset < end for _, offset, end in machine.replays(place))

    def topic(self, name: str) -> Topic:
        """Refused: there is none."""
        if name not in self._image.topics:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return self._image.topics[name]

    # -- groups

    def settled_below(self, place: Place) -> int | None:
        """The first offset that is not settled; None: this group has never been there."""
        machine = self.peek_at(place)
        return machine.measure(place).start_offset if machine.is_open(place) else None

    def reach(self, place: Place, consumer: str) -> int:
        """The first offset that is neither settled nor held by this consumer."""
        return self.peek_at(place).held.reach(place, consumer)

    def record_state(self, place: Place, offset: int) -> RecordState:
        """What is the matter with one record. Refused: this group has never been there."""
        self.measure(place)
        return self.peek_at(place).record_state(place, offset)

    def measure(self, place: Place) -> Measure:
        """Refused: this group has never been there."""
        machine = self.peek_at(place)
        if not machine.is_open(place):
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"group {place.group_id!r} does not read {place.topic!r}")
        self.observe(place)
        return machine.measure(place)

    def lag(self, place: Place) -> QueueLag:
        """How far this group is behind in one partition. Refused: it has never been there."""
        measure = self.measure(place)
        replica = self.replica(place)
        oldest_ms = time_of(replica, measure.oldest_offset)
        return QueueLag(
            measure.ready,
            measure.leased,
            measure.waiting + measure.held,
            measure.dead,
            measure.replaying,
            max(0, self._end(place, replica) - measure.end_offset),
            None if oldest_ms is None else max(0, self._clock.now_ms() - oldest_ms),
        )

    def stands(self, group_id: str, places: Sequence[Place] | None, on_stands: OnStands) -> None:
        """Where a group stands in these partitions, or in all that it reads, whoever leads them."""
        if self.elsewhere is not None:
            self.elsewhere.stands(group_id, places, on_stands)
        else:
            wanted = sorted(self.places(group_id)) if places is None else places
            stands_of(self, wanted, self._clock, on_stands)

    def replica(self, place: Place) -> Replica:
        return self._topics.replica(place.topic, place.partition)

    def lanes(self, place: Place) -> LaneStats:
        """Refused: this group has never been there."""
        return self._rates.look(place, self.measure(place), self._clock.now_ms())

    def oldest_ages_ms(self, place: Place) -> list[int | None]:
        """By lane, how long ago the oldest record that is ready was published; None: nothing is. Asked after
        `measure`.
        """
        replica = self.replica(place)
        offsets = self.peek_at(place).oldest_ready(place)
        times = [None if offset is None else time_of(replica, offset) for offset in offsets]
        now_ms = self._clock.now_ms()
        return [None if each is None else max(0, now_ms - each) for each in times]

    def seek(self, place: Place, offset: int, on_reply: OnReply[Code]) -> None:
        self.submit(Seek(place, offset), on_reply)

    def drop(self, group_id: str, topics: Sequence[str] | None, on_reply: OnReply[Code]) -> None:
        self._rates.forget(group_id)
        if topics is None:
            self._journeys.forget_group(group_id)
        super().drop(group_id, topics, on_reply)

    def forget(self, group_id: str) -> None:
        """What is only remembered of a group that is dropped."""
        self._rates.forget(group_id)
        self._journeys.forget_group(group_id)

"""Queue groups: each belongs to one of several coordinators, by its name. Here is what receiving and settling share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any
from zlib import crc32

from goqueue.broker.groups.starts import EARLIEST, LATEST, start_offset
from goqueue.broker.queues.direct import DirectWay, Group
from goqueue.broker.queues.group_options import ISOLATION, READ_UNCOMMITTED, START, check_group_options, policy_of
from goqueue.broker.queues.lag import QueueLag, time_of
from goqueue.broker.queues.lane_rates import LaneRates, LaneStats
from goqueue.broker.queues.observe import Look, observe
from goqueue.broker.queues.settle_latency import measured_settle
from goqueue.broker.queues.watchers import Watchers
from goqueue.broker.reading.open_batches import OpenBatches, Turn
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import Journeys, note_delivery
from goqueue.machines.deliveries.commands import (
    DropGroup,
    ForgetTopic,
    LeaseReply,
    Measure,
    Observe,
    OpenDelivery,
    Place,
    Seek,
    SetGroupOptions,
    SetPolicy,
    Settle,
    Tally,
)
from goqueue.machines.deliveries.holders import HeldRun
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.deliveries.why import RecordState
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import check_group_id
from goqueue.model.refusal import Refused
from goqueue.model.topics import Image, Topic, TopicsChange
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator, OnReply
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.meters import Meters

READS_PER_TURN = 4
"""Of the log, of a mebibyte each, before others get their turn."""

__all__ = ["EARLIEST", "LATEST", "Place", "QueueLag", "Queues"]


class Queues:
    def __init__(
        self,
        coordinators: Sequence[Coordinator[Deliveries]],
        topics: Topics,
        clock: Clock,
        journeys: Journeys,
        meters: Meters,
    ) -> None:
        self._coordinators = coordinators
        self._topics = topics
        self._clock = clock
        self._journeys = journeys
        self._meters = meters
        self._image = Image()
        self.is_stream: Callable[[str], bool] = lambda _group_id: False
        """Whether a group of this name commits offsets: then nobody but its members reads as a queue with it."""
        self.on_woken: list[Callable[[Place], None]] = []
        """Called when something may be ready in a place, never from within a command."""
        self.on_dying: list[Callable[[Place], None]] = []
        """Called when a place has dead letters to be written."""
        self._tell_is_due = False
        self._watchers = Watchers(clock)
        self.watch, self.unwatch = self._watchers.add, self._watchers.remove
        """Call when something was leased, settled or given back: in this group, or in another."""
        self._direct = DirectWay(journeys, self._changed)
        self._rates = LaneRates()
        self._batches = OpenBatches()
        for coordinator in coordinators:
            coordinator.after_apply = partial(self._applied, coordinator)
            coordinator.on_loaded = partial(self._loaded, coordinator)

    @property
    def _groups(self) -> Iterator[Group]:
        return (Group(each, each.peek()) for each in self._coordinators if each.is_active)

    @property
    def partitions(self) -> int:
        """Of the ledger that queue groups are kept in."""
        return len(self._coordinators)

    def partition_of(self, group_id: str) -> int:
        return crc32(group_id.encode()) % len(self._coordinators)

    def of(self, group_id: str) -> Group:
        coordinator = self._coordinators[self.partition_of(group_id)]
        return Group(coordinator, coordinator.peek())

    def submit(self, group_id: str, command: Any, on_reply: OnReply | None = None) -> None:
        """Commands of the delivery machine."""
        coordinator = self._coordinators[self.partition_of(group_id)]
        if isinstance(command, Settle):
            if on_reply is not None:
                on_reply = measured_settle(command, on_reply, self._meters, self._clock)
            self._direct.settle(coordinator, command, on_reply)
        else:
            coordinator.submit(command, on_reply)

    def lease(self, place: Place, consumer: str, records_max: int, lease_ms: int | None) -> LeaseReply | GoQueueError:
        """At once, so never from within a reply of the coordinator."""
        coordinator = self._coordinators[self.partition_of(place.group_id)]
        return self._direct.lease(coordinator, place, consumer, records_max, lease_ms)

    # -- what goes on

    def _loaded(self, coordinator: Coordinator[Deliveries]) -> None:
        if self._image.revision:  # else it is the start, and topics are not known yet
            self._resume(Group(coordinator, coordinator.peek()))
        self._changed(coordinator.peek())

    def _applied(self, coordinator: Coordinator[Deliveries], facts: Iterable[Fact]) -> None:
        machine = coordinator.peek()
        note_delivery(self._journeys, machine, facts, self._clock.now_ms())
        self._changed(machine)

    def _changed(self, machine: Deliveries) -> None:
        if not self._tell_is_due and (machine.woken or machine.dying):
            self._tell_is_due = True
            self._clock.call_soon(self._tell)
        self._watchers.changed()

    def _tell(self) -> None:
        self._tell_is_due = False
        call_each(self._due_calls())

    def _due_calls(self) -> Iterator[Callable[[], None]]:
        for group in self._groups:
            woken, dying = sorted(group.machine.woken), sorted(group.machine.dying)
            group.machine.woken.clear()
            group.machine.dying.clear()
            yield from (partial(call, place) for place in woken for call in self.on_woken)
            yield from (partial(call, place) for place in dying for call in self.on_dying)

    # -- topics

    def topics_changed(self, change: TopicsChange) -> None:
        """Groups forget topics that are gone, and hear of options that were changed."""
        self._image = change.image
        if not change.before.revision:
            for group in self._groups:
                self._resume(group)
                group.coordinator.make_durable()  # what they dropped with the end of a log must not come back
            return
        for topic in change.gone:
            for coordinator in self._coordinators:
                coordinator.submit(ForgetTopic(topic.name, topic.id))
        known = change.before.topics
        changed = {
            each.name
            for each in change.present
            if each.name not in known or known[each.name].overrides != each.overrides
        }
        if changed:
            self._tell_policies(
                place for group in self._groups for name in changed for place in group.machine.places_in(name)
            )

    def _resume(self, group: Group) -> None:
        """After a load: places are open again; those in topics that went meanwhile are forgotten."""
        for group_id in group.machine.groups():
            for stored in group.machine.state_of(group_id).places:
                topic = self._image.topics.get(stored.topic)
                if topic is None or topic.id != stored.topic_id:
                    group.coordinator.submit(ForgetTopic(stored.topic, stored.topic_id))
                    continue
                place = Place(group_id, stored.topic, stored.partition)
                policy, log_end = self._policy(group_id, topic), self._topics.end_offset(*place[1:])
                group.coordinator.submit(OpenDelivery(place, topic.id, stored.start_offset, policy, log_end))

    def _tell_policies(self, places: Iterable[Place]) -> None:
        for place in list(places):
            topic = self._image.topics.get(place.topic)
            if topic is not None:
                self.submit(place.group_id, SetPolicy(place, self._policy(place.group_id, topic)))

    def _policy(self, group_id: str, topic: Topic) -> Any:
        return policy_of(topic.options(self._topics.defaults), self.options(group_id))

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
        try:
            if not is_member and not self.of(place.group_id).machine.is_open(place):
                self.check_is_queue(place.group_id)
            replica = self._topics.replica(place.topic, place.partition)
            topic = self._topic(place.topic)
        except GoQueueError as error:
            on_open(error.kept())
            return
        offset = start_offset(replica, self.options(place.group_id).get(START, start), self._clock.now_ms())
        if at is not None:
            offset = max(replica.start_offset, min(at, replica.high_watermark))
        command = OpenDelivery(place, topic.id, offset, self._policy(place.group_id, topic))
        self.submit(place.group_id, command, lambda reply: on_open(reply if isinstance(reply, GoQueueError) else None))

    def _end(self, place: Place, replica: Replica) -> int:
        """As far as the group may see: mostly to the first record whose transaction is open."""
        is_uncommitted = self.options(place.group_id).get(ISOLATION) == READ_UNCOMMITTED
        return replica.high_watermark if is_uncommitted else replica.last_stable_offset

    def _look(self, place: Place, replica: Replica) -> Look:
        return Look.of(replica.options, self.options(place.group_id).get(ISOLATION) == READ_UNCOMMITTED)

    def check_is_queue(self, group_id: str) -> None:
        """Refused: the group is of another kind, or no group can have this id."""
        check_group_id(group_id)
        if self.is_stream(group_id):
            words = f"{group_id!r} is a consumer group: join it to read with it, or choose another name"
            raise Refused(Code.INCONSISTENT_GROUP_PROTOCOL, words)

    def has_group(self, group_id: str) -> bool:
        """Whether anything was ever delivered to it."""
        return bool(self.places(group_id))

    def observe(self, place: Place) -> Replica:
        """Tell the delivery what its log holds by now. Refused: there is no such partition, or it cannot be read."""
        replica = self._topics.replica(place.topic, place.partition)
        coordinator, machine = self.of(place.group_id)
        limit_offset = self._end(place, replica)
        if not machine.wants_to_observe(place, replica.start_offset, limit_offset):
            return replica
        look = self._look(place, replica)
        if replica.start_offset and self._knows_less(place, replica):
            coordinator.submit(Observe(place, (), 0, replica.start_offset))
        turn = Turn()
        for _ in range(READS_PER_TURN):
            offset = max(machine.observed_end(place), replica.start_offset)
            if offset >= limit_offset or machine.observe_room(place) <= 0 or turn.is_over:
                break
            spans, next_offset = observe(replica, (offset, limit_offset), look, self._batches, turn)
            coordinator.submit(Observe(place, spans, next_offset, replica.start_offset))
        for _ in range(READS_PER_TURN):
            self._observe_replays(place, replica, look, turn)
            if machine.has_ready(place):
                break
        return replica

    def _knows_less(self, place: Place, replica: Replica) -> bool:
        """The log may have lost its beginning to retention since anybody looked."""
        machine = self.of(place.group_id).machine
        return machine.measure(place).start_offset < replica.start_offset or bool(machine.replays(place))

    def _observe_replays(self, place: Place, replica: Replica, look: Look, turn: Turn) -> None:
        coordinator, machine = self.of(place.group_id)
        for window, offset, end in machine.replays(place):
            if offset < end:
                first = max(offset, replica.start_offset)
                found = observe(replica, (first, end), look, self._batches, turn) if first < end else ((), end)
                spans, next_offset = found
                coordinator.submit(Observe(place, spans, next_offset, replica.start_offset, window))

    def is_behind(self, place: Place, replica: Replica) -> bool:
        """There is more to observe, and room for it; of a replay only if nothing is ready before that."""
        machine = self.of(place.group_id).machine
        if machine.observed_end(place) < self._end(place, replica) and machine.observe_room(place) > 0:
            return True
        return not machine.has_ready(place) and any(offset < end for _, offset, end in machine.replays(place))

    def _topic(self, name: str) -> Topic:
        if name not in self._image.topics:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return self._image.topics[name]

    # -- groups

    def options(self, group_id: str) -> Mapping[str, str]:
        """What was set for this group and goes before the options of its topics."""
        return self.of(group_id).machine.group_options(group_id)

    def set_options(self, group_id: str, changes: Mapping[str, str | None], on_reply: OnReply) -> None:
        """InvalidOption: one of them does not exist or cannot have that value; then none is set."""
        check_group_id(group_id)
        check_group_options(changes)

        def is_set(reply: Any) -> None:
            self._tell_policies(self.places(group_id))
            on_reply(reply)

        self.submit(group_id, SetGroupOptions(group_id, dict(changes)), is_set)

    def settled_below(self, place: Place) -> int | None:
        """The first offset that is not settled; None: this group has never been there."""
        machine = self.of(place.group_id).machine
        return machine.measure(place).start_offset if machine.is_open(place) else None

    def reach(self, place: Place, consumer: str) -> int:
        """The first offset that is neither settled nor held by this consumer."""
        return self.of(place.group_id).machine.held.reach(place, consumer)

    def held_by(self, group_id: str, consumer: str) -> int:
        return self.of(group_id).machine.held_by(group_id, consumer)

    def tally(self) -> Tally:
        """What happened since the start, in all groups."""
        tallies = [group.machine.tally for group in self._groups]
        return Tally(**{name: sum(getattr(each, name) for each in tallies) for name in Tally.__struct_fields__})

    def measured(self) -> Iterator[tuple[Place, Measure]]:
        """Every place of every group as it is known now, without another look at any log."""
        return chain.from_iterable(group.machine.measured() for group in self._groups)

    def held(self) -> Iterator[HeldRun]:
        """All that consumers of all groups hold."""
        return chain.from_iterable(group.machine.held.all() for group in self._groups)

    def groups(self) -> Iterator[str]:
        """All of them, in no order: for the start, when nobody waits yet. Else see `page`."""
        return chain.from_iterable(group.machine.groups() for group in self._groups)

    def page(self, after: str | None, count: int) -> list[str]:
        """The next names of groups, sorted."""
        return sorted(name for _, machine in self._groups for name in machine.page(after, count))[:count]

    def page_with_options(self, after: str | None, count: int) -> list[str]:
        """Likewise, of those that have options."""
        return sorted(name for _, machine in self._groups for name in machine.page_with_options(after, count))[:count]

    def places(self, group_id: str) -> list[Place]:
        return self.of(group_id).machine.places(group_id)

    def readers(self, topic: str, partition: int) -> list[Place]:
        """The places of all groups in one partition."""
        return [place for group in self._groups for place in group.machine.readers(topic, partition)]

    def record_state(self, place: Place, offset: int) -> RecordState:
        """What is the matter with one record. Refused: this group has never been there."""
        self.measure(place)
        return self.of(place.group_id).machine.record_state(place, offset)

    def measure(self, place: Place) -> Measure:
        """Refused: this group has never been there."""
        machine = self.of(place.group_id).machine
        if not machine.is_open(place):
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"group {place.group_id!r} does not read {place.topic!r}")
        self.observe(place)
        return machine.measure(place)

    def lag(self, place: Place) -> QueueLag:
        """How far this group is behind in one partition. Refused: it has never been there."""
        measure = self.measure(place)
        replica = self._topics.replica(place.topic, place.partition)
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

    def lanes(self, place: Place) -> LaneStats:
        """Refused: this group has never been there."""
        return self._rates.look(place, self.measure(place), self._clock.now_ms())

    def oldest_ages_ms(self, place: Place) -> list[int | None]:
        """By lane, how long ago the oldest record that is ready was published; None: nothing is. Asked after
        `measure`.
        """
        replica = self._topics.replica(place.topic, place.partition)
        offsets = self.of(place.group_id).machine.oldest_ready(place)
        times = [None if offset is None else time_of(replica, offset) for offset in offsets]
        now_ms = self._clock.now_ms()
        return [None if each is None else max(0, now_ms - each) for each in times]

    def seek(self, place: Place, offset: int, on_reply: OnReply) -> None:
        self.submit(place.group_id, Seek(place, offset), on_reply)

    def drop(self, group_id: str, topics: Sequence[str] | None, on_reply: OnReply) -> None:
        self._rates.forget(group_id)
        if topics is None:
            self._journeys.forget_group(group_id)
        self.submit(group_id, DropGroup(group_id, None if topics is None else tuple(topics)), on_reply)

"""Deliveries: what queue groups know of their partitions, as one machine.

Stored is what is settled, what was tried how often, and what died; who holds what is not. Every decision about records
is made in a draft and becomes two kinds of facts: one that changes the arrays of a window, forgotten by a restart, and
those from which the same arrays are made again when the log is observed anew.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from goqueue.machines.deliveries.apply import DeliveryState
from goqueue.machines.deliveries.commands import (
    OWN_WINDOW,
    DeadLetter,
    DeadLettersWritten,
    DropGroup,
    ForgetTopic,
    GiveBack,
    GroupState,
    Lease,
    LeaseReply,
    Measure,
    Observe,
    OpenDelivery,
    Place,
    RecordLook,
    Replay,
    ReplayReply,
    RestoreGroup,
    Seek,
    SetGroupOptions,
    SetPolicy,
    Settle,
    SettleBelow,
    SettleReply,
    Tally,
    Verdict,
)
from goqueue.machines.deliveries.direct import Direct
from goqueue.machines.deliveries.draft import Draft
from goqueue.machines.deliveries.facts import (
    DeadForgotten,
    Observed,
    Opened,
    OptionsForgotten,
    OptionsStored,
    Progress,
)
from goqueue.machines.deliveries.groups import (
    decide_replay,
    decide_seek,
    forgotten,
    lost_end,
    restored,
    shifted,
    state_of,
)
from goqueue.machines.deliveries.holders import Held
from goqueue.machines.deliveries.leases import HeldLease
from goqueue.machines.deliveries.look import oldest_ready, record_look, tiles
from goqueue.machines.deliveries.pick import decide_lease
from goqueue.machines.deliveries.place import Delivery
from goqueue.machines.deliveries.settle import Settling
from goqueue.machines.deliveries.ticks import LEASES_PER_TICK, SPOTS_PER_TICK, Passing
from goqueue.machines.deliveries.why import RecordState, state_of_record
from goqueue.machines.deliveries.window import WINDOW_MAX
from goqueue.machines.machine import Fact, Outcome, Tick
from goqueue.machines.name_table import page_of_all
from goqueue.model.codes import Code

Decided = tuple[list[Fact], Any]

_UNKNOWN_PLACE: Decided = ([], Code.UNKNOWN_TOPIC_OR_PARTITION)


class Deliveries:
    def __init__(self, leases_from: int = 1) -> None:
        self._state = DeliveryState()
        self._state.leases.next_number = leases_from
        self.held = Held(self._state)
        self.direct = Direct(self._state)
        """What is changed ahead of the ledger."""
        self.woken = self._state.woken
        """Places where something may have become ready. Whoever has seen to them clears it."""
        self.dying = self._state.dying
        """Places with dead letters to be written, likewise."""
        self.clear_gathered = self.woken.clear  # not the dying: whoever leads next writes their dead letters

    # The machine

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        facts, reply = self._DECIDERS[type(command)](self, command, now_ms)
        # A lease is not stored, so it rests on nothing that could still be lost: it need not wait for others' acks.
        return Outcome(facts, [(ticket, reply)], is_immediate=type(command) is Lease)

    def apply(self, fact: Any) -> None:
        self._state.apply(fact)

    def forget(self, key: bytes) -> None:
        self._state.forget(key)

    def facts(self) -> Iterator[Fact]:
        return self._state.facts()

    def next_deadline_ms(self) -> int | None:
        state = self._state
        times = [each for each in (state.leases.deadlines.earliest_ms(), state.spots.earliest_ms()) if each is not None]
        return min(times) if times else None

    def clock_set(self, by_ms: int, now_ms: int) -> list[Fact]:
        return list(shifted(self._state.places.values(), by_ms, now_ms - by_ms))

    # Questions

    def groups(self) -> list[str]:
        return sorted(self._state.places.by_group.keys() | self._state.options.keys())

    def page(self, after: str | None, count: int) -> list[str]:
        """The next names of groups, sorted."""
        return page_of_all((self._state.places.by_group, self._state.options), after, count)

    def page_with_options(self, after: str | None, count: int) -> list[str]:
        return self._state.options.page(after, count)

    def group_options(self, group_id: str) -> dict[str, str]:
        return dict(self._state.options.get(group_id, {}))

    def places(self, group_id: str) -> list[Place]:
        return [each.place for each in self._state.places.of_group(group_id) if each.topic_id is not None]

    def places_in(self, topic: str) -> list[Place]:
        """Of all groups that read it."""
        return [each.place for each in self._state.places.in_topic(topic) if each.topic_id is not None]

    def readers(self, topic: str, partition: int) -> list[Place]:
        """The places of all groups in one partition."""
        return [place for place in self.places_in(topic) if place.partition == partition]

    def is_open(self, place: Place) -> bool:
        delivery = self._state.places.get(place)
        return delivery is not None and delivery.is_open

    def has_ready(self, place: Place) -> bool:
        delivery = self._state.places.get(place)
        if delivery is None or delivery.policy.is_paused:
            return False
        return any(window.has_ready() for window in delivery.windows())

    def observed_end(self, place: Place, window: int = OWN_WINDOW) -> int:
        """KeyError: there is no such place or window."""
        found = self._state.places[place].window(window)
        if found is None:
            raise KeyError(window)
        return found.end

    def start_offset(self, place: Place) -> int:
        """All below it is settled."""
        return self._state.places[place].own.start

    def wants_to_observe(self, place: Place, log_start_offset: int, limit_offset: int) -> bool:
        """Whether a look at the log, which can be read up to `limit_offset`, would tell anything new."""
        delivery = self._state.places[place]
        own = delivery.own
        is_behind = own.end < limit_offset and own.end - own.start < WINDOW_MAX
        return is_behind or own.start < log_start_offset or bool(delivery.replays)

    def observe_room(self, place: Place) -> int:
        """How many offsets more may be observed before some have to be settled."""
        own = self._state.places[place].own
        return WINDOW_MAX - (own.end - own.start)

    def replays(self, place: Place) -> list[tuple[int, int, int]]:
        """window, how far it was observed, where it ends. None while it is paused: nothing would ever be ready enough
        to stop looking, and the largest replay would be held in memory as a whole."""
        delivery = self._state.places[place]
        windows = () if delivery.policy.is_paused else delivery.replays.values()
        return [(window.number, window.end, window.limit) for window in windows]

    def measure(self, place: Place) -> Measure:
        return self._state.places[place].measure()

    def oldest_ready(self, place: Place) -> list[int | None]:
        """By lane, the first offset that is ready."""
        return oldest_ready(self._state.places[place].own)

    def look(self, place: Place, offset: int) -> RecordLook | None:
        """None: this group has never been there."""
        delivery = self._state.places.get(place)
        if delivery is None:
            return None
        window, *_ = delivery.parts(offset, offset)[0]
        return record_look(window, offset, offset in delivery.dead)

    @property
    def tally(self) -> Tally:
        return self._state.tally

    def measured(self) -> Iterator[tuple[Place, Measure]]:
        """Every place that groups deliver from."""
        return (
            (place, each.measure()) for place, each in list(self._state.places.items()) if each.topic_id is not None
        )

    def held_lease(self, number: int) -> HeldLease | None:
        """None: nothing of it is leased any more."""
        return self._state.leases.get(number)

    def held_by(self, group_id: str, consumer: str) -> int:
        """How many records a consumer holds."""
        return sum(lease.left for _, lease in self._state.leases.of(group_id, consumer))

    def lease_of(self, place: Place, offset: int, consumer: str) -> int | None:
        """The lease under which a consumer holds a record, or did; None: it holds no such lease."""
        for number, lease in self._state.leases.of(place.group_id, consumer):
            if lease.place == place and any(first <= offset <= last for _, first, last in lease.runs):
                return number
        return None

    def record_state(self, place: Place, offset: int) -> RecordState:
        """KeyError: there is no such place."""
        return state_of_record(self._state.places[place], self._state.leases, offset)

    def dead_due(self, place: Place) -> list[DeadLetter]:
        """In the order in which they died."""
        delivery = self._state.places.get(place)
        return [] if delivery is None else delivery.letters()

    def state_of(self, group_id: str) -> GroupState:
        places = tuple(state_of(self._state.places[place]) for place in self.places(group_id))
        return GroupState(self.group_options(group_id), places)

    # Records

    def _lease(self, command: Lease, now_ms: int) -> tuple[list[Fact], LeaseReply]:
        delivery = self._state.places.get(command.place)
        number = self._state.leases.next_number
        if delivery is None or not delivery.is_open:
            return [], LeaseReply(number, now_ms, ())
        return decide_lease(delivery, command, number, now_ms)

    def _settle(self, command: Settle, now_ms: int) -> tuple[list[Fact], SettleReply]:
        delivery = self._state.places.get(command.place)
        if delivery is None:
            return [], SettleReply((Verdict.UNKNOWN,) * len(command.settlements))
        return Settling(delivery, self._state.leases, command, now_ms).decide()

    def _observe(self, command: Observe, now_ms: int) -> Decided:
        delivery = self._state.places.get(command.place)
        if delivery is None or not delivery.is_open:
            return _UNKNOWN_PLACE
        facts: list[Fact] = []
        for window in delivery.windows():
            log_start = min(command.log_start_offset, window.limit)
            if log_start > window.start:
                draft = Draft(delivery, window, now_ms)
                draft.remove_below(log_start)
                facts += draft.facts()
        seen = delivery.window(command.window)
        if seen is not None:
            begin = max(seen.end, min(command.log_start_offset, seen.limit))
            spans = tiles(command.spans, begin, min(command.next_offset, seen.limit))
            if spans:
                facts.append(Observed(command.place, command.window, spans, now_ms))
        return facts, Code.NONE

    def _written(self, command: DeadLettersWritten, now_ms: int) -> Decided:
        delivery = self._state.places.get(command.place)
        if delivery is None:
            return _UNKNOWN_PLACE
        drafts: dict[int, Draft] = {}
        facts: list[Fact] = []
        for offset in dict.fromkeys(command.offsets):
            dead = delivery.dead.get(offset)
            if dead is None:
                continue
            window = delivery.window(dead.window)
            if window is None or offset < window.start:
                facts.append(DeadForgotten(command.place, offset))
            else:
                if dead.window not in drafts:
                    drafts[dead.window] = Draft(delivery, window, now_ms)
                drafts[dead.window].letter_written(offset)
        return [*facts, *(fact for draft in drafts.values() for fact in draft.facts())], Code.NONE

    def _tick(self, _command: Tick, now_ms: int) -> Decided:
        state = self._state
        leases = state.leases.deadlines.due(now_ms, LEASES_PER_TICK)
        spots = state.spots.due(now_ms, SPOTS_PER_TICK)
        return Passing(state.places, state.leases, now_ms).decide(leases, spots), None

    # Places

    def _open(self, command: OpenDelivery, _now_ms: int) -> Decided:
        place, delivery = command.place, self._state.places.get(command.place)
        if delivery is not None and delivery.topic_id == command.topic_id:
            is_same = delivery.is_open and delivery.policy == command.policy
            opened = [] if is_same else [Opened(place, command.policy)]
            return [*lost_end(delivery, command.log_end_offset), *opened], Code.NONE
        return [
            *(() if delivery is None else forgotten(delivery)),
            Progress(place, OWN_WINDOW, command.topic_id, command.start_offset),
            Opened(place, command.policy, is_new=True),
        ], Code.NONE

    def _set_policy(self, command: SetPolicy, _now_ms: int) -> Decided:
        if not self.is_open(command.place):
            return _UNKNOWN_PLACE
        is_same = self._state.places[command.place].policy == command.policy
        return ([] if is_same else [Opened(command.place, command.policy)]), Code.NONE

    def _seek(self, command: Seek, _now_ms: int) -> Decided:
        delivery = self._state.places.get(command.place)
        return _UNKNOWN_PLACE if delivery is None else (decide_seek(delivery, command), Code.NONE)

    def _settle_below(self, command: SettleBelow, now_ms: int) -> Decided:
        delivery = self._state.places.get(command.place)
        if delivery is None:
            return _UNKNOWN_PLACE
        if command.offset <= delivery.own.start:
            return [], Code.NONE
        draft = Draft(delivery, delivery.own, now_ms)
        draft.remove_below(command.offset)
        return draft.facts(), Code.NONE

    def _give_back(self, command: GiveBack, now_ms: int) -> Decided:
        held = self._state.leases.of(command.group_id, command.consumer)
        wanted = [each for each in held if command.places is None or each[1].place in command.places]
        return Passing(self._state.places, self._state.leases, now_ms).give_back(wanted), Code.NONE

    def _replay(self, command: Replay, _now_ms: int) -> Decided:
        delivery = self._state.places.get(command.place)
        if delivery is None:
            return [], ReplayReply(Code.UNKNOWN_TOPIC_OR_PARTITION, OWN_WINDOW, 0)
        return decide_replay(delivery, command)

    def _forget_topic(self, command: ForgetTopic, _now_ms: int) -> Decided:
        gone = [each for each in self._state.places.in_topic(command.topic) if each.topic_id == command.topic_id]
        return [fact for delivery in gone for fact in forgotten(delivery)], Code.NONE

    # Groups

    def _deliveries(self, group_id: str) -> list[Delivery]:
        return [self._state.places[place] for place in self.places(group_id)]

    def _drop(self, command: DropGroup, _now_ms: int) -> Decided:
        group_id, topics = command.group_id, command.topics
        if group_id not in self._state.options and not self.places(group_id):
            return [], Code.GROUP_ID_NOT_FOUND
        facts: list[Fact] = [
            fact
            for delivery in self._deliveries(group_id)
            if topics is None or delivery.place.topic in topics
            for fact in forgotten(delivery)
        ]
        if topics is None and group_id in self._state.options:
            facts.append(OptionsForgotten(group_id))
        return facts, Code.NONE

    def _restore(self, command: RestoreGroup, _now_ms: int) -> Decided:
        group_id, state = command.group_id, command.state
        before = self._deliveries(group_id)
        facts: list[Fact] = [fact for delivery in before for fact in forgotten(delivery)]
        open_before = {(each.place, each.topic_id): each.policy for each in before if each.is_open}
        for each in state.places:
            place = Place(group_id, each.topic, each.partition)
            facts += restored(place, each)
            policy = open_before.get((place, each.topic_id))
            if policy is not None:
                facts.append(Opened(place, policy, is_new=True))
        return [*facts, *self._options_facts(group_id, state.options)], Code.NONE

    def _set_options(self, command: SetGroupOptions, _now_ms: int) -> Decided:
        options = self.group_options(command.group_id) | command.changes
        kept = {name: text for name, text in options.items() if text is not None}
        return self._options_facts(command.group_id, kept), Code.NONE

    def _options_facts(self, group_id: str, options: dict[str, str]) -> list[Fact]:
        if options == self.group_options(group_id):
            return []
        return [OptionsStored(group_id, options) if options else OptionsForgotten(group_id)]

    # Of the class, not of each one: whoever holds its own methods is left to the collector of cycles.
    _DECIDERS: ClassVar[dict[type, Callable[[Any, Any, int], Decided]]] = {
        Settle: _settle,
        Lease: _lease,
        Observe: _observe,
        Tick: _tick,
        OpenDelivery: _open,
        SetPolicy: _set_policy,
        DeadLettersWritten: _written,
        Seek: _seek,
        SettleBelow: _settle_below,
        GiveBack: _give_back,
        Replay: _replay,
        DropGroup: _drop,
        RestoreGroup: _restore,
        SetGroupOptions: _set_options,
        ForgetTopic: _forget_topic,
    }

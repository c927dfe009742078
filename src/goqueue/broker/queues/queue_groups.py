"""Queue groups as wholes: their options, which the controller keeps, and what concerns all their places, which lie in
many partitions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from goqueue.broker.queues.companions import NOBODY, DeliveryCompanions, Opening, places_of
from goqueue.broker.queues.stands import OnStands
from goqueue.machines.deliveries.commands import (
    DropGroup,
    GiveBack,
    GroupState,
    HeldRun,
    Measure,
    Place,
    PlaceCommand,
    Tally,
)
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.group_options import SetGroupOptions
from goqueue.machines.machine import Command
from goqueue.machines.name_table import NameTable
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.group_options import FORK_OF, check_group_options, without_origin
from goqueue.model.ids import check_group_id
from goqueue.model.ranges import Range
from goqueue.model.refusal import Refused
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator

OnOpen = Callable[[GoQueueError | None], None]

R = TypeVar("R")
T = TypeVar("T")


class OptionsStore(Protocol):
    """What keeps the options of groups."""

    @property
    def group_options(self) -> NameTable[Mapping[str, str]]:
        """Of groups that have any; nothing that could still be lost."""

    def submit(self, command: SetGroupOptions, on_reply: OnReply[Code]) -> None: ...


class HeldElsewhere(Protocol):
    def count(self, group_id: str, consumer: str, on_counts: Callable[[dict[int, int]], None]) -> None: ...

    def watch(
        self, group_id: str, consumer: str, counts: Mapping[int, int], wait_ms: int, on_change: Callable[[], None]
    ) -> Callable[[], None]: ...


class PlacesElsewhere(Protocol):
    """Places in partitions that other nodes lead. False: it is led here, and nothing was done."""

    def submit(self, command: PlaceCommand[R], on_reply: OnReply[R] | None) -> bool:
        """`on_reply` gets what the command says."""

    def open(
        self,
        place: Place,
        start: str,
        on_open: Callable[[GoQueueError | None], None],
        at: int | None,
        *,
        is_member: bool,
    ) -> bool: ...

    def give_back(self, command: GiveBack) -> None: ...

    def drop(self, group_id: str, topics: Sequence[str] | None, on_reply: OnReply[Code]) -> None: ...

    def stands(self, group_id: str, places: Sequence[Place] | None, on_stands: OnStands) -> None: ...


class QueueGroups:
    def __init__(self, opening: Opening, store: OptionsStore, clock: Clock) -> None:
        self.elsewhere: PlacesElsewhere | None = None
        """In a cluster."""
        self.held_elsewhere: HeldElsewhere | None = None
        """In a cluster: what consumers hold on other nodes."""
        self.companions = DeliveryCompanions(opening)
        self._store = store
        self._clock = clock
        self.is_stream: Callable[[str], bool] = lambda _group_id: False
        """Whether a group of this name commits offsets: then nobody but its members reads as a queue with it."""
        self.ask_stream: Callable[[str, Callable[[bool | GoQueueError], None]], None] | None = None
        """In a cluster: the same, of the group's coordinator."""
        self.may_begin: Callable[[str, OnOpen], None] | None = None
        """Whether there may be one more group, by the quotas of its tenant."""
        self._beginning: Counter[str] = Counter()
        """Groups that a place is being opened for. They count as queues from before anybody is asked whether they may:
        so, of two first uses at once, one sees the other (`goqueue.broker.groups.kinds_elsewhere`)."""
        self.on_options_changed: Callable[[str], None] = lambda group_id: None

    # -- options

    def options(self, group_id: str) -> Mapping[str, str]:
        """What was set for this group and goes before the options of its topics."""
        kept = self._store.group_options.get(group_id, {})
        return without_origin(kept) if FORK_OF in kept else kept

    def forks(self, group_id: str) -> list[str]:
        """Groups that were forked from this one and have places here, sorted."""
        of_groups = self._store.group_options.items()
        return sorted(name for name, kept in of_groups if kept.get(FORK_OF) == group_id and self.has_group(name))

    def origin(self, group_id: str) -> str | None:
        """The group that this one was forked from."""
        return self._kept(group_id).get(FORK_OF)

    def _kept(self, group_id: str) -> Mapping[str, str]:
        return self._store.group_options.get(group_id, {})

    def kept_options(self, group_id: str) -> Mapping[str, str]:
        """Also where it was forked from."""
        return self._kept(group_id)

    def replace_options(self, group_id: str, kept: Mapping[str, str | None], on_reply: OnReply[Code]) -> None:
        """By what was kept of a group."""
        self._set_options(SetGroupOptions(group_id, kept, replace_all=True), on_reply)

    def set_options(self, group_id: str, changes: Mapping[str, str | None], on_reply: OnReply[Code]) -> None:
        """InvalidOption: one of them does not exist or cannot have that value; then none is set."""
        check_group_id(group_id)
        check_group_options(changes)
        self._set_options(SetGroupOptions(group_id, dict(changes)), on_reply)

    def _set_options(self, command: SetGroupOptions, on_reply: OnReply[Code]) -> None:
        def is_set(reply: Code | GoQueueError) -> None:
            if not isinstance(reply, GoQueueError) and reply is not Code.NONE:
                reply = Refused(reply, f"the tenant of {command.group_id!r} is being deleted")
            if not isinstance(reply, GoQueueError):
                self.on_options_changed(command.group_id)
            on_reply(reply)

        self._store.submit(command, is_set)

    def check_is_queue(self, group_id: str) -> None:
        """Refused: the group is of another kind, or no group can have this id."""
        check_group_id(group_id)
        if self.is_stream(group_id):
            raise stream_refusal(group_id)

    def _begin(self, group_id: str, open_place: Callable[[OnOpen], None], on_open: OnOpen) -> None:
        """Open a place, once nobody says that the group is of another kind, or one too many."""
        if self.may_begin is None or self.is_queue(group_id):
            self._begin_one(group_id, open_place, on_open)
            return

        def allowed(error: GoQueueError | None) -> None:
            if error is None:
                self._begin_one(group_id, open_place, on_open)
            else:
                on_open(error)

        self.may_begin(group_id, allowed)

    def _begin_one(self, group_id: str, open_place: Callable[[OnOpen], None], on_open: OnOpen) -> None:
        self._beginning[group_id] += 1

        def begun(error: GoQueueError | None) -> None:
            self._beginning[group_id] -= 1
            if not self._beginning[group_id]:
                del self._beginning[group_id]
            on_open(error)

        def known(is_stream: bool | GoQueueError) -> None:
            if is_stream is False:
                open_place(begun)
            else:
                begun(stream_refusal(group_id) if is_stream is True else is_stream)

        if self.ask_stream is None or self.has_group(group_id):
            known(False)
        else:
            self.ask_stream(group_id, known)

    # -- which there are

    def has_group(self, group_id: str) -> bool:
        """Whether anything was ever delivered to it."""
        return group_id in self.companions.groups

    def is_queue(self, group_id: str) -> bool:
        """Whether it reads one by one here, or is about to."""
        return self.has_group(group_id) or group_id in self._beginning

    def groups(self) -> Iterator[str]:
        """All of them, in no order: for the start, when nobody waits yet. Else see `page`."""
        return iter({*self.companions.groups, *self._store.group_options})

    def page(self, after: str | None, count: int) -> list[str]:
        """The next names of groups, sorted."""
        found = {*self.companions.groups.page(after, count), *self.page_with_options(after, count)}
        return sorted(found)[:count]

    def page_delivered(self, after: str | None, count: int) -> list[str]:
        """Likewise, of those that anything was delivered to here, or is about to be."""
        beginning = [name for name in self._beginning if after is None or name > after]
        return sorted({*self.companions.groups.page(after, count), *beginning})[:count]

    def page_with_options(self, after: str | None, count: int) -> list[str]:
        """Likewise, of those that have options."""
        return self._store.group_options.page(after, count)

    def places(self, group_id: str) -> list[Place]:
        return places_of(group_id, self.companions.spots(group_id))

    def readers(self, topic: str, partition: int) -> list[Place]:
        """The places of all groups in one partition."""
        return self.companions.readers(topic, partition)

    def readers_by_partition(self) -> list[tuple[str, int, int]]:
        """Topic, partition, and how many groups read there; where any ever did."""
        return self.companions.sizes()

    def peek_at(self, place: Place) -> Deliveries:
        """For questions about a place, now: it must not be kept. Raises why none can be answered."""
        return self.companions.peek_at(place.topic, place.partition)

    def confirm(self, place: Place, on_confirmed: Callable[[GoQueueError | None], None]) -> None:
        """Call once all that was decided there so far is committed; with an error, if it will not be."""
        found = self.companions.at((place.topic, place.partition))
        if found is None:
            on_confirmed(None)
        else:
            found.confirm(on_confirmed)

    def is_busy(self, place: Place) -> bool:
        """Nothing can be leased there now: this is asked from within a reply. It can be soon."""
        found = self.companions.at((place.topic, place.partition))
        return found is not None and found.is_busy

    def is_open(self, place: Place) -> bool:
        """False also while that cannot be told: whoever opens it is told why."""
        found = self.companions.at((place.topic, place.partition))
        return found is not None and found.is_active and found.peek().is_open(place)

    def has_ready(self, place: Place) -> bool:
        found = self.companions.at((place.topic, place.partition))
        return found is not None and found.is_active and found.peek().has_ready(place)

    def held_runs(self, place: Place, consumer: str) -> list[Range]:
        """What a consumer holds there. Nothing, where the place is not served here any more: nobody knows of leases
        that were given before, and the records are delivered again.
        """
        coordinator = self.companions.at((place.topic, place.partition))
        if coordinator is None or not coordinator.is_active:
            return []
        return coordinator.peek().held.runs_of_consumer(place, consumer)

    # -- all places of a group

    def held_by(self, group_id: str, consumer: str) -> int:
        """How many records a consumer holds."""
        return sum(each.peek().held_by(group_id, consumer) for each in self.companions.of_group(group_id))

    def count_elsewhere(self, group_id: str, consumer: str, on_counts: Callable[[dict[int, int]], None]) -> None:
        """How many records a consumer holds on other nodes of a cluster, by their ids."""
        if self.held_elsewhere is None:
            on_counts({})
        else:
            self.held_elsewhere.count(group_id, consumer, on_counts)

    def watch_elsewhere(
        self, group_id: str, consumer: str, counts: Mapping[int, int], wait_ms: int, on_change: Callable[[], None]
    ) -> Callable[[], None]:
        """Call once a consumer may hold another number of records on these nodes. Returns how to stop it."""
        if self.held_elsewhere is None:
            return lambda: None
        return self.held_elsewhere.watch(group_id, consumer, counts, wait_ms, on_change)

    def state_of(self, group_id: str) -> GroupState:
        parts = [each.peek().state_of(group_id).places for each in self.companions.of_group(group_id)]
        return GroupState(dict(self.options(group_id)), tuple(chain.from_iterable(parts)))

    def give_back(self, command: GiveBack) -> None:
        self.give_back_here(command)
        if self.elsewhere is not None:
            self.elsewhere.give_back(command)

    def give_back_here(self, command: GiveBack) -> None:
        for each in self.companions.of_group(command.group_id):
            each.submit(command)

    def drop(self, group_id: str, topics: Sequence[str] | None, on_reply: OnReply[Code]) -> None:
        """Forget a group, in all its places or in these topics."""
        if self.elsewhere is None:
            self.drop_here(group_id, topics, on_reply)
        else:
            self.elsewhere.drop(group_id, topics, on_reply)

    def drop_here(self, group_id: str, topics: Sequence[str] | None, on_reply: OnReply[Code]) -> None:
        """As `drop`, in places that this node leads."""
        coordinators = self.companions.of_group(group_id)
        if not coordinators and not self._kept(group_id):
            on_reply(Code.GROUP_ID_NOT_FOUND)
            return
        command = DropGroup(group_id, None if topics is None else tuple(topics))

        def dropped(error: GoQueueError | None) -> None:
            if error is not None or topics is not None or not self._kept(group_id):
                on_reply(error or Code.NONE)
            else:
                self.replace_options(group_id, {}, on_reply)

        ask_all([(each, command) for each in coordinators], dropped)

    # -- all of them

    def tally(self) -> Tally:
        """What happened since the start, in all groups."""
        tallies = [each.peek().tally for each in self.companions.active()]
        return Tally(**{name: sum(getattr(each, name) for each in tallies) for name in Tally.__struct_fields__})

    def measured(self) -> Iterator[tuple[Place, Measure]]:
        """Every place of every group as it is known now, without another look at any log."""
        return chain.from_iterable(each.peek().measured() for each in self.companions.active())

    def held(self) -> Iterator[HeldRun]:
        """All that consumers of all groups hold."""
        return chain.from_iterable(each.peek().held.all() for each in self.companions.active())

    def nothing(self, command: Command[R]) -> R:
        """What is answered to a command about a place in a partition that no group has read."""
        outcome = NOBODY.decide(command, 0, self._clock.now_ms())
        assert not outcome.facts, f"{command} was decided for nobody"
        reply: R = outcome.replies[0][1]
        return reply


def ask_all(
    wanted: Sequence[tuple[Coordinator[Deliveries], Command[object]]], on_done: Callable[[GoQueueError | None], None]
) -> None:
    """Submit all, and tell when all are answered: the first error of any."""
    for_each(wanted, lambda one, done: one[0].submit(one[1], done), on_done)


def for_each(
    items: Sequence[T],
    start: Callable[[T, Callable[[object], None]], None],
    on_done: Callable[[GoQueueError | None], None],
) -> None:
    """Start all, and tell when all are done: the first error of any."""
    waiting = len(items) + 1
    first_error: GoQueueError | None = None

    def one_done(reply: object = None) -> None:
        nonlocal waiting, first_error
        waiting -= 1
        if isinstance(reply, GoQueueError):
            first_error = first_error or reply
        if not waiting:
            on_done(first_error)

    for item in items:
        start(item, one_done)
    one_done()


def stream_refusal(group_id: str) -> Refused:
    words = f"{group_id!r} is a consumer group: join it to read with it, or choose another name"
    return Refused(Code.INCONSISTENT_GROUP_PROTOCOL, words)

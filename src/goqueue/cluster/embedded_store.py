"""Metadata of a node that is its own cluster: the controller machine on a ledger in the node's own data directory,
behind the same calls as any store. It holds topics; where their partitions are needs no storing, they are all here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from goqueue.cluster.store import OnDone, OnEvents, OnListed
from goqueue.machines.accounts import AccountFact
from goqueue.machines.controller import Controller
from goqueue.machines.controller_commands import Transact, Transacted
from goqueue.machines.controller_facts import (
    ScheduleForgotten,
    SchedulePlaced,
    TopicForgotten,
    TopicStored,
)
from goqueue.machines.group_options import GroupOptionsForgotten, GroupOptionsStored
from goqueue.machines.machine import Command
from goqueue.machines.name_table import NameTable
from goqueue.model.accounts import AccessImage
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import (
    Committed,
    Compare,
    Conflict,
    Event,
    Listing,
    LiveKey,
    PartitionKey,
    Put,
    Step,
    TopicKey,
    TopicValue,
)
from goqueue.model.placements import NodeInfo, Placement
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.calls import call_each

R = TypeVar("R")


class EmbeddedStore:
    """Beside the calls of a store it takes the commands of the controller machine."""

    def __init__(self, coordinator: Coordinator[Controller], me: NodeInfo) -> None:
        self._coordinator = coordinator
        self._me = me
        self._on_events: OnEvents = lambda events: None
        self._on_lost: Callable[[], None] = lambda: None
        self._placed: dict[str, tuple[bytes, int]] = {}
        """Of each topic its id and how many partitions were told of."""
        self.schedules: Mapping[str, tuple[bytes, int]] = {}
        """Topic id and partition of every recurring schedule, by its name: nothing that a crash could take back."""
        self.group_options: NameTable[Mapping[str, str]] = NameTable()
        """Of groups that have any; nothing that could still be lost."""
        self.access = AccessImage()
        """Likewise."""
        self.on_change: list[Callable[[], None]] = []
        """Called when `access` was replaced."""
        coordinator.after_apply = self._applied
        coordinator.on_loaded = self._loaded

    @property
    def cluster_id(self) -> str:
        return self._coordinator.peek().cluster_id

    @property
    def secret(self) -> bytes:
        return self._coordinator.peek().secret

    @property
    def producer_ids_end(self) -> int:
        return self._coordinator.peek().producer_ids_end

    @property
    def topic_sizes(self) -> Mapping[str, int]:
        """Partitions of every topic, also of those that are being made or deleted."""
        return {name: each.partitions for name, each in self._coordinator.peek().topics.items()}

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None]) -> None:
        self._coordinator.submit(command, on_reply)

    # -- the calls of a store

    def list(self, on_listed: OnListed) -> None:
        controller = self._coordinator.peek()
        self._placed.clear()
        entries = [Event(LiveKey(self._me.node_id), self._me, controller.revision)]
        for name, stored in controller.topics.items():
            entries += self._set(stored, controller.revision_of(name))
        listing = Listing(controller.revision, entries)
        self._coordinator.when_durable(lambda: on_listed(listing))

    def watch(self, on_events: OnEvents, on_lost: Callable[[], None]) -> None:
        self._on_events, self._on_lost = on_events, on_lost

    def txn(self, step: Step, on_done: OnDone) -> None:
        def replied(reply: Transacted | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                on_done(reply)
            else:
                on_done(Committed(reply.revision) if reply.is_done else Conflict(reply.revision))

        expected = {_topic_name(compare.key): compare.revision for compare in map(_plain, step.compares)}
        self._coordinator.submit(Transact(expected, {_topic_name(put.key): _stored(put) for put in step.puts}), replied)

    def removed(self, name: str, revision: int) -> None:
        """There is nobody else to wait for: forget it, if it is still the same."""
        key = TopicKey(name)
        self.txn(Step((Compare(key, revision),), (Put(key, None),)), lambda outcome: None)

    # -- what has changed

    def _show_schedules(self) -> None:
        schedules = self._coordinator.peek().schedules()

        def is_durable() -> None:
            self.schedules = schedules

        self._coordinator.when_durable(is_durable)

    def _loaded(self) -> None:
        """What was told before may not have been stored."""
        self._show_schedules()
        self.group_options = NameTable()
        for group_id, options in self._coordinator.peek().groups.table.items():
            self.group_options[group_id] = options
        self._show_access()
        self._on_lost()

    def _show_access(self) -> None:
        access = self._coordinator.peek().access

        def is_durable() -> None:
            self.access = access
            call_each(self.on_change)

        self._coordinator.when_durable(is_durable)

    def _applied(self, facts: Sequence[object]) -> None:
        if any(isinstance(fact, SchedulePlaced | ScheduleForgotten) for fact in facts):
            self._show_schedules()
        if any(isinstance(fact, AccountFact) for fact in facts):
            self._show_access()
        controller = self._coordinator.peek()
        events: list[Event] = []
        for fact in facts:
            if isinstance(fact, TopicStored):
                events += self._set(fact, controller.revision_of(fact.name) or controller.revision)
            elif isinstance(fact, TopicForgotten):
                events += self._forget(fact.name, controller.revision)
            elif isinstance(fact, GroupOptionsStored | GroupOptionsForgotten):
                self._coordinator.when_durable(partial(self._show_group, fact))
        if events:
            self._coordinator.when_durable(lambda: self._on_events(events))

    def _show_group(self, fact: GroupOptionsStored | GroupOptionsForgotten) -> None:
        if isinstance(fact, GroupOptionsStored):
            self.group_options[fact.group_id] = fact.options
        else:
            self.group_options.pop(fact.group_id, None)

    def _set(self, stored: TopicStored, revision: int) -> Iterator[Event]:
        """Partitions first: whoever sees a topic sees where all of it is."""
        topic_id, told = self._placed.get(stored.name, (stored.topic_id, 0))
        if topic_id != stored.topic_id:
            yield from self._forget(stored.name, revision)
            told = 0
        me = self._me
        here = (me.node_id,)
        placement = Placement(me.node_id, me.incarnation, me.incarnation, here, here, revision=revision)
        for number in range(told, stored.partitions):
            yield Event(PartitionKey(stored.topic_id, number), placement, revision)
        self._placed[stored.name] = stored.topic_id, max(told, stored.partitions)
        value = TopicValue(stored.topic_id, stored.partitions, stored.overrides, stored.is_deleting)
        yield Event(TopicKey(stored.name), value, revision)

    def _forget(self, name: str, revision: int) -> Iterator[Event]:
        yield Event(TopicKey(name), None, revision)
        topic_id, told = self._placed.pop(name, (b"", 0))
        for number in range(told):
            yield Event(PartitionKey(topic_id, number), None, revision)


def _plain(compare: object) -> Compare:
    """Lives of nodes are not compared here: there is one."""
    assert isinstance(compare, Compare), compare
    return compare


def _topic_name(key: object) -> str:
    """Nothing else is stored here: where partitions and nodes are follows from there being one node."""
    assert isinstance(key, TopicKey), key
    return key.name


def _stored(put: Put) -> TopicStored | None:
    if put.value is None:
        return None
    assert isinstance(put.value, TopicValue), put
    value = put.value
    return TopicStored(_topic_name(put.key), value.topic_id, value.partitions, dict(value.overrides), value.is_deleting)

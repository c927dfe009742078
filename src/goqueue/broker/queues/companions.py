"""Deliveries by partition: each partition that a queue group reads has a machine and a ledger of its own for them, made
when the first group comes. Also which groups read where, so that a question about a group asks no others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from goqueue.machines.deliveries.commands import OWN_WINDOW, OpenDelivery, Place
from goqueue.machines.deliveries.facts import Progress, ProgressForgotten
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.machine import Fact
from goqueue.machines.name_table import NameTable
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Topic, TopicsChange
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.coordinators import Coordinators
from goqueue.runtime.life import Life
from goqueue.telemetry.logs import get_logger

events = get_logger("broker")

KIND = "deliveries"
NOBODY = Deliveries()
"""Of a partition that no group has read: it answers every question and is never changed."""

Key = tuple[bytes, int]
"""Topic id and partition."""
Spot = tuple[str, int]
"""Topic and partition."""


OnOpened = Callable[[Code | GoQueueError], None]
ToOpen = Callable[[Coordinator[Deliveries], Topic, int, Deliveries], Iterator[tuple[OpenDelivery, OnOpened]]]


class Opening(NamedTuple):
    """How ledgers of deliveries are found and made."""

    on_disk: Callable[[], Sequence[Key]]
    open: Callable[[Topic, int], Coordinator[Deliveries]]
    """It is not loaded by this. LogPoisoned: it cannot be opened."""
    options_changed: Callable[[Topic, int], None]
    """Those of the topic are others now: one that is open follows its durability."""
    load: Callable[[Coordinator[Deliveries]], None] = Coordinator.load_now
    """One that was opened. In a cluster it may go on from a standby, and serves when that is committed."""
    make: Callable[[Topic, int], None] = lambda topic, partition: None
    """Before one is opened that nobody has needed before. In a cluster its ledger is made by this, in the role of its
    partition, and whoever leads opens it by that."""


class TouchedCoordinators(Coordinators[Key, Deliveries]):
    """There may be thousands, and every answer that is read from their states asks who is unsure: those that were not
    touched since somebody asked need not be looked at.
    """

    def __init__(self) -> None:
        super().__init__(KIND)
        self._touched: dict[Coordinator[Deliveries], None] = {}

    def touch(self, coordinator: Coordinator[Deliveries]) -> None:
        self._touched[coordinator] = None

    def unload(self, key: Key) -> None:
        if (found := self.find(key)) is not None:
            self._touched.pop(found, None)
        super().unload(key)

    def unsure(self) -> list[Coordinator[Deliveries]]:
        found = [each for each in self._touched if not each.is_durable and each.life is not Life.UNLOADED]
        self._touched = dict.fromkeys(found)
        return found


class DeliveryCompanions:
    """Invariant: `groups` names exactly the places that the machines know."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self.coordinators = TouchedCoordinators()
        self.groups: NameTable[dict[Spot, None]] = NameTable()
        """Where each of them reads."""
        self.on_applied: Callable[[Coordinator[Deliveries], list[Fact]], None] = lambda coordinator, facts: None
        self.on_acked: Callable[[Fact], None] = lambda fact: None
        """Called with a SettledStored that moved the progress of its place, and did nothing else."""
        self.to_open: ToOpen = lambda coordinator, topic, partition, machine: iter(())
        """What is decided at each load before anybody is served."""
        self.on_loaded: Callable[[Coordinator[Deliveries]], None] = lambda coordinator: None
        """Called after that, and before any other command."""
        self._at: dict[Spot, Coordinator[Deliveries]] = {}
        self.at = self._at.get
        """By topic and partition. None: no group has read there, or it cannot be opened."""
        self._groups_at: dict[Spot, set[str]] = {}
        self._failed: dict[Spot, GoQueueError] = {}
        """Those that could not be opened, and why."""
        self._unopened: set[Key] | None = None
        """On the disk, of topics that were not met yet. None: the disk was not looked at."""

    # -- who there is

    def find(self, topic: str, partition: int) -> Coordinator[Deliveries] | None:
        """None: no group has read there. Raises why that cannot be told."""
        spot = topic, partition
        found = self._at.get(spot)
        if found is None and spot in self._failed:
            raise self._failed[spot].kept()
        return found

    def peek_at(self, topic: str, partition: int) -> Deliveries:
        """For questions, now: it must not be kept. Raises why none can be answered."""
        found = self._at.get((topic, partition))
        if found is None:
            found = self.find(topic, partition)
        return NOBODY if found is None else found.peek()

    def of_or_made(self, topic: Topic, partition: int) -> Coordinator[Deliveries]:
        """LogPoisoned: it cannot be opened."""
        found = self.find(topic.name, partition)
        if found is None:
            self._opening.make(topic, partition)
            found = self.find(topic.name, partition)
        return found or self._open(topic, partition)

    def active(self) -> Iterator[Coordinator[Deliveries]]:
        return (each for _, each in self.coordinators.active())

    def of_group(self, group_id: str) -> list[Coordinator[Deliveries]]:
        """By topic and partition."""
        return [self._at[spot] for spot in self.spots(group_id)]

    def spots(self, group_id: str) -> list[Spot]:
        return sorted(self.groups.get(group_id, ()))

    def readers(self, topic: str, partition: int) -> list[Place]:
        return [Place(group_id, topic, partition) for group_id in self.groups_at((topic, partition))]

    def groups_at(self, spot: Spot) -> list[str]:
        return sorted(self._groups_at.get(spot, ()))

    def sizes(self) -> list[tuple[str, int, int]]:
        """Topic, partition, and how many groups read there."""
        return [(*spot, len(self._groups_at.get(spot, ()))) for spot in sorted(self._at)]

    # -- their lives

    def topics_changed(self, change: TopicsChange) -> None:
        for topic in change.gone:
            self._forget(topic)
        if self._unopened is None:
            self._unopened = set(self._opening.on_disk())
        if self._unopened:
            for topic in change.present:
                for number in range(topic.partitions):
                    if (topic.id, number) in self._unopened:
                        self._unopened.discard((topic.id, number))
                        self._try_to_open(topic, number)
        for topic in change.present:
            before = change.before.topics.get(topic.name)
            if before is not None and before.overrides != topic.overrides:
                for number in range(topic.partitions):
                    if (topic.name, number) in self._at:
                        self._opening.options_changed(topic, number)

    def _try_to_open(self, topic: Topic, partition: int) -> None:
        try:
            # What is dropped since the log has lost it must not come back when others stand there.
            self._open(topic, partition).make_durable()
        except GoQueueError as error:
            events.error("deliveries not opened", topic=topic.name, partition=partition, reason=str(error))
            self._failed[topic.name, partition] = error.kept()

    def _open(self, topic: Topic, partition: int) -> Coordinator[Deliveries]:
        coordinator = self._opening.open(topic, partition)
        coordinator.after_apply = partial(self._applied, coordinator)
        coordinator.after_number = self.on_acked
        coordinator.to_open = partial(self._to_open, coordinator, topic, partition)
        coordinator.on_loaded = partial(self.on_loaded, coordinator)
        self._at[topic.name, partition] = self.coordinators.add((topic.id, partition), coordinator)
        self._opening.load(coordinator)
        return coordinator

    # -- in a cluster

    def lead(self, topic: Topic, partition: int) -> None:
        """This node leads the partition now, and there is a ledger."""
        try:
            self._open(topic, partition)
        except GoQueueError as error:
            events.error("deliveries not opened", topic=topic.name, partition=partition, reason=str(error))
            self._failed[topic.name, partition] = error.kept()

    def lose(self, topic: Topic, partition: int) -> None:
        """It does not any more: whoever waits is told, and what is known is dropped."""
        spot = topic.name, partition
        self._failed.pop(spot, None)
        if self._at.pop(spot, None) is not None:
            self._forget_groups(spot)
            self.coordinators.unload((topic.id, partition))

    def _to_open(
        self, coordinator: Coordinator[Deliveries], topic: Topic, partition: int, machine: Deliveries
    ) -> Iterator[tuple[OpenDelivery, OnOpened]]:
        """Groups that are known from before a fault stay known meanwhile: else their names would be free."""
        spot, groups = (topic.name, partition), set(machine.groups())
        for group_id in self._groups_at.get(spot, set()) - groups:
            self._drop(group_id, spot)
        for command, on_reply in self.to_open(coordinator, topic, partition, machine):
            self._note(command.place.group_id, spot)
            yield command, on_reply
        for group_id in groups - self._groups_at.get(spot, set()):  # that have options only
            self._note(group_id, spot)

    def _applied(self, coordinator: Coordinator[Deliveries], facts: list[Fact]) -> None:
        self.coordinators.touch(coordinator)
        for fact in facts:
            kind = type(fact)
            if kind is Progress:
                assert isinstance(fact, Progress)
                group_id, topic, partition = fact.place
                self._note(group_id, (topic, partition))
            elif kind is ProgressForgotten:
                assert isinstance(fact, ProgressForgotten)
                group_id, topic, partition = fact.place
                if fact.window == OWN_WINDOW and fact.place not in coordinator.peek().places(group_id):
                    self._drop(group_id, (topic, partition))
        self.on_applied(coordinator, facts)

    def _forget(self, topic: Topic) -> None:
        for number in range(topic.partitions):
            self.lose(topic, number)

    # -- groups

    def _note(self, group_id: str, spot: Spot) -> None:
        known = self._groups_at.get(spot)
        if known is None:
            known = self._groups_at[spot] = set()
        if group_id not in known:
            known.add(group_id)
            self.groups.setdefault(group_id, {})[spot] = None

    def _drop(self, group_id: str, spot: Spot) -> None:
        self._groups_at.get(spot, set()).discard(group_id)
        spots = self.groups.get(group_id, {})
        spots.pop(spot, None)
        if not spots:
            self.groups.pop(group_id, None)

    def _forget_groups(self, spot: Spot) -> None:
        for group_id in self._groups_at.pop(spot, set()):
            self._drop(group_id, spot)


def places_of(group_id: str, spots: Iterable[Spot]) -> list[Place]:
    return [Place(group_id, *spot) for spot in spots]

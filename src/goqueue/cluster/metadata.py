"""The image that a node acts on, made from a store: whichever store it is, the same values give the same image. Only
topics that have changed are made anew.
"""

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar

from goqueue.cluster.store import Store
from goqueue.machines.machine import Command
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import (
    ClusterKey,
    ClusterValue,
    Event,
    Key,
    Listing,
    LiveKey,
    PartitionKey,
    TopicKey,
    TopicValue,
)
from goqueue.model.placements import NO_EPOCH, NOBODY, NOWHERE, NodeInfo, Placement
from goqueue.model.topics import Image, Topic

R = TypeVar("R")


class CommandStore(Store, Protocol):
    """A store that also decides the commands of the controller machine."""

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None]) -> None: ...

    def removed(self, name: str, revision: int) -> None:
        """The logs of a topic that is being deleted are gone here. `revision`: of the topic."""


class Metadata:
    """Invariant: a topic that is as it was is the same object, whatever was listed anew."""

    def __init__(self, store: CommandStore) -> None:
        self._store = store
        self.on_change: Callable[[Iterable[str]], None] = lambda names: None
        """Called when the image was replaced, with the names of the topics that have changed, before anybody is told
        that a change was made."""
        self.image = Image()
        """The last one that a crash cannot take back: nothing is made or removed for the sake of a later one."""
        self.deleting: dict[str, TopicValue] = {}
        """Topics whose logs have still to be removed, by name."""
        self._known: dict[Key, Event] = {}
        self._names: dict[bytes, str] = {}
        """Of topics, by their ids."""
        self._placements: dict[bytes, dict[int, Placement]] = {}
        self._nodes: dict[int, NodeInfo] = {}
        self._is_halted = False
        """What the metadata says of leaders may be wrong: the image has none."""
        store.watch(self._fold, lambda: store.list(self._listed))

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None]) -> None:
        self._store.submit(command, on_reply)

    def removed(self, name: str) -> None:
        """The logs of a topic that is being deleted are gone here: say so, if it is still the same."""
        key = TopicKey(name)
        known = self._known.get(key)
        if known is None or not isinstance(known.value, TopicValue) or not known.value.is_deleting:
            return
        self._store.removed(name, known.revision)

    def _listed(self, listing: Listing) -> None:
        """What is not in the listing is gone: absence is told by nothing else."""
        found = {entry.key for entry in listing.entries}
        gone = [Event(key, None, listing.revision) for key in self._known if key not in found]
        known = self._known
        new = [one for one in listing.entries if one.key not in known or known[one.key].value != one.value]
        self._fold([*gone, *new])

    def _fold(self, changed: Sequence[Event]) -> None:
        touched: dict[str, None] = {}
        for event in changed:
            name = self._take_in(event)
            if name is not None:
                touched[name] = None
        if self._is_halted != self._halts():
            self._is_halted = not self._is_halted
            touched.update(dict.fromkeys(key.name for key in self._known if isinstance(key, TopicKey)))
        revision = max((event.revision for event in changed), default=self.image.revision)
        built = {name: self._build(name) for name in touched}
        changes = {name: topic for name, topic in built.items() if topic != self.image.find(name)}
        nodes = MappingProxyType(dict(self._nodes)) if self._nodes != self.image.nodes else None
        self.image = self.image.replaced(revision, changes, nodes)
        self.on_change(list(touched))

    def _halts(self) -> bool:
        known = self._known.get(ClusterKey())
        return known is not None and isinstance(known.value, ClusterValue) and bool(known.value.halted)

    def _take_in(self, event: Event) -> str | None:
        """The name of the topic that it is about, if it is about one that is known."""
        key, value = event.key, event.value
        if value is None:
            before = self._known.pop(key, None)
        else:
            before = self._known.get(key)
            self._known[key] = event
        match key:
            case LiveKey():
                self._nodes.pop(key.node_id, None)
                if isinstance(value, NodeInfo):
                    self._nodes[key.node_id] = value
                return None
            case PartitionKey():
                placements = self._placements.setdefault(key.topic_id, {})
                placements.pop(key.number, None)
                if isinstance(value, Placement):
                    placements[key.number] = value
                elif not placements:
                    del self._placements[key.topic_id]
                return self._names.get(key.topic_id)
            case TopicKey():
                if before is not None and isinstance(before.value, TopicValue):
                    self._names.pop(before.value.topic_id, None)
                self.deleting.pop(key.name, None)
                if isinstance(value, TopicValue):
                    self._names[value.topic_id] = key.name
                    if value.is_deleting:
                        self.deleting[key.name] = value
                return key.name
            case _:
                return None

    def _build(self, name: str) -> Topic | None:
        known = self._known.get(TopicKey(name))
        if known is None or not isinstance(known.value, TopicValue):
            return None
        value = known.value
        if value.is_deleting or value.is_making:
            return None
        placed = self._placements.get(value.topic_id, {})
        placements = tuple(placed.get(number, NOWHERE) for number in range(value.partitions))
        if self._is_halted:
            nobody = {"leader": NOBODY, "incarnation": 0, "epoch": NO_EPOCH}
            placements = tuple(one._replace(**nobody) for one in placements)  # type: ignore[arg-type]  # numbers all
        overrides = MappingProxyType(dict(value.overrides))
        return Topic(name, value.topic_id, value.partitions, overrides, placements, value.replication_factor)

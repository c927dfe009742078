"""Metadata of a node that is its own cluster: the controller machine on a ledger in the node's own data directory."""

from collections.abc import Callable, Iterable
from typing import Any

from goqueue.machines.controller import (
    STORED_FACTS,
    ClusterNamed,
    Controller,
    NameCluster,
    PartitionLimits,
    ProducerIdsTaken,
    TopicForgotten,
    TopicRemoved,
    TopicStored,
)
from goqueue.model.topics import Image
from goqueue.runtime.coordinator import Coordinator, OnReply

__all__ = [
    "STORED_FACTS",
    "ClusterNamed",
    "Controller",
    "EmbeddedStore",
    "NameCluster",
    "PartitionLimits",
    "ProducerIdsTaken",
    "TopicStored",
]


class EmbeddedStore:
    """Commands are those of the controller machine."""

    def __init__(self, coordinator: Coordinator[Controller]) -> None:
        self._coordinator = coordinator
        self.on_change: Callable[[Iterable[str]], None] = lambda names: None
        """Called when the image was replaced, with the names of the topics that have changed, before anybody is told
        that a change was made."""
        self.image = Image()
        """The last one that a crash cannot take back: nothing is made or removed for the sake of a later one."""
        self.deleting: dict[str, TopicStored] = {}
        """Topics whose logs have still to be removed, by name."""
        self._newest = Image()
        """With what is not durable yet."""
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

    def _loaded(self) -> None:
        """Revisions only rise, and a topic that is as it was is the same object, whatever was loaded anew."""
        found, known = self._coordinator.peek().image, self.image
        if not known.revision:
            self._show(found, [*found.topics, *self._coordinator.peek().deleting()])
            return
        names = [name for name in {**known.topics, **found.topics} if known.topics.get(name) != found.topics.get(name)]
        self._show(known.replaced(known.revision + 1, {name: found.topics.get(name) for name in names}), names)

    def _applied(self, facts: Iterable[object]) -> None:
        names = [fact.name for fact in facts if isinstance(fact, TopicStored | TopicForgotten)]
        found = self._coordinator.peek().image
        if self._coordinator.loads > 1:
            changes = {name: found.topics.get(name) for name in names}
            found = self._newest.replaced(self._newest.revision + 1, changes)
        self._show(found, names)

    def _show(self, image: Image, names: Iterable[str]) -> None:
        self._newest, deleting = image, self._coordinator.peek().deleting()

        def is_durable() -> None:
            self.image, self.deleting = image, deleting
            self.on_change(names)

        self._coordinator.when_durable(is_durable)

    def removed(self, name: str) -> None:
        self._coordinator.submit(TopicRemoved(name))

    def submit(self, command: Any, on_reply: OnReply) -> None:
        self._coordinator.submit(command, on_reply)

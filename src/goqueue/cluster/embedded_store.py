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

    def __init__(self, controller: Controller, coordinator: Coordinator) -> None:
        self._controller = controller
        self._coordinator = coordinator
        self.on_change: Callable[[Iterable[str]], None] = lambda names: None
        """Called when the image was replaced, with the names of the topics that have changed, before anybody is told
        that a change was made."""
        self.image = Image()
        """The last one that a crash cannot take back: nothing is made or removed for the sake of a later one."""
        self.deleting: dict[str, TopicStored] = {}
        """Topics whose logs have still to be removed, by name."""
        coordinator.after_apply = self._applied

    def _applied(self, facts: Iterable[object]) -> None:
        names = [fact.name for fact in facts if isinstance(fact, TopicStored | TopicForgotten)]
        image, deleting = self._controller.image, self._controller.deleting()

        def is_durable() -> None:
            self.image, self.deleting = image, deleting
            self.on_change(names)

        self._coordinator.when_durable(is_durable)

    def removed(self, name: str) -> None:
        self._coordinator.submit(TopicRemoved(name))

    def submit(self, command: Any, on_reply: OnReply) -> None:
        self._coordinator.submit(command, on_reply)

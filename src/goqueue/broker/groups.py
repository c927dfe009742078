"""Groups: each belongs to one of several coordinators, by its name."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from zlib import crc32

from goqueue.machines import consumer_group_facts as consumer_commands
from goqueue.machines import group_commands as commands
from goqueue.machines.group_commands import EndTransactionOffsets
from goqueue.model.topics import Image, Topic
from goqueue.runtime.coordinator import Coordinator, OnReply

__all__ = ["Groups", "commands", "consumer_commands", "new_member_id"]


class HasGroup(Protocol):
    @property
    def group_id(self) -> str: ...


class Groups:
    def __init__(self, coordinators: Sequence[Coordinator]) -> None:
        self._coordinators = coordinators
        self._topics: Mapping[str, Topic] = {}

    def topics_changed(self, image: Image) -> None:
        """Groups hear of new partitions at once, and forget what they committed to topics that are gone."""
        gone = [topic for topic in self._topics.values() if image.by_id(topic.id) is None]
        self._topics = image.topics
        for topic in gone:
            self.submit_to_all(commands.TopicDeleted(topic.name, topic.id), lambda replies: None)
        self.submit_to_all(consumer_commands.TopicsChanged(image.topics), lambda replies: None)

    def submit(self, command: HasGroup, on_reply: OnReply) -> None:
        """Commands of the groups machine."""
        self._of(command.group_id).submit(command, on_reply)

    def submit_to_all(self, command: Any, on_replies: Callable[[list[Any]], None]) -> None:
        """A command that concerns every group: a list, a deleted topic."""
        replies: list[Any] = []

        def collect(reply: Any) -> None:
            replies.append(reply)
            if len(replies) == len(self._coordinators):
                on_replies(replies)

        for coordinator in self._coordinators:
            coordinator.submit(command, collect)

    def end_transaction(self, group_id: str, command: EndTransactionOffsets, on_reply: OnReply) -> None:
        """What a transaction committed to this group counts now, or is forgotten. A GoQueueError: ask again."""
        self._of(group_id).submit(command, on_reply)

    def _of(self, group_id: str) -> Coordinator:
        return self._coordinators[crc32(group_id.encode()) % len(self._coordinators)]


def new_member_id(client_id: str) -> str:
    return f"{client_id or 'member'}-{secrets.token_hex(16)}"

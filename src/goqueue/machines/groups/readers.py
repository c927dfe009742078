"""Which groups a change of topics concerns, so that it need not ask all of them."""

from collections.abc import Iterable
from typing import ClassVar

from goqueue.machines.groups.commands import TopicsChanged
from goqueue.machines.machine import Fact


class Announced(Fact, frozen=True):
    """What groups that come later know, too."""

    durable: ClassVar[bool] = False
    command: TopicsChanged


class GroupReaders:
    """Invariant: a group is under every topic that a member of it names, perhaps under some that none names any more;
    with an expression it is under all."""

    def __init__(self) -> None:
        self._of_topic: dict[str, set[str]] = {}
        self._topics_of: dict[str, set[str]] = {}
        self._of_any: set[str] = set()

    def add(self, group_id: str, topics: Iterable[str] | None) -> None:
        """None: by an expression."""
        if topics is None:
            self._of_any.add(group_id)
            return
        known = self._topics_of.get(group_id)
        if known is None:
            known = self._topics_of[group_id] = set()
        if not known.issuperset(topics):
            for topic in topics:
                known.add(topic)
                self._of_topic.setdefault(topic, set()).add(group_id)

    def drop(self, group_id: str) -> None:
        self._of_any.discard(group_id)
        for topic in self._topics_of.pop(group_id, ()):
            readers = self._of_topic[topic]
            readers.discard(group_id)
            if not readers:
                del self._of_topic[topic]

    def of(self, topics: Iterable[str]) -> list[str]:
        """All groups that may have to do with one of these."""
        return sorted(self._of_any.union(*(self._of_topic.get(topic, ()) for topic in topics)))

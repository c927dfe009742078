"""Which topics a member means: it names them, or gives an expression."""

from collections.abc import Iterable, Mapping

from goqueue.machines.groups.consumer.facts import ConsumerMember
from goqueue.machines.patterns import matcher
from goqueue.model.topics import Topic


class Subscriptions:
    """What members of one group mean, found once for all that mean the same.

    Invariant: `_topics` does not change while this lives.
    """

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        self._topics = topics
        self._found: dict[tuple[tuple[str, ...], str | None], frozenset[str]] = {}

    def names(self, member: ConsumerMember) -> frozenset[str]:
        """Of topics that exist. Expressions must match a name as a whole."""
        asked = (member.topic_names, member.topic_regex)
        found = self._found.get(asked)
        if found is None:
            names = {name for name in member.topic_names if name in self._topics}
            if member.topic_regex is not None:
                matches = matcher(member.topic_regex)
                names.update(filter(matches, self._topics))
            found = self._found[asked] = frozenset(names)
        return found

    def used(self, members: Iterable[ConsumerMember]) -> dict[str, tuple[bytes, int]]:
        """All topics that any of them means: id and number of partitions."""
        names = frozenset[str]().union(*{self.names(member) for member in members})
        return {name: (self._topics[name].id, self._topics[name].partitions) for name in sorted(names)}

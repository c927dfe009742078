"""Which topics a member means: it names them, or gives an expression."""

import re
from collections.abc import Callable, Iterable, Mapping

from goqueue.machines.groups.consumer.facts import ConsumerMember
from goqueue.machines.patterns import matcher
from goqueue.model.tenancy import MARK, TENANT_ID, are_of_one_tenant
from goqueue.model.topics import Topic

_OF_TENANT = re.compile(rf"({TENANT_ID}{MARK})\(\?:(.*)\)", re.DOTALL)
"""`acme~(?:orders-.*)`: as the view gives it, for another tenant than the default one."""


class Subscriptions:
    """What members of one group mean, found once for all that mean the same.

    Invariant: `_topics` does not change while this lives.
    """

    def __init__(self, group_id: str, topics: Mapping[str, Topic]) -> None:
        self._group_id = group_id
        self._topics = topics
        self._found: dict[tuple[tuple[str, ...], str | None], frozenset[str]] = {}

    def names(self, member: ConsumerMember) -> frozenset[str]:
        """Of topics that exist. Expressions must match a name as a whole."""
        asked = (member.topic_names, member.topic_regex)
        found = self._found.get(asked)
        if found is None:
            known = (name for name in member.topic_names if name in self._topics)
            names = {name for name in known if are_of_one_tenant(self._group_id, name)}
            if member.topic_regex is not None:
                names.update(filter(_of_one_tenant(self._group_id, member.topic_regex), self._topics))
            found = self._found[asked] = frozenset(names)
        return found

    def used(self, members: Iterable[ConsumerMember]) -> dict[str, tuple[bytes, int]]:
        """All topics that any of them means: id and number of partitions."""
        names = frozenset[str]().union(*{self.names(member) for member in members})
        return {name: (self._topics[name].id, self._topics[name].partitions) for name in sorted(names)}


def parted(group_id: str, regex: str) -> tuple[str, str]:
    """The prefix of a tenant, and the expression as a client of it said it. In a group of another tenant nothing is a
    prefix: a client may write what looks like one."""
    found = _OF_TENANT.fullmatch(regex)
    return (found[1], found[2]) if found is not None and group_id.startswith(found[1]) else ("", regex)


def _of_one_tenant(group_id: str, regex: str) -> Callable[[str], object]:
    """An expression is about names as its tenant knows them, and matches no other tenant's."""
    prefix, said = parted(group_id, regex)
    matches = matcher(said)
    if not prefix:
        return lambda name: MARK not in name and matches(name)
    return lambda name: name.startswith(prefix) and matches(name.removeprefix(prefix))

"""Which topics a member means. Expressions come from strangers, so they are matched by RE2, in time linear in the name
whatever the expression; it is also the dialect that Kafka's brokers speak.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from goqueue.machines.consumer_group_facts import ConsumerMember
from goqueue.model.topics import Topic

COMPILED_BYTES_MAX = 1 << 20


@lru_cache(maxsize=1024)
def _compiled(regex: str) -> Any:
    options = re2.Options()
    options.max_mem = COMPILED_BYTES_MAX
    options.log_errors = False
    return re2.compile(regex, options)


def regex_problem(regex: str) -> str | None:
    """Why this is not a regular expression that we match."""
    try:
        _compiled(regex)
    except re2.error as error:
        return str(error)
    except UnicodeEncodeError:
        return "not text"
    return None


class Subscriptions:
    """What members of one group mean, found once for all that mean the same.

    Invariant: `_topics` does not change while this lives.
    """

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        self._topics = topics
        self._found: dict[tuple[tuple[str, ...], str | None], frozenset[str]] = {}

    def names(self, member: ConsumerMember) -> frozenset[str]:
        """Of topics that exist. Expressions do not find internal topics, and must match a name as a whole."""
        asked = (member.topic_names, member.topic_regex)
        found = self._found.get(asked)
        if found is None:
            names = {name for name in member.topic_names if name in self._topics}
            if member.topic_regex is not None:
                matches = _compiled(member.topic_regex).fullmatch
                names.update(name for name, topic in self._topics.items() if not topic.is_internal and matches(name))
            found = self._found[asked] = frozenset(names)
        return found

    def used(self, members: Iterable[ConsumerMember]) -> dict[str, tuple[bytes, int]]:
        """All topics that any of them means: id and number of partitions."""
        names = frozenset[str]().union(*{self.names(member) for member in members})
        return {name: (self._topics[name].id, self._topics[name].partitions) for name in sorted(names)}

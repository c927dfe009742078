"""Which partitions a read is about: by name, by pattern, or one by one."""

import re
from collections.abc import Iterable
from typing import Any

from goqueue.client.assigned import Place
from goqueue.client.cluster import Cluster
from goqueue.client.errors import UnknownTopic
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options, names
from goqueue.wire.kafka.messages.metadata import MetadataRequest, MetadataResponse

_CHOICES = ("subscribe", "subscribePattern", "assign", "path")


class Chosen:
    """What the options say, and what the broker has of it. `find` may find more the next time."""

    def __init__(self, options: Options) -> None:
        given = [name for name in _CHOICES if options.has(name)]
        if not given:
            raise SparkError('say which topics: .option("subscribe", "orders"), subscribePattern, assign or .load(...)')
        if len(given) > 1:
            both = " and ".join('load("...")' if name == "path" else name for name in given)
            raise SparkError(f"{both} both say which topics: only one of them is allowed")
        (self._how,) = given
        self._what = options.get(self._how)
        if self._how == "path":
            self._what = names(self._what)
        elif self._how == "subscribePattern":
            self._pattern = _compiled(self._what)
        elif self._how == "assign":
            self._what = _assigned(self._what)

    async def find(self, cluster: Cluster, *, may_be_missing: bool = False) -> dict[Place, bytes]:
        """Each partition, and the id of its topic. SparkError: one that was named is not there, and it must be."""
        if self._how == "assign":
            found = await _partitions(cluster, self._what, may_be_missing)
            missing = [
                (topic, one) for topic, wanted in self._what.items() for one in wanted if (topic, one) not in found
            ]
            if missing and not may_be_missing:
                raise SparkError("; ".join(_no_partition(found, *place) for place in missing))
            return {place: id_ for place, id_ in found.items() if place[1] in self._what[place[0]]}
        if self._how == "subscribePattern":
            answer = await cluster.ask_any(MetadataRequest(None, False), MetadataResponse)
            existing = [one.name for one in answer.topics if one.name and not one.error_code and not one.is_internal]
            return await _partitions(cluster, filter(self._pattern.fullmatch, existing), may_be_missing=True)
        return await _partitions(cluster, self._what, may_be_missing)


async def _partitions(cluster: Cluster, topics: Iterable[str], may_be_missing: bool) -> dict[Place, bytes]:
    wanted = sorted(set(topics))
    await cluster.refresh(wanted)  # there may be more partitions by now
    found: dict[Place, bytes] = {}
    for name in wanted:
        topic = cluster.known(name)
        if topic is None and not may_be_missing:
            try:
                topic = await cluster.topic(name)  # it may have been made a moment ago
            except UnknownTopic:
                missing = ", ".join(each for each in wanted if cluster.known(each) is None)
                raise SparkError(f"there is no topic {missing}") from None
        if topic is not None:
            found |= {(name, partition): topic.id for partition in range(len(topic.leaders))}
    return found


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise SparkError(f"subscribePattern: {pattern!r} is no regular expression: {error}") from None


def _assigned(given: Any) -> dict[str, list[int]]:
    is_right = isinstance(given, dict) and all(
        isinstance(partitions, list) and partitions and all(type(one) is int and one >= 0 for one in partitions)
        for partitions in given.values()
    )
    if not is_right or not given:
        raise SparkError('assign: it must be partitions by topic, such as {"orders": [0, 1]}')
    return dict(given)


def _no_partition(found: Iterable[Place], topic: str, partition: int) -> str:
    count = sum(name == topic for name, _ in found)
    return f"topic {topic} has no partition {partition}, but {count}: 0 to {count - 1}"

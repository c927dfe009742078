"""Who reads what in a share group: no partition without a reader, no reader without a partition, and few moves.

Partitions are spread as in any group. Members for whom none is left then read along with others: each one partition,
so chosen that readers are spread as evenly as partitions were.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain

from goqueue.machines.groups.assignors import Subscriber, uniform

SHARED = "simple"
"""The name under which groups describe it, as in Kafka."""

Partition = tuple[bytes, int]


def assign_shared(
    members: Mapping[str, Subscriber[bytes]], partitions: Mapping[bytes, int]
) -> dict[str, list[Partition]]:
    """Members with one subscription differ by one partition at most, and partitions of equal demand by one reader."""
    assigned = uniform(members, partitions)
    readers = Counter(partition for mine in assigned.values() for partition in mine)
    idle: dict[frozenset[bytes], list[str]] = {}
    for name, member in members.items():
        topics = member.topics.intersection(partitions)
        if topics and not assigned[name]:
            idle.setdefault(frozenset(topics), []).append(name)
    for topics in sorted(idle, key=sorted):
        pool = [(topic, number) for topic in sorted(topics) for number in range(partitions[topic])]
        if pool:
            had = {name: members[name].previous for name in idle[topics]}
            for name, partition in _read_along(had, pool, readers).items():
                assigned[name].append(partition)
    return assigned


def _read_along(
    had: Mapping[str, Collection[Partition]], pool: list[Partition], readers: Counter[Partition]
) -> dict[str, Partition]:
    """One partition of `pool` for each of these members; `readers` counts them from now on."""
    level, rest = _water_level([readers[each] for each in pool], len(had))
    within = set(pool)
    chosen: dict[str, Partition] = {}

    def keep(limit: int, count: int) -> None:
        """Up to `count` of them stay with a partition that has fewer than `limit` readers."""
        for name in had:
            if count and name not in chosen:
                kept = next((each for each in sorted(had[name]) if each in within and readers[each] < limit), None)
                if kept is not None:
                    chosen[name] = kept
                    readers[kept] += 1
                    count -= 1

    keep(level, len(had))
    keep(level + 1, rest)
    lacking = [each for each in pool for _ in range(level - readers[each])]
    places = chain(lacking, (each for each in pool if readers[each] == level))
    for name in had:
        if name not in chosen:
            chosen[name] = next(places)
            readers[chosen[name]] += 1
    return chosen


def _water_level(counts: list[int], more: int) -> tuple[int, int]:
    """How many readers each partition will have at least if `more` are spread, and how many are left above that."""
    level = min(counts)
    needed = 0
    while (next_needed := sum(max(0, level + 1 - count) for count in counts)) <= more:
        level, needed = level + 1, next_needed
    return level, more - needed

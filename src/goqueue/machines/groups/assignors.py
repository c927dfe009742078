"""Who reads what: assignors are functions from members and partition counts to assignments, so that the same question
has the same answer on every broker and after every restart.

The order of `members` is part of the question: ranges and turns are handed out in it, and it settles ties.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from goqueue.machines.groups.assignor_mixed import Mix

T = TypeVar("T", str, bytes)
"""How topics are named: by name or by id."""
K = TypeVar("K", bound=Hashable)


class Subscriber(NamedTuple, Generic[T]):
    topics: frozenset[T]
    previous: Collection[tuple[T, int]] = ()
    """What this member was assigned before."""


class Change(NamedTuple, Generic[K]):
    revoked: frozenset[K]
    added: frozenset[K]


def uniform(members: Mapping[str, Subscriber[T]], partitions: Mapping[T, int]) -> dict[str, list[tuple[T, int]]]:
    """Sticky: members with one subscription differ by one partition at most, and no partition moves without need."""
    existing = {member.topics: member.topics.intersection(partitions) for member in members.values()}
    topics_of = {name: existing[member.topics] for name, member in members.items()}
    interests = {topics for topics in existing.values() if topics}
    if len(interests) > 1:
        return Mix(topics_of, {name: member.previous for name, member in members.items()}, partitions).assign()
    assigned: dict[str, list[tuple[T, int]]] = {name: [] for name in members}
    if interests:
        equals = [name for name, topics in topics_of.items() if topics]
        (topics,) = interests
        counts = {topic: partitions[topic] for topic in sorted(topics)}
        assigned |= _spread(equals, members, counts)
    return assigned


def _spread(
    equals: list[str], members: Mapping[str, Subscriber[T]], counts: Mapping[T, int]
) -> dict[str, list[tuple[T, int]]]:
    """Among members that all subscribe to all topics of `counts`: each keeps what it had up to its share."""
    unclaimed = {(topic, partition) for topic, count in counts.items() for partition in range(count)}
    had: dict[str, list[tuple[T, int]]] = {}
    for name in equals:
        had[name] = sorted(unclaimed.intersection(members[name].previous))
        unclaimed.difference_update(had[name])

    total = sum(counts.values())
    share, larger_shares = divmod(total, len(equals))
    # Those who had more than the smaller share go first to a larger one: each of them keeps one partition more.
    by_need = sorted(equals, key=lambda name: len(had[name]) <= share)
    shares = {name: share + (place < larger_shares) for place, name in enumerate(by_need)}
    for name in equals:
        unclaimed.update(had[name][shares[name] :])
        del had[name][shares[name] :]

    free = iter(sorted(unclaimed))
    hungry = [name for name in equals if len(had[name]) < shares[name]]
    while hungry:  # by turns, so that the partitions of one topic come to different members
        for name in hungry:
            had[name].append(next(free))
        hungry = [name for name in hungry if len(had[name]) < shares[name]]
    for mine in had.values():
        mine.sort()
    return had


def assign_ranges(members: Mapping[str, Subscriber[T]], partitions: Mapping[T, int]) -> dict[str, list[tuple[T, int]]]:
    """Neighbouring partitions of each topic to each member: of topics alike, equal partitions come to one member."""
    assigned: dict[str, list[tuple[T, int]]] = {name: [] for name in members}
    for topic, subscribers in _subscribers(members, partitions).items():
        share, larger_shares = divmod(partitions[topic], len(subscribers))
        first = 0
        for place, name in enumerate(subscribers[: partitions[topic]]):  # the others get nothing
            end = first + share + (place < larger_shares)
            assigned[name].extend((topic, partition) for partition in range(first, end))
            first = end
    return assigned


def round_robin(members: Mapping[str, Subscriber[T]], partitions: Mapping[T, int]) -> dict[str, list[tuple[T, int]]]:
    """All partitions of all topics in turn, passing over members that do not subscribe."""
    names = list(members)
    place_of = {name: place for place, name in enumerate(names)}
    assigned: dict[str, list[tuple[T, int]]] = {name: [] for name in members}
    turn = 0
    for topic, subscribers in _subscribers(members, partitions).items():
        places = [place_of[name] for name in subscribers]
        at = bisect_left(places, turn)
        for partition in range(partitions[topic]):
            at %= len(places)
            assigned[names[places[at]]].append((topic, partition))
            turn = (places[at] + 1) % len(names)
            at += 1
    return assigned


def _subscribers(members: Mapping[str, Subscriber[T]], topics: Iterable[T]) -> dict[T, list[str]]:
    """Who subscribes to each topic, if anybody does."""
    found: dict[T, list[str]] = {topic: [] for topic in sorted(topics)}
    for name, member in members.items():
        for topic in member.topics.intersection(found):
            found[topic].append(name)
    return {topic: names for topic, names in found.items() if names}


def assignment_diff(before: Mapping[str, Iterable[K]], after: Mapping[str, Iterable[K]]) -> dict[str, Change[K]]:
    """What each member loses and gets; members for which nothing changes are left out."""
    changes = {}
    for name in sorted(before.keys() | after.keys()):
        old, new = frozenset(before.get(name, ())), frozenset(after.get(name, ()))
        if old != new:
            changes[name] = Change(old - new, new - old)
    return changes


Assignor = Callable[[Mapping[str, Subscriber[bytes]], Mapping[bytes, int]], dict[str, list[tuple[bytes, int]]]]

UNIFORM = "uniform"
ASSIGNORS: Mapping[str, Assignor] = {UNIFORM: uniform, "range": assign_ranges, "roundrobin": round_robin}
"""By the names that members ask for them with."""

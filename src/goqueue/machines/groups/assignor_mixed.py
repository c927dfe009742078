"""Balance where members subscribe to different topics: loads as equal as subscriptions allow, then few moves.

An assignment is as balanced as it can be exactly if no chain of moves (a takes from b, b takes from c, ...) leads from
a member to one that has two more. So: keep what was, give out what is free, follow chains until none is left.
"""

from collections.abc import Collection, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

T = TypeVar("T", str, bytes)


class Mix(Generic[T]):
    """Members are numbered, because ties between numbers are settled fast and always alike.

    Invariant: `_held` and `_holders` tell the same; `_loads` counts `_held`.
    Invariant: `_fullest[topic]` has an entry with its present load or more for each holder that may have to give. Who
    has ever taken needs none: only the emptiest take, and stay within one of the emptiest.
    """

    def __init__(
        self,
        topics_of: Mapping[str, frozenset[T]],
        previous: Mapping[str, Collection[tuple[T, int]]],
        partitions: Mapping[T, int],
    ) -> None:
        self._names = list(topics_of)
        self._topics: list[list[T]] = [sorted(topics_of[name]) for name in self._names]
        self._partitions: Mapping[T, int] = partitions
        self._loads = [0] * len(self._names)
        self._held: list[dict[T, list[int]]] = [{} for _ in self._names]
        self._subscribers: dict[T, list[int]] = {}
        for member, topics in enumerate(self._topics):
            for topic in topics:
                self._subscribers.setdefault(topic, []).append(member)
        self._holders: dict[T, set[int]] = {topic: set() for topic in self._subscribers}
        self._fullest: dict[T, list[tuple[int, int]]] = {topic: [] for topic in self._subscribers}
        self._home: dict[tuple[T, int], int] = {}
        """Who had a partition before and may keep it."""
        for member, name in enumerate(self._names):
            for topic, partition in previous[name]:
                if topic in topics_of[name] and 0 <= partition < partitions[topic]:
                    self._home.setdefault((topic, partition), member)

    def assign(self) -> dict[str, list[tuple[T, int]]]:
        for (topic, partition), member in self._home.items():
            self._put(topic, partition, member)
        self._give_out()
        self._balance()
        return {
            name: sorted((topic, partition) for topic, mine in held.items() for partition in mine)
            for name, held in zip(self._names, self._held)
        }

    def _put(self, topic: T, partition: int, member: int) -> None:
        self._held[member].setdefault(topic, []).append(partition)
        self._holders[topic].add(member)
        self._loads[member] += 1

    def _take(self, topic: T, partition: int, member: int) -> None:
        mine = self._held[member][topic]
        mine.remove(partition)
        if not mine:
            del self._held[member][topic]
            self._holders[topic].remove(member)
        self._loads[member] -= 1

    def _give_out(self) -> None:
        """Free partitions go to the emptiest of their subscribers, topics with little choice first."""
        for topic in sorted(self._subscribers, key=lambda topic: (len(self._subscribers[topic]), topic)):
            emptiest = [(self._loads[member], member) for member in self._subscribers[topic]]
            heapify(emptiest)
            for partition in range(self._partitions[topic]):
                if (topic, partition) not in self._home:
                    load, member = emptiest[0]
                    self._put(topic, partition, member)
                    heapreplace(emptiest, (load + 1, member))

    def _balance(self) -> None:
        for topic, members in self._holders.items():
            self._fullest[topic] = [(-self._loads[member], member) for member in members]
            heapify(self._fullest[topic])
        settled_topics: set[T] = set()
        settled_members: set[int] = set()
        emptiest = [(load, member) for member, load in enumerate(self._loads)]
        heapify(emptiest)
        while emptiest:
            load, member = heappop(emptiest)
            if member in settled_members or load != self._loads[member]:
                continue
            chain, seen_topics, seen_members = self._find_chain(member, settled_topics)
            if not chain:
                # Nobody reached is fuller by two than the emptiest of all, and whoever they can take from was reached.
                settled_topics |= seen_topics
                settled_members |= seen_members
                continue
            for taker, topic, giver in reversed(chain):
                self._move(topic, giver, taker)
            for end in (member, chain[-1][2]):
                heappush(emptiest, (self._loads[end], end))

    def _find_chain(self, start: int, settled: set[T]) -> tuple[list[tuple[int, T, int]], set[T], set[int]]:
        """The shortest chain of (taker, topic, giver) from `start` to a member with two partitions more, to the fullest
        if there are several; empty if there is none. And which topics and members were seen on the way.
        """
        came: dict[int, tuple[int, T]] = {}
        seen_topics: set[T] = set()
        seen_members = {start}
        level = [start]
        while level:
            fresh: list[tuple[T, int]] = []
            best: tuple[int, int, T, int] | None = None  # less its load, giver, topic, taker
            for taker in level:
                for topic in self._topics[taker]:
                    if topic in seen_topics or topic in settled:
                        continue
                    seen_topics.add(topic)
                    fresh.append((topic, taker))
                    full = self._fullest_holder(topic)
                    if full is not None and -full[0] >= self._loads[start] + 2 and (best is None or full < best[:2]):
                        best = (full[0], full[1], topic, taker)
            if best is not None:
                chain = [(best[3], best[2], best[1])]
                while chain[0][0] != start:
                    taker, topic = came[chain[0][0]]
                    chain.insert(0, (taker, topic, chain[0][0]))
                return chain, seen_topics, seen_members
            level = []
            for topic, taker in fresh:
                holders = sorted(self._holders[topic] - seen_members)
                seen_members.update(holders)
                came.update(dict.fromkeys(holders, (taker, topic)))
                level += holders
        return [], seen_topics, seen_members

    def _fullest_holder(self, topic: T) -> tuple[int, int] | None:
        """Less its load, and its number."""
        heap = self._fullest[topic]
        while heap:
            claim, member = heap[0]
            if member not in self._holders[topic]:
                heappop(heap)
            elif -claim != self._loads[member]:
                heapreplace(heap, (-self._loads[member], member))
            else:
                return claim, member
        return None

    def _move(self, topic: T, giver: int, taker: int) -> None:
        """Rather a partition that comes home, or one that is abroad already."""
        partition = max(
            self._held[giver][topic],
            key=lambda each: (self._home.get((topic, each)) == taker, self._home.get((topic, each)) != giver, each),
        )
        self._take(topic, partition, giver)
        self._put(topic, partition, taker)

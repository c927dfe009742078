"""Offsets that hold no new message: those of delayed messages, which had a place in the log before they became due, and
those kept free where a batch repeats what was published before. Whoever counts messages by offsets leaves them out.
"""

from collections import deque

from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas


class SecondPlaces:
    """They count when the high watermark has passed them, as what is published does: a counter must not fall."""

    def __init__(self) -> None:
        self._to_come: dict[tuple[str, int], deque[tuple[int, int]]] = {}
        """By partition, in the order of offsets: first and last."""
        self._passed: dict[str, int] = {}

    def add(self, replica: Replica, first: int, last: int) -> None:
        """Just appended."""
        self.look(replica)
        self._to_come.setdefault(replica.place, deque()).append((first, last))

    def look(self, replica: Replica) -> None:
        """Take note of what has been passed in one partition."""
        to_come = self._to_come.get(replica.place)
        if to_come is None:
            return
        high_watermark, topic = replica.high_watermark, replica.place[0]
        while to_come and to_come[0][0] < high_watermark:
            first, last = to_come.popleft()
            if last >= high_watermark:
                to_come.appendleft((high_watermark, last))
                last = high_watermark - 1
            self._passed[topic] = self._passed.get(topic, 0) + last + 1 - first
        if not to_come:
            del self._to_come[replica.place]

    def look_at_all(self, replicas: Replicas) -> None:
        for place in list(self._to_come):
            replica = replicas.get(*place)
            if replica is not None:
                self.look(replica)

    def passed(self, topic: str) -> int:
        """As of the last look at its partitions."""
        return self._passed.get(topic, 0)

    def forget_topic(self, topic: str) -> None:
        self._passed.pop(topic, None)
        for place in [place for place in self._to_come if place[0] == topic]:
            del self._to_come[place]

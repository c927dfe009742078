"""Fetches in the moments after this node has taken over partitions of what they read.

A client that is sent here asks on the connection on which its fetch of other partitions waits for records. Replies
leave in the order of the requests, and clients have one fetch under way: what has just moved would wait for that fetch,
and for the one behind it, half a second each. So those that wait are answered, and for a while none waits for long.
"""

from typing import TYPE_CHECKING

from goqueue.model.topics import Topic, TopicsChange
from goqueue.runtime.clock import Clock

if TYPE_CHECKING:
    from goqueue.broker.reading.fetch_session import FetchSession

RECENT_S = 0.5
"""By then clients have heard of the new leader, have connected to it and read from it."""
WAIT_MS_MAX = 50
"""How long a fetch waits until then."""
ANSWERED_PER_TURN = 50


class Takeovers:
    """Told of all fetches that wait, and of every change of topics."""

    def __init__(self, clock: Clock, node_id: int) -> None:
        self._clock = clock
        self._node_id = node_id
        self._waiting: dict[FetchSession, None] = {}
        self._until_s: dict[str, float] = {}
        """By topic."""

    def begin_wait(self, fetch: "FetchSession", wait_ms: int) -> int:
        """How long it may."""
        self._waiting[fetch] = None
        return min(wait_ms, WAIT_MS_MAX) if self._until_s and self._has_moved(fetch) else wait_ms

    def end_wait(self, fetch: "FetchSession") -> None:
        self._waiting.pop(fetch, None)

    def _has_moved(self, fetch: "FetchSession") -> bool:
        now_s = self._clock.monotonic_s()
        self._until_s = {topic: until_s for topic, until_s in self._until_s.items() if now_s < until_s}
        return fetch.reads(self._until_s)

    def topics_changed(self, change: TopicsChange) -> None:
        taken = [topic.name for topic in change.present if self._is_taken(topic, change.before.topics.get(topic.name))]
        if taken:
            self._until_s.update(dict.fromkeys(taken, self._clock.monotonic_s() + RECENT_S))
            self._answer([each for each in self._waiting if each.reads(taken)])

    def _is_taken(self, topic: Topic, before: Topic | None) -> bool:
        """Something of it was led by another node before."""
        if before is None or before.id != topic.id:
            return False
        pairs = ((topic.placements[number], before.placements[number]) for number in _moved(topic, before))
        return any(now.leader == self._node_id != was.leader for now, was in pairs)

    def _answer(self, fetches: "list[FetchSession]") -> None:
        """There may be thousands: others have their turn in between."""
        for fetch in fetches[:ANSWERED_PER_TURN]:
            fetch.hurry()
        if left := fetches[ANSWERED_PER_TURN:]:
            self._clock.call_soon(lambda: self._answer(left))


def _moved(topic: Topic, before: Topic) -> list[int]:
    return [number for number in topic.placed_anew(before) if number < len(before.placements)]

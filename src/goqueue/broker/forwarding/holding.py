"""How many records a consumer holds in partitions that other nodes lead: each of them counts its own, and tells when
that has changed.
"""

from collections.abc import Callable, Mapping

import msgspec

from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.others import ask_others
from goqueue.broker.queues.queues import Queues
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Stop
from goqueue.runtime.clock import Clock, Timer

NOW = -1
"""As the count that is known: the answer is wanted at once."""
ASK_MS_MAX = 2000
ANSWER_MS = 1000
"""For the way: whoever waits for a change is answered so much before it gives up."""


class HeldBy(msgspec.Struct, array_like=True):
    group_id: str
    consumer: str
    known: int
    """It is answered when it is another."""


HELD_BY: Call[HeldBy, int] = Call("held-by", HeldBy, int)


class SpreadHeld:
    """`Queues.held_elsewhere` in a cluster."""

    def __init__(self, forwarding: Forwarding, queues: Queues) -> None:
        self._forwarding = forwarding
        self._queues = queues
        queues.held_elsewhere = self
        HELD_BY.serve(forwarding, self._serve)

    def count(self, group_id: str, consumer: str, on_counts: Callable[[dict[int, int]], None]) -> None:
        """By node. One that does not answer is left out: nobody can settle there what it holds."""

        def told(replies: dict[int, int | GoQueueError]) -> None:
            on_counts({node_id: each for node_id, each in replies.items() if isinstance(each, int)})

        ask_others(self._forwarding, HELD_BY, HeldBy(group_id, consumer, NOW), told, ASK_MS_MAX)

    def watch(
        self, group_id: str, consumer: str, counts: Mapping[int, int], wait_ms: int, on_change: Callable[[], None]
    ) -> Stop:
        """Call once a count may be another, after so long at the latest. Returns how to stop it."""
        asked = [
            HELD_BY.ask(
                self._forwarding,
                node_id,
                HeldBy(group_id, consumer, count),
                lambda _reply: on_change(),
                wait_ms + ANSWER_MS,
            )
            for node_id, count in counts.items()
        ]

        def stop() -> None:
            for each in asked:
                each.cancel()

        return stop

    def _serve(self, wanted: HeldBy, timeout_ms: int, on_reply: OnDone[int]) -> Stop | None:
        watching = _Watching(self._queues, wanted, on_reply)
        watching.start(self._forwarding.clock, max(0, timeout_ms - ANSWER_MS))
        return watching.stop


class _Watching:
    """Another node waits until a consumer holds another number of records here."""

    def __init__(self, queues: Queues, wanted: HeldBy, on_reply: OnDone[int]) -> None:
        self._queues = queues
        self._wanted = wanted
        self._on_reply = on_reply
        self._timer: Timer | None = None

    def start(self, clock: Clock, wait_ms: int) -> None:
        self._timer = clock.call_after(wait_ms, self.give_up)
        self._queues.watch(self._wanted.group_id, self.look)
        self.look()

    def look(self) -> None:
        count = self._queues.held_by(self._wanted.group_id, self._wanted.consumer)
        if count != self._wanted.known:
            self.stop()
            self._on_reply(count)

    def give_up(self) -> None:
        self.stop()
        self._on_reply(self._wanted.known)

    def stop(self) -> None:
        if self._timer is not None:
            self._queues.unwatch(self._wanted.group_id, self.look)
            self._timer.cancel()
            self._timer = None

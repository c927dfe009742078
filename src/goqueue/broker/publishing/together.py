"""Sends of one turn of the event loop to one topic are one send: what a batch costs is paid once, however many clients
have brought a message each."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

from goqueue.records.messages import NewMessage, Sent
from goqueue.runtime.clock import Clock

MESSAGES_MAX = 1000
BYTES_MAX = 64 * 1024
"""Of one send or of several together: more is not worth waiting for the end of the turn."""

OnSent: TypeAlias = Callable[[list[Sent]], None]
SendAll: TypeAlias = Callable[[str, Sequence[NewMessage], OnSent, float, int], None]
"""To a topic; when the first of so many requests was taken up."""


class Together:
    def __init__(self, clock: Clock, send_all: SendAll) -> None:
        self._clock = clock
        self._send_all = send_all
        self._gathered: dict[str, _Gathered] = {}

    def send(self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, *, is_alone: bool) -> None:
        """At the end of this turn; `is_alone`, and if it is much: now, behind what came before it."""
        gathered = self._gathered.get(topic)
        size = sum(len(message.value or b"") for message in messages)
        if gathered is None:
            started_s = self._clock.monotonic_s()
            if is_alone or size > BYTES_MAX:
                self._send_all(topic, messages, on_sent, started_s, 1)
                return
            self._clock.call_soon(partial(self._turn_ended, topic))
            gathered = self._gathered[topic] = _Gathered([], started_s, [0, 0])
        gathered.sends.append((messages, on_sent))
        gathered.counts[0] += len(messages)
        gathered.counts[1] += size
        if is_alone or gathered.counts[0] > MESSAGES_MAX or gathered.counts[1] > BYTES_MAX:
            self._finish(topic, self._gathered.pop(topic))

    def _turn_ended(self, topic: str) -> None:
        """Each topic by itself: a fault with one of them touches no other."""
        gathered = self._gathered.pop(topic, None)
        if gathered is not None:
            self._finish(topic, gathered)

    def _finish(self, topic: str, gathered: "_Gathered") -> None:
        sends = gathered.sends
        if len(sends) == 1:
            self._send_all(topic, *sends[0], gathered.started_s, 1)
            return

        def all_sent(sent: list[Sent]) -> None:
            start = 0
            for messages, on_sent in sends:
                end = start + len(messages)
                on_sent(sent[start:end])
                start = end

        messages = list(chain.from_iterable(each for each, _ in sends))
        self._send_all(topic, messages, all_sent, gathered.started_s, len(sends))


class _Gathered(NamedTuple):
    sends: list[tuple[Sequence[NewMessage], OnSent]]
    started_s: float
    counts: list[int]
    """Messages, and their bytes."""

"""Sends of one turn of the event loop to one topic share batches: what a batch costs is paid once, however many clients
have brought a message each."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from goqueue.records.messages import NewMessage, Sent
from goqueue.runtime.clock import Clock

MESSAGES_MAX = 1000
BYTES_MAX = 64 * 1024
"""Of one send or of several together: more is not worth waiting for the end of the turn."""

OnSent: TypeAlias = Callable[[list[Sent]], None]
Send: TypeAlias = tuple[Sequence[NewMessage], OnSent]
SendAll: TypeAlias = Callable[[str, Sequence[Send], float], None]
"""To a topic; when the first of them was taken up."""


class Together:
    def __init__(self, clock: Clock, send_all: SendAll) -> None:
        self._clock = clock
        self._send_all = send_all
        self._gathered: dict[str, _Gathered] = {}

    def send(self, topic: str, messages: Sequence[NewMessage], on_sent: OnSent, *, is_alone: bool) -> None:
        """At the end of this turn; `is_alone`, and if it is much: now and by itself, behind what came before it."""
        size = sum(len(message.value or b"") for message in messages)
        if is_alone or size > BYTES_MAX:
            self._turn_ended(topic)
            self._send_all(topic, [(messages, on_sent)], self._clock.monotonic_s())
            return
        gathered = self._gathered.get(topic)
        if gathered is None:
            self._clock.call_soon(partial(self._turn_ended, topic))
            gathered = self._gathered[topic] = _Gathered([], self._clock.monotonic_s(), [0, 0])
        gathered.sends.append((messages, on_sent))
        gathered.counts[0] += len(messages)
        gathered.counts[1] += size
        if gathered.counts[0] > MESSAGES_MAX or gathered.counts[1] > BYTES_MAX:
            self._turn_ended(topic)

    def _turn_ended(self, topic: str) -> None:
        """Each topic by itself: a fault with one of them touches no other."""
        gathered = self._gathered.pop(topic, None)
        if gathered is not None:
            self._send_all(topic, gathered.sends, gathered.started_s)


class _Gathered(NamedTuple):
    sends: list[Send]
    started_s: float
    counts: list[int]
    """Messages, and their bytes."""

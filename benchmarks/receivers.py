"""Consumers of a queue that receive and acknowledge, whatever protocol they speak. Each has a connection and one
request under way, which acknowledges what the answer before brought. One loop drives all of them, so the broker has
work whenever it has answered one.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

WARM_UP_SHARE = 0.1
"""Of all messages: those of the beginning, and as many at the end, where consumers wait in vain, are not measured."""


class Shared(NamedTuple):
    """What the middle of a load took."""

    messages: int
    requests: int
    seconds: float
    broker_cpu_s: float
    client_cpu_s: float
    request_bytes: int
    reply_bytes: int
    """Of one request, on average."""

    @property
    def cpu_us(self) -> float:
        return self.broker_cpu_s * 1e6 / self.messages

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    @property
    def client_busy(self) -> float:
        """The share of a core that the load generator took. Close to 1, the rate is its own limit."""
        return self.client_cpu_s / self.seconds


class Counted(Protocol):
    sent_bytes: int
    received_bytes: int


class Receiver(Protocol):
    """Invariant: one request is under way from when it is made to `close`."""

    group: str
    requests: int

    @property
    def link(self) -> Counted:
        """Its connection."""

    def take(self) -> tuple[Iterable[int], int]:
        """The numbers of the messages that have come, and how many earlier ones are acknowledged since."""

    def go_on(self) -> None:
        """Acknowledge what was taken, and ask for more."""

    def close(self) -> int:
        """Acknowledges the rest: so many messages."""


def receive_all(everybody: Sequence[Receiver], count: int, cpu_s: Callable[[], float]) -> Shared:
    """Each of their groups gets and acknowledges `count` messages, each of them once."""
    groups = {receiver.group: set[int]() for receiver in everybody}
    each, count = count, count * len(groups)
    taken = acknowledged = 0
    marks: list[_Mark] = []
    while taken < count:
        for receiver in everybody:
            seen = groups[receiver.group]
            if len(seen) == each:
                continue  # nothing comes any more: others would wait for as long as its request does
            numbers, more = receiver.take()
            before = len(seen)
            came = tuple(numbers)
            seen.update(came)
            assert len(seen) == before + len(came), f"a message of {came} came twice"
            taken += len(came)
            acknowledged += more
            receiver.go_on()
            if len(marks) < 2 and acknowledged >= count * (1 - WARM_UP_SHARE if marks else WARM_UP_SHARE):
                marks.append(_Mark.now(everybody, acknowledged, cpu_s))
    for receiver in everybody:
        numbers, more = receiver.take()
        assert not tuple(numbers), "more came than was sent"
        acknowledged += more + receiver.close()
    assert acknowledged == count, f"{acknowledged} of {count} acknowledged"
    assert marks, "too few messages to measure anything"
    if len(marks) == 1:
        marks.append(_Mark.now(everybody, acknowledged, cpu_s))
    return _between(*marks)


class _Mark(NamedTuple):
    seconds: float
    cpu_s: float
    client_cpu_s: float
    acknowledged: int
    requests: int
    sent_bytes: int
    received_bytes: int

    @classmethod
    def now(cls, everybody: Sequence[Receiver], acknowledged: int, cpu_s: Callable[[], float]) -> "_Mark":
        return cls(
            time.perf_counter(),
            cpu_s(),
            time.process_time(),
            acknowledged,
            sum(receiver.requests for receiver in everybody),
            sum(receiver.link.sent_bytes for receiver in everybody),
            sum(receiver.link.received_bytes for receiver in everybody),
        )


def _between(first: _Mark, last: _Mark) -> Shared:
    requests = max(1, last.requests - first.requests)
    return Shared(
        last.acknowledged - first.acknowledged,
        requests,
        last.seconds - first.seconds,
        last.cpu_s - first.cpu_s,
        last.client_cpu_s - first.client_cpu_s,
        (last.sent_bytes - first.sent_bytes) // requests,
        (last.received_bytes - first.received_bytes) // requests,
    )

"""Who waits for the high watermark, under one role. A change of role fails them all first: what they wait for may have
been done or not, and the watermark of the next reign says nothing about it.
"""

from collections import deque
from collections.abc import Callable, Iterator

Call = Callable[[], None]


class Waiters:
    """Invariant: offsets never fall, since each is the end of the log when it was asked."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Call]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def is_first(self, offset: int) -> bool:
        """Nobody has to be called before one who waits for `offset`."""
        return not self._waiting or offset < self._waiting[0][0]

    def add(self, offset: int, call: Call) -> None:
        waiting = self._waiting
        waiting.append((max(offset, waiting[-1][0]) if waiting else offset, call))

    def reached(self, high_watermark: int) -> Iterator[Call]:
        waiting = self._waiting
        while waiting and waiting[0][0] <= high_watermark:
            yield waiting.popleft()[1]

    def all(self) -> Iterator[Call]:
        while self._waiting:
            yield self._waiting.popleft()[1]

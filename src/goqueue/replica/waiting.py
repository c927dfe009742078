"""Who waits for the high watermark, under one role. A change of role fails them all first: what they wait for may have
been done or not, and the watermark of the next reign says nothing about it.
"""

from collections import deque
from collections.abc import Callable, Iterator

Call = Callable[[], None]


class Waiters(deque[tuple[int, Call]]):
    """A queue, so that asking whether anybody waits costs nothing.
    Invariant: offsets never fall, since each is the end of the log when it was asked.
    """

    __slots__ = ()

    def is_first(self, offset: int) -> bool:
        """Nobody has to be called before one who waits for `offset`."""
        return not self or offset < self[0][0]

    def add(self, offset: int, call: Call) -> None:
        self.append((max(offset, self[-1][0]) if self else offset, call))

    def reached(self, high_watermark: int) -> Iterator[Call]:
        while self and self[0][0] <= high_watermark:
            yield self.popleft()[1]

    def all(self) -> Iterator[Call]:
        while self:
            yield self.popleft()[1]

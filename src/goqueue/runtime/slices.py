"""Work that many do bit by bit: one slice of it in each turn of the loop, whoever it belongs to. A node that starts
builds a machine for each ledger that it follows; with a slice of each in every turn, all others would wait for all.
"""

from collections import deque
from collections.abc import Callable


class Slices:
    """Of one node. First come, first served."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: deque[Callable[[], None]] = deque()

    def later(self, call: Callable[[], None]) -> None:
        """Call it in a turn that has no other slice. It asks again for its next one."""
        self._waiting.append(call)
        if len(self._waiting) == 1:
            self._call_soon(self._turn)

    def _turn(self) -> None:
        call = self._waiting.popleft()
        if self._waiting:
            self._call_soon(self._turn)
        call()

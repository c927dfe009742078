"""What is due when. Most leases are settled long before they end, so a time that no longer counts stays in the heap
until it comes, or until such times are the most of it.
"""

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)

_OUTDATED_MIN = 1024


class Deadlines(Generic[Item]):
    """Invariant: every noted time is in the heap; whatever else is there is outdated. Items must have an order."""

    def __init__(self) -> None:
        self._noted: dict[Item, int] = {}
        self._heap: list[tuple[int, Any]] = []

    def note(self, item: Item, due_ms: int) -> None:
        """It is due then, if not earlier."""
        noted_ms = self._noted.get(item)
        if noted_ms is not None and noted_ms <= due_ms:
            return
        self._noted[item] = due_ms
        heap = self._heap
        if len(heap) > _OUTDATED_MIN + 2 * len(self._noted):
            heap[:] = [(due_ms, item) for item, due_ms in self._noted.items()]
            heapify(heap)
        else:
            heappush(heap, (due_ms, item))

    def drop(self, item: Item) -> None:
        """It is not due any more."""
        self._noted.pop(item, None)

    def earliest_ms(self) -> int | None:
        """Perhaps of something that is not due any more."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int, count_max: int) -> list[Item]:
        """Some of what is due, the earliest first as far as there are not too many."""
        found: list[tuple[int, Item]] = []
        heap, places = self._heap, [0]
        while places and len(found) < count_max:
            place = places.pop()
            if place < len(heap) and heap[place][0] <= now_ms:
                due_ms, item = heap[place]
                if self._noted.get(item) == due_ms:
                    found.append((due_ms, item))
                places += (2 * place + 2, 2 * place + 1)
        found.sort()
        return list(dict.fromkeys(item for _, item in found))

    def move(self, when_ms: Callable[[Item, int], int]) -> None:
        """Everything is due at another time: the clock was set."""
        self._noted = {item: when_ms(item, due_ms) for item, due_ms in self._noted.items()}
        self._heap = [(due_ms, item) for item, due_ms in self._noted.items()]
        heapify(self._heap)

    def passed(self) -> None:
        """What was due has been dropped or noted anew: forget the times at the top that no longer count."""
        heap = self._heap
        while heap and self._noted.get(heap[0][1]) != heap[0][0]:
            heappop(heap)

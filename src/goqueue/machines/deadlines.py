"""When something is due for one of many names: cheap to find, however many there are and however often it moves."""

from heapq import heapify, heappop, heappush

_STALE_MIN = 64


class Deadlines:
    """At most one deadline per name."""

    __slots__ = ("_due_ms", "_heap")

    def __init__(self) -> None:
        self._due_ms: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        """Invariant: holds every pair of `_due_ms`, and less than about as many again that are out of date."""

    def set(self, name: str, due_ms: int) -> None:
        if self._due_ms.get(name) == due_ms:
            return
        self._due_ms[name] = due_ms
        heappush(self._heap, (due_ms, name))
        if len(self._heap) > 2 * len(self._due_ms) + _STALE_MIN:
            self._heap = [(due, each) for each, due in self._due_ms.items()]
            heapify(self._heap)

    def get(self, name: str) -> int | None:
        return self._due_ms.get(name)

    def clear(self, name: str) -> None:
        self._due_ms.pop(name, None)

    def earliest_ms(self) -> int | None:
        heap = self._heap
        while heap and self._due_ms.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now_ms: int, limit: int) -> list[str]:
        """Names whose time has come, at most `limit`: reads only, so it walks the top of the heap."""
        found: dict[str, None] = {}
        places = [0]
        while places and len(found) < limit:
            place = places.pop()
            if place < len(self._heap) and self._heap[place][0] <= now_ms:
                due_ms, name = self._heap[place]
                if self._due_ms.get(name) == due_ms:
                    found[name] = None
                places += [2 * place + 2, 2 * place + 1]
        return list(found)

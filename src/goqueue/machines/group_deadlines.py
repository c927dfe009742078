"""Which group's deadline comes first: heartbeats move deadlines away all the time, so that is noticed only when the
time noted for a group has come.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush


class GroupDeadlines:
    """Invariant: every group with a deadline is noted, for that time or an earlier one; a group that is gone is not.
    Invariant: each noted time is in the heap; whatever else is there is outdated and costs one needless look.
    """

    def __init__(self, actual_ms: Callable[[str], int | None]) -> None:
        self._actual_ms = actual_ms
        self._noted: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def note(self, group_id: str) -> None:
        """Something happened in the group that may have brought a deadline nearer."""
        deadline_ms = self._actual_ms(group_id)
        if deadline_ms is not None and deadline_ms < self._noted.get(group_id, deadline_ms + 1):
            self._noted[group_id] = deadline_ms
            heappush(self._heap, (deadline_ms, group_id))

    def drop(self, group_id: str) -> None:
        """The group is gone."""
        self._noted.pop(group_id, None)

    def earliest_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[str]:
        """Groups whose time may have come."""
        return (group_id for group_id, noted_ms in self._noted.items() if noted_ms <= now_ms)

    def pass_until(self, now_ms: int) -> None:
        """The groups that were due have been looked at."""
        come: set[str] = set()
        while self._heap and self._heap[0][0] <= now_ms:
            noted_ms, group_id = heappop(self._heap)
            if self._noted.get(group_id) == noted_ms:
                del self._noted[group_id]
                come.add(group_id)
        for group_id in sorted(come):
            self.note(group_id)

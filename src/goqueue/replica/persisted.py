"""Telling what the high watermark has passed, each offset once; markers are nobody's records and are left out."""

from collections import deque
from collections.abc import Callable

OnPersisted = Callable[[int, int, int | None], None]
"""First and last offset, and when: None means now."""


class Persisted:
    def __init__(self, from_offset: int) -> None:
        self.on_persisted: OnPersisted | None = None
        self._told_offset = from_offset
        self._markers: deque[int] = deque()
        """Offsets of markers that were not passed yet."""

    def note_marker(self, offset: int) -> None:
        self._markers.append(offset)

    def tell(self, high_watermark: int, at_ms: int | None) -> None:
        tell, first = self.on_persisted, self._told_offset
        if high_watermark <= first:
            return
        self._told_offset = high_watermark
        while self._markers and self._markers[0] < high_watermark:
            marker = self._markers.popleft()
            if tell is not None and first < marker:
                tell(first, marker - 1, at_ms)
            first = marker + 1
        if tell is not None and first < high_watermark:
            tell(first, high_watermark - 1, at_ms)

    def cut(self, end_offset: int) -> None:
        """Nothing stands at or behind `end_offset` any more."""
        self._told_offset = min(self._told_offset, end_offset)
        while self._markers and self._markers[-1] >= end_offset:
            self._markers.pop()

"""A dict by name that gives its names in pages, sorted: whoever lists must not sort all of them for every page."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

V = TypeVar("V")

_CHUNK_MAX = 1024


class NameTable(dict[str, V], Generic[V]):
    """Invariant: `_chunks` holds exactly the keys, sorted, in lists that are not empty and have at most _CHUNK_MAX
    names each. So to add or remove one costs the same among many. Changed by the methods below alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._chunks: list[list[str]] = []

    def __setitem__(self, name: str, value: V) -> None:
        if name not in self:
            self._add(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._remove(name)

    def pop(self, name: str, *default: Any) -> Any:
        if name in self:
            self._remove(name)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: V) -> V:
        if name not in self:
            self[name] = default
        return self[name]

    def page(self, after: str | None, count: int) -> list[str]:
        """The next `count` names behind `after`; None: from the first."""
        number = 0 if after is None else self._number(after)
        first = 0 if after is None or not self._chunks else bisect_right(self._chunks[number], after)
        found: list[str] = []
        while len(found) < count and number < len(self._chunks):
            found += self._chunks[number][first : first + count - len(found)]
            number, first = number + 1, 0
        return found

    def _number(self, name: str) -> int:
        """Of the chunk that a name belongs to."""
        return max(0, bisect_right(self._chunks, name, key=lambda chunk: chunk[0]) - 1)

    def _add(self, name: str) -> None:
        if not self._chunks:
            self._chunks.append([name])
            return
        number = self._number(name)
        chunk = self._chunks[number]
        chunk.insert(bisect_left(chunk, name), name)
        if len(chunk) > _CHUNK_MAX:
            half = len(chunk) // 2
            self._chunks[number : number + 1] = [chunk[:half], chunk[half:]]

    def _remove(self, name: str) -> None:
        number = self._number(name)
        chunk = self._chunks[number]
        del chunk[bisect_left(chunk, name)]
        if not chunk:
            del self._chunks[number]


def page_of_all(tables: Iterable[NameTable[Any]], after: str | None, count: int) -> list[str]:
    """As `page`, of the names in any of these tables, each once."""
    return sorted({name for table in tables for name in table.page(after, count)})[:count]

"""Changes that lie over a dict and leave it as it is: a decision costs what it changes, however large the state is."""

from collections.abc import Iterator, MutableMapping
from typing import Any, Final, TypeVar

V = TypeVar("V")

_GONE: Final = object()


class Overlay(MutableMapping[str, V]):
    """Reads like the dict with the changes made. Its order is the dict's, then that of what is new; a key that goes and
    comes back has its old place.
    """

    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, base: dict[str, V]) -> None:
        self._base = base
        self._changes: dict[str, Any] = {}
        self._size = len(base)

    def __getitem__(self, key: str) -> V:
        if key not in self._changes:
            return self._base[key]
        value: V = self._changes[key]
        if value is _GONE:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: V) -> None:
        self._size += key not in self
        self._changes[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._size -= 1
        if key in self._base:
            self._changes[key] = _GONE
        else:
            del self._changes[key]

    def __contains__(self, key: object) -> bool:
        return self._changes[key] is not _GONE if key in self._changes else key in self._base

    def __iter__(self) -> Iterator[str]:
        changes, base = self._changes, self._base
        yield from (key for key in base if changes.get(key) is not _GONE)
        yield from (key for key in changes if key not in base)

    def __len__(self) -> int:
        return self._size

    def changed(self) -> Iterator[V]:
        """The values that were set."""
        return (value for value in self._changes.values() if value is not _GONE)

    def merge(self) -> dict[str, V]:
        """Make the changes in the dict itself, and give that."""
        for key, value in self._changes.items():
            if value is _GONE:
                del self._base[key]
            else:
                self._base[key] = value
        return self._base

"""Topics that keep the order of a key over delays (`delay.order = hold_key`): a record must not overtake an earlier
one of its key that still waits for its time, so it waits with it.
"""

from collections.abc import Callable, Iterable

from goqueue.records.wishes import hash_key

Waiting = Callable[[tuple[str, int]], Iterable[tuple[bytes | None, int]]]
"""Key and due time of all that waits in a partition."""


class HeldKeys:
    """Built from what waits when a partition is first asked about, and again after anything but a firing changed it."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._due_ms: dict[tuple[str, int], dict[int, int]] = {}
        """By partition: hash of the key -> when the last record of it is due."""
        self._held: dict[tuple[str, int], int] = {}
        """By partition: how often a key was held since `_changes`."""
        self._changes = 0

    def revision(self, place: tuple[str, int]) -> tuple[int, int]:
        """Another one: what `due_ms` said may not hold any more."""
        return self._changes, self._held.get(place, 0)

    def of(self, place: tuple[str, int]) -> dict[int, int]:
        held = self._due_ms.get(place)
        if held is None:
            held = self._due_ms[place] = {}
            for key, due_ms in self._waiting(place):
                if key is not None:
                    hashed = hash_key(key)
                    held[hashed] = max(due_ms, held.get(hashed, due_ms))
        return held

    def due_ms(self, place: tuple[str, int], key: bytes, own_due_ms: int, now_ms: int) -> int:
        """When a new record may be published: its own time, or that of the last one before it. Until that one is in
        the log it is still to be waited for, even if its time has come. Negative: nothing holds it.
        """
        held, hashed = self.of(place), hash_key(key)
        last_ms = held.get(hashed)
        if last_ms is not None:
            own_due_ms = max(own_due_ms, last_ms, now_ms)
        if last_ms is not None or own_due_ms > now_ms:
            held[hashed] = own_due_ms
            self._held[place] = self._held.get(place, 0) + 1
        return own_due_ms

    def fired(self, place: tuple[str, int], records: Iterable[tuple[bytes | None, int]]) -> None:
        """These keys and due times are in the log."""
        held = self._due_ms.get(place)
        if not held:
            return
        for key, due_ms in records:
            if key is not None and held.get(hash_key(key), due_ms + 1) <= due_ms:
                del held[hash_key(key)]

    def changed(self, place: tuple[str, int]) -> None:
        self._due_ms.pop(place, None)
        self._held.pop(place, None)
        self._changes += 1

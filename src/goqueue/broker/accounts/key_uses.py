"""When each API key was last used, as far as this node has seen since it was started: what nobody uses can go. It is
not stored: a fact for each use would be a write to the metadata store for each of them.
"""

from collections.abc import Container

KEPT_MAX = 20_000
"""More than there can be keys: those that were deleted go then."""


class KeyUses:
    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self._last_ms: dict[str, int] = {}

    def note(self, key_id: str, now_ms: int, known: Container[str]) -> None:
        if len(self._last_ms) >= KEPT_MAX:
            self._last_ms = {each: at_ms for each, at_ms in self._last_ms.items() if each in known}
        self._last_ms[key_id] = now_ms

    def last_ms(self, key_id: str) -> int | None:
        """None: not since then."""
        return self._last_ms.get(key_id)

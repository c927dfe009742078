"""The life of a coordinator: where it stands, and how often it may begin anew.

A machine that met a fault of ours is thrown away and read from its ledger again. If that helps, nobody but those who
waited has noticed. If it does not, each further try waits longer than the one before it, so that a fault which comes
back at once costs the node little.
"""

from enum import StrEnum

TRIES_AT_ONCE = 2
"""So many times in a row it is loaded again at once; the next fault makes it stay failed for a while."""
BACKOFF_MS_MIN = 5_000
BACKOFF_MS_MAX = 5 * 60_000
SOUND_MS = 60_000
"""Who was active for so long has recovered: its earlier faults count no more."""
UNDECIDED_MAX = 3
"""So many commands that could not be decided within `SOUND_MS` may be the fault of the state, and not of whoever sent
them: then it is read anew."""
UNDECIDED_REST_MS = 10 * 60_000
"""But not again within this time: else a client with an odd command could keep everybody waiting."""


class Life(StrEnum):
    UNLOADED = "unloaded"
    """It has no machine: it was not loaded yet, or its ledger is led elsewhere, or the node stops."""
    LOADING = "loading"
    """It reads its ledger. Commands wait for a short time, then they are refused."""
    ACTIVE = "active"
    FAILED = "failed"
    """Out of service: its ledger failed, or it met faults again and again and waits before the next try."""


class Faults:
    """Of one coordinator."""

    def __init__(self) -> None:
        self.count = 0
        """Since the start of the node."""
        self._in_a_row = 0
        self._active_ms = 0
        self._undecided_ms: list[int] = []
        self._reread_ms: int | None = None

    def became_active(self, now_ms: int) -> None:
        self._active_ms = now_ms

    def backoff_ms(self, now_ms: int) -> int:
        """A fault made the machine useless: how long to wait before the ledger is read again."""
        if now_ms - self._active_ms >= SOUND_MS:
            self._in_a_row = 0
        self._in_a_row += 1
        if self._in_a_row <= TRIES_AT_ONCE:
            return 0
        return int(min(BACKOFF_MS_MIN * 2 ** min(self._in_a_row - TRIES_AT_ONCE - 1, 10), BACKOFF_MS_MAX))

    def is_reread_due(self, now_ms: int) -> bool:
        """A command could not be decided. `decide` only reads, so that the state is what it was: it is believed until
        there are more of them."""
        recent = [each for each in self._undecided_ms if now_ms - each < SOUND_MS]
        self._undecided_ms = [*recent, now_ms][-UNDECIDED_MAX:]
        if len(self._undecided_ms) < UNDECIDED_MAX:
            return False
        if self._reread_ms is not None and now_ms - self._reread_ms < UNDECIDED_REST_MS:
            return False
        self._undecided_ms, self._reread_ms = [], now_ms
        return True

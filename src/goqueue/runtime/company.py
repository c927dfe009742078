"""Whether to wait a moment for more before a sync.

Consumers that receive and acknowledge one record at a time come back as soon as they were told. While the disk syncs
for some of them, the acknowledgements of the others come in, and so each sync serves half of them, for ever. Who waits
until those of the last sync are back needs half the syncs, and nobody waits longer for it: a sync that was just missed
costs more than the wait.
"""

LINGER_MS = 1.0
PAUSE_MAX = 64


class Company:
    """Whoever stored something together is expected to come back together."""

    __slots__ = ("_expected", "_pause", "_pauses_left")

    def __init__(self) -> None:
        self._expected = 0
        self._pause = 1
        self._pauses_left = 0
        """So many syncs more that nobody waits for."""

    def stored(self, count: int) -> None:
        """So many share a sync that begins; 0: what they stored needs none."""
        self._expected = count

    def sync_ended(self, here: int) -> None:
        """So many came meanwhile, and those whom it has served may follow."""
        self._expected += here

    def is_here(self, here: int) -> bool:
        return here >= self._expected

    def is_awaited(self, here: int) -> bool:
        """Whether to wait for more than those who are here."""
        if here >= self._expected:
            return False
        if self._pauses_left:
            self._pauses_left -= 1
            return False
        return True

    def came(self) -> None:
        """All who were expected."""
        self._pause = 1

    def waited_in_vain(self) -> None:
        """They do something else in between: the next syncs are not waited for, twice as many each time."""
        self._expected = 0
        self._pauses_left = self._pause
        self._pause = min(2 * self._pause, PAUSE_MAX)

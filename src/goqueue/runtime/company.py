"""Whether to wait a moment for more before a sync.

Consumers that receive and acknowledge one record at a time come back as soon as they were told. While the disk syncs
for some of them, the acknowledgements of the others come in, and so each sync serves half of them, for ever. Who waits
until those of the last sync are back needs half the syncs, and hardly anybody waits longer for it: a sync that was just
missed costs about as much as the wait.
"""

LINGER_MS = 1.0
LINGERS_MAX = 2
"""In a row, as long as some come: more would save syncs still, and cost consumers that work for a few ms their pace."""
PAUSE_MAX = 64


class Company:
    """Whoever stored something together is expected to come back together."""

    __slots__ = ("_expected", "_here", "_lingers", "_pause", "_pauses_left")

    def __init__(self) -> None:
        self._expected = 0
        self._here = 0
        """So many were there when the last wait began."""
        self._lingers = 0
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
        self._here, self._lingers = here, 1
        return True

    def still_comes(self, here: int) -> bool:
        """Whether to wait once more: some came in the time that is over. A client that is served one connection after
        the other needs longer than that to come back on eight.
        """
        if here == self._here or self._lingers == LINGERS_MAX:
            return False
        self._here = here
        self._lingers += 1
        return True

    def came(self) -> None:
        """All who were expected."""
        self._pause = 1

    def waited_in_vain(self) -> None:
        """They do something else in between: the next syncs are not waited for, twice as many each time."""
        self._expected = 0
        self._pauses_left = self._pause
        self._pause = min(2 * self._pause, PAUSE_MAX)

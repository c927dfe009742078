"""Is there room on the disk for what is published? Told in the log once when appends begin to be refused and once when
they are taken again, not for every append; and to whoever asks for the health of the node.
"""

from collections.abc import Callable

from goqueue.model.errors import DiskFull
from goqueue.storage.options import MIB
from goqueue.telemetry.logs import get_logger

ROOM_BYTES_MIN = MIB + 12
"""A disk that has no room for a batch of the usual limit, beside what is held in reserve, is full."""

events = get_logger("storage")


class DiskRoom:
    def __init__(self) -> None:
        self.refusal = ""
        """Why appends are refused, if they are."""
        self.refused_appends = 0
        self._is_seen = False
        """Free space shows it. Else the disk said so itself, for reasons of its own: a quota, no inodes."""

    def refuse(self, reason: str, room_bytes: Callable[[], int]) -> DiskFull:
        """An append found no room. `room_bytes` tells how much is free beside what is held in reserve. Returns what to
        raise."""
        self.refused_appends += 1
        self._begin(reason, is_seen=_is_low(room_bytes))
        return DiskFull(reason)

    def grant(self, room_bytes: Callable[[], int]) -> None:
        """Room was allocated. A little of it does not end what would begin again with the next large append."""
        if self.refusal and not _is_low(room_bytes):
            self._end()

    def look(self, free_bytes: int, reserve_bytes: int) -> None:
        """To be called now and then, so that it is told though nobody appends."""
        if free_bytes - reserve_bytes < ROOM_BYTES_MIN:
            words = f"{free_bytes} bytes are free, and {reserve_bytes} must stay so: what would take more is refused"
            self._begin(words, is_seen=True)
        elif self.refusal and self._is_seen:
            self._end()

    def _begin(self, reason: str, *, is_seen: bool) -> None:
        if not self.refusal:
            events.error("disk full, appends are refused", reason=reason)
        self.refusal, self._is_seen = reason, is_seen

    def _end(self) -> None:
        events.warning("disk has room again, appends are taken", refused_appends=self.refused_appends)
        self.refusal = ""


def _is_low(room_bytes: Callable[[], int]) -> bool:
    try:
        return room_bytes() < ROOM_BYTES_MIN
    except OSError:
        return False  # nobody can tell

"""One partition that a consumer reads: how far it has fetched, how far its user has come."""

from collections import deque
from typing import TypeAlias

from goqueue.records.batch import Batch

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""

NOT_KNOWN = -1


class Assigned:
    __slots__ = (
        "committed",
        "error",
        "fetch_offset",
        "held",
        "high_watermark",
        "is_away",
        "is_paused",
        "is_resetting",
        "partition",
        "place",
        "position",
        "refusals",
        "topic",
        "unread",
        "version",
    )

    def __init__(self, place: Place, offset: int) -> None:
        self.place = place
        self.topic, self.partition = place
        self.fetch_offset = offset
        """What is asked for next."""
        self.position = offset
        """What its user gets next."""
        self.committed = NOT_KNOWN
        self.high_watermark = NOT_KNOWN
        self.is_paused = False
        self.is_resetting = False
        """The offset is gone, and another is being looked for."""
        self.is_away = False
        """Its leader has refused it, and another is being looked for."""
        self.refusals = 0
        """One after another."""
        self.version = 0
        """Changes with every jump: what was fetched before belongs to an older one."""
        self.held: deque[Batch] = deque()
        """Fetched, and kept back because it is paused."""
        self.unread = 0
        """Batches that are fetched and not wholly delivered yet."""
        self.error: Exception | None = None
        """What its user has still to hear."""

    def jump(self, offset: int) -> None:
        self.version += 1
        self.fetch_offset = self.position = offset
        self.held.clear()
        self.unread = 0
        self.is_resetting = False
        self.error = None

    def read_all(self) -> None:
        """All that was fetched is delivered: what is left up to there are marks of transactions and empty places."""
        if not self.unread:
            self.position = max(self.position, self.fetch_offset)

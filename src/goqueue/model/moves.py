"""Moves of dead letters, as they are shown."""

from dataclasses import dataclass
from enum import StrEnum

from goqueue.model.errors import GoQueueError


class MoveStatus(StrEnum):
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass
class Move:
    """One of them, to be looked at."""

    number: int
    source: str
    to: str | None
    """None: each record back to where it came from."""
    rate: int
    """Records per second; 0: as fast as possible."""
    records: int
    """How many there were at the start: more are not moved, or what comes back at once would go round for ever."""
    started_ms: int
    moved: int = 0
    status: MoveStatus = MoveStatus.RUNNING
    error: GoQueueError | None = None

    @property
    def is_over(self) -> bool:
        return self.status not in (MoveStatus.RUNNING, MoveStatus.CANCELLING)

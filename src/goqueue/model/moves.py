"""Moves of dead letters, as they are shown."""

from enum import StrEnum

from goqueue.model.errors import GoQueueError


class MoveStatus(StrEnum):
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class Move:
    """One of them, to be looked at."""

    def __init__(self, number: int, source: str, to: str | None, rate: int, records: int, started_ms: int) -> None:
        self.number = number
        self.source = source
        self.to = to
        """None: each record back to where it came from."""
        self.rate = rate
        """Records per second; 0: as fast as possible."""
        self.records = records
        """How many there were at the start: more are not moved, or what comes back at once would go round for ever."""
        self.started_ms = started_ms
        self.moved = 0
        self.status = MoveStatus.RUNNING
        self.error: GoQueueError | None = None

    @property
    def is_over(self) -> bool:
        return self.status not in (MoveStatus.RUNNING, MoveStatus.CANCELLING)

"""One redrive: what is asked for, how far it is, what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.model.errors import GoQueueError
from goqueue.records.filters import RecordFilter

GROUP = "gq.redrive"
"""Ours: no user made it, and none shall see it. What was redriven or purged is settled for it."""
REDRIVES = "gq-redrives"
"""Header: how often a record was sent back to work."""
ORIGIN = "gq-origin"
"""Header: where a record was published first, whatever became of it since."""
REDRIVES_MAX = 3


class RedriveRequest(NamedTuple):
    topic: str
    """Whose dead letters: the topic that they came from."""
    to: str | None = None
    """None: back to where each came from."""
    filter: RecordFilter = RecordFilter()
    is_dry_run: bool = False
    records_per_second: int = 0
    """0: as fast as possible."""
    redrives_max: int = REDRIVES_MAX
    """A record that was sent back so often is left where it is: it would only come back."""
    places: Mapping[int, frozenset[int]] | None = None
    """Only these offsets of these partitions of the dead letters. None: all."""


@dataclass
class RedriveReport:
    redriven: int = 0
    """In a dry run: that would be."""
    filtered_out: int = 0
    looping: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    """What went wrong, each kind once."""


class RedriveJob:
    """A redrive under way, or what became of it. A restart ends it; what it has sent back is not sent again."""

    def __init__(self, request: RedriveRequest, started_ms: int) -> None:
        self.request = request
        self.started_ms = started_ms
        self.ended_ms: int | None = None
        self.report = RedriveReport()
        self.error: GoQueueError | None = None
        self.is_stopped = False

    def stop(self) -> None:
        """Send back no more than what is on its way."""
        self.is_stopped = True

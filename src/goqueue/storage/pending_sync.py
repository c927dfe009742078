"""One sync of one log, split so that the slow part can run in another thread than the log's own.

It reads `end_offset` and then the tuple of unsynced segments, and append changes them in the opposite order, so a sync
covers at least what it says.
"""

from threading import Lock
from typing import Protocol

from goqueue.storage.creation import finish_creation
from goqueue.storage.disk import Disk
from goqueue.storage.segment import Segment
from goqueue.storage.state import LogState


class SyncedLog(Protocol):
    """What a sync needs of its log."""

    disk: Disk
    directory: str
    state: LogState
    is_unmade: bool
    sync_lock: Lock
    sync_error: Exception | None
    truncations: int
    end_offset: int
    unsynced: tuple[Segment, ...]


class PendingSync:
    __slots__ = ("end_offset", "log", "segments", "truncations")

    def __init__(self, log: SyncedLog) -> None:
        self.log = log
        self.truncations = log.truncations
        self.end_offset = log.end_offset  # first: see above
        self.segments = log.unsynced

    def durable_to(self) -> int:
        """Of a sync that has run, in the log's own thread, and if nothing was truncated meanwhile."""
        log = self.log
        assert self.end_offset <= log.end_offset, (log.directory, self.end_offset, log.end_offset)
        assert log.unsynced[-1].next_offset == log.end_offset, log.directory  # the active one is always among them
        return self.end_offset

    def run(self) -> None:
        """One at a time, and never again after one has failed: the kernel reports a failed sync once, perhaps to
        somebody else than the one whose data it lost."""
        with self.log.sync_lock:
            if self.log.sync_error is not None:
                raise self.log.sync_error
            try:
                if self.log.is_unmade:
                    finish_creation(self.log.disk, self.log.directory)
                    self.log.is_unmade = False
                self.log.state.save_wanted(self.log.disk, self.log.directory)
                for segment in self.segments:
                    segment.file.sync()
                    if not segment.name_is_durable:
                        segment.disk.sync_directory(segment.directory)
                        segment.name_is_durable = True
            except Exception as error:
                self.log.sync_error = error
                raise

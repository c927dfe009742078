"""One sync of one log, split so that the slow part can run in another thread than the log's own.

It reads `end_offset` and then the tuple of unsynced segments, and append changes them in the opposite order, so a sync
covers at least what it says.
"""

from collections.abc import Callable, Sequence
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
        self._do(self._prepare, self._sync_segments, self._sync_names)

    def _do(self, *steps: Callable[[], None]) -> None:
        with self.log.sync_lock:
            if self.log.sync_error is not None:
                raise self.log.sync_error
            try:
                for step in steps:
                    step()
            except Exception as error:
                self.log.sync_error = error
                raise

    def prepare(self) -> None:
        """The first part of `run`, for the disk to sync the segments with those of others, and for `end` after that."""
        self._do(self._prepare)

    def end(self) -> None:
        self._do(self._sync_names)

    def _prepare(self) -> None:
        log = self.log
        if log.is_unmade:
            finish_creation(log.disk, log.directory)
            log.is_unmade = False
        log.state.save_wanted(log.disk, log.directory)

    def _sync_segments(self) -> None:
        for segment in self.segments:
            segment.file.sync()

    def _sync_names(self) -> None:
        for segment in self.segments:
            if not segment.name_is_durable:
                segment.disk.sync_directory(segment.directory)
                segment.name_is_durable = True


def run_together(pending: Sequence[PendingSync]) -> list[Exception | None]:
    """Sync many logs of one disk at once; what became of each. If that fails each is synced by itself, so that only
    those fail whose bytes were lost."""
    disk = pending[0].log.disk
    assert all(one.log.disk is disk for one in pending)
    failures = [failure_of(one.prepare) for one in pending]
    try:
        disk.sync_together([segment.file for one in pending for segment in one.segments])
    except Exception:  # noqa: BLE001  whatever it was, each log meets it again
        return [failure_of(one.run) for one in pending]
    return [failure or failure_of(one.end) for one, failure in zip(pending, failures, strict=True)]


def failure_of(run: Callable[[], None]) -> Exception | None:
    try:
        run()
    except Exception as error:  # noqa: BLE001  whatever it was, nobody may be told that this log is safe
        return error
    return None

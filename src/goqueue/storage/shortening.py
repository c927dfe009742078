"""How a log loses something on purpose: its beginning to retention, its end to another leader's log, or all of it.

Whatever stands beside the log and vouches for more than it will hold goes first, durably. Else a crash in between would
leave a log that seems to have lost what it once had.
"""

from typing import Protocol

from goqueue.model.errors import DiskFull, GoQueueError, OffsetOutOfRange
from goqueue.storage.disk import Disk
from goqueue.storage.restarting import begin_restart, finish_restart
from goqueue.storage.segments import SegmentList
from goqueue.storage.snapshots import remove_behind
from goqueue.storage.state import LogState


class Shortened(Protocol):
    """What this needs of its log."""

    disk: Disk
    directory: str
    state: LogState
    segments: SegmentList
    end_offset: int
    synced_offset: int

    @property
    def start_offset(self) -> int: ...

    def check_open(self) -> None: ...

    def sync(self) -> None: ...

    def save_state(self) -> None: ...

    def stand_at_end(self) -> None: ...

    def poison(self, doing: str, error: Exception) -> GoQueueError: ...


def truncate(log: Shortened, end_offset: int) -> None:
    log.check_open()
    if end_offset >= log.end_offset:
        return
    if end_offset < log.start_offset:
        raise OffsetOutOfRange(f"cannot truncate to {end_offset}, the log starts at {log.start_offset}")
    log.sync()
    try:
        remove_behind(log.disk, log.directory, end_offset)
        log.segments.cut(end_offset)
        if log.segments.active.next_offset < log.start_offset:  # the batch that held the start is gone too
            log.segments.restart(log.start_offset, log.state.epochs)
        log.state.epochs.truncate(log.segments.active.next_offset)
        log.state.compacted_to = min(log.state.compacted_to, log.segments.active.base_offset)
        log.state.save(log.disk, log.directory)
        remove_behind(log.disk, log.directory, log.segments.active.next_offset)
    except OSError as error:
        raise log.poison("truncate", error) from error
    log.stand_at_end()
    assert log.start_offset <= log.end_offset <= end_offset, (log.directory, log.start_offset, log.end_offset)


def restart(log: Shortened, start_offset: int) -> None:
    log.check_open()
    if start_offset < 0:
        raise OffsetOutOfRange(f"a log cannot begin at {start_offset}")
    try:
        begin_restart(log.disk, log.directory, log.state, start_offset)
        finish_restart(log.disk, log.directory, log.state)
        log.segments.begin_at(start_offset, log.state.epochs)
    except OSError as error:
        raise log.poison("begin anew", error) from error
    log.stand_at_end()


def advance_start(log: Shortened, start_offset: int) -> None:
    log.check_open()
    if not log.start_offset <= start_offset <= log.end_offset:
        raise OffsetOutOfRange(f"{start_offset} is not in [{log.start_offset}, {log.end_offset}]")
    if start_offset > log.synced_offset:
        log.sync()
    first = log.segments.reaching(start_offset)
    before = log.start_offset
    log.state.start_offset = start_offset
    try:
        log.save_state()
    except DiskFull:
        log.state.start_offset = before
        raise
    log.state.epochs.forget_below(first.base_offset)
    try:
        log.segments.drop_before(first)
    except OSError as error:
        raise log.poison("delete a segment", error) from error

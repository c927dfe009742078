"""A log's first files. Each is synced once and all their names together, since a topic may have a thousand logs.

A crash on the way leaves nothing or a log that is empty: the state comes whole under its name or not at all, and a log
that has no segment yet is made anew by whoever opens it.
"""

from typing import NamedTuple

from goqueue.records.batch import NO_EPOCH
from goqueue.records.walk import Expected
from goqueue.storage.disk import Disk
from goqueue.storage.options import LogOptions
from goqueue.storage.recovery import Recovered, recover
from goqueue.storage.segment import Segment
from goqueue.storage.state import LogState


class Making(NamedTuple):
    """How a log is made that is not there yet."""

    first_epoch: int
    """It has begun, unless there is none."""
    has_directory: bool
    """It is there, and its name is durable."""
    is_lazy: bool
    """Nothing is synced: that is left to `finish_creation`."""
    topic_id: bytes
    """Also given to a log that was made before logs knew theirs."""
    is_doubtful: bool = False
    """There was one, most likely, and it is gone: the new one lacks what that held."""


def open_files(disk: Disk, directory: str, options: LogOptions, now_ms: int, making: Making) -> tuple[Recovered, bool]:
    """Recover the log in `directory`, or make it; and whether it is new."""
    recovered = recover(disk, directory, options, now_ms)
    if making.topic_id and not recovered.state.topic_id:
        recovered.state.topic_id = making.topic_id
        recovered.state_changed = True
    if making.is_doubtful and not recovered.has_state:  # a crash may have left a segment, and no state to say so
        recovered.state.is_doubtful = True
        recovered.state_changed = True
    is_new = not recovered.segments and not recovered.has_state
    is_unsynced = making.is_lazy and not recovered.segments
    if not recovered.segments:
        _create(disk, directory, options, recovered, now_ms, making)
    if not is_unsynced:
        disk.sync_directory(directory)  # also for what a killed process made and did not come to sync
        recovered.segments[-1].name_is_durable = True
    if recovered.state_changed:
        recovered.state.save(disk, directory)
    return recovered, is_new


def _create(disk: Disk, directory: str, options: LogOptions, recovered: Recovered, now_ms: int, making: Making) -> None:
    """Give a log that has no segment its first one. Durable when the directory is synced; a lazy one when its creation
    is finished, until which a crash may leave any of its files, or none."""
    state = recovered.state
    if not making.has_directory:
        disk.make_directory(directory, is_durable=not making.is_lazy)
    if not recovered.has_state:
        if making.first_epoch != NO_EPOCH:
            state.epochs.begin(making.first_epoch, state.start_offset)
        state.save_first(disk, directory, is_synced=not making.is_lazy)
        recovered.state_changed = False
    expected = Expected(state.epochs)
    recovered.segments.append(
        Segment.create(disk, directory, state.start_offset, expected, options.index_interval_bytes, now_ms)
    )


def finish_creation(disk: Disk, directory: str) -> None:
    """Make durable what was created lazily: the state, and every name on the way to it. In any thread."""
    LogState.sync(disk, directory)
    path = directory
    while path:
        disk.sync_directory(path)
        path = path.rpartition("/")[0]
    disk.sync_directory(path)

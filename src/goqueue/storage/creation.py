"""A log's first files. Each is synced once and all their names together, since a topic may have a thousand logs.

A crash on the way leaves nothing or a log that is empty: the state comes whole under its name or not at all, and a log
that has no segment yet is made anew by whoever opens it.
"""

from goqueue.records.batch import NO_EPOCH
from goqueue.records.walk import Expected
from goqueue.storage.disk import Disk
from goqueue.storage.options import LogOptions
from goqueue.storage.recovery import Recovered
from goqueue.storage.segment import Segment
from goqueue.storage.state import LogState


def create(
    disk: Disk,
    directory: str,
    options: LogOptions,
    recovered: Recovered,
    now_ms: int,
    *,
    first_epoch: int,
    has_directory: bool,
    is_lazy: bool = False,
) -> bool:
    """Give a log that has no segment its first one; True if it is new. Durable when the directory is synced; a lazy one
    when its creation is finished, until which a crash may leave any of its files, or none."""
    if recovered.segments:
        return False
    state, is_new = recovered.state, recovered.state_changed
    if not has_directory:
        disk.make_directory(directory, is_durable=not is_lazy)
    if is_new:
        if first_epoch != NO_EPOCH:
            state.epochs.begin(first_epoch, state.start_offset)
        state.save_first(disk, directory, is_synced=not is_lazy)
        recovered.state_changed = False
    expected = Expected(state.epochs)
    recovered.segments.append(
        Segment.create(disk, directory, state.start_offset, expected, options.index_interval_bytes, now_ms)
    )
    return is_new


def finish_creation(disk: Disk, directory: str) -> None:
    """Make durable what was created lazily: the state, and every name on the way to it. In any thread."""
    LogState.sync(disk, directory)
    path = directory
    while path:
        disk.sync_directory(path)
        path = path.rpartition("/")[0]
    disk.sync_directory(path)

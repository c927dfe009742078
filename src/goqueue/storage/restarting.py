"""A log that begins anew, empty, at some offset: its leader has nothing that it could go on from.

The wish is durable before anything is removed, so that a crash on the way leaves the old log or the new one: whoever
opens it finishes what was begun.
"""

from goqueue.records.epochs import EpochHistory
from goqueue.records.log_files import INDEX_SUFFIX, NO_OFFSET, base_offset_of
from goqueue.storage import index_files, swap
from goqueue.storage.disk import Disk
from goqueue.storage.segment import segment_path
from goqueue.storage.snapshots import remove_behind
from goqueue.storage.state import LogState

NOTHING_KNOWN = -1


def begin_restart(disk: Disk, directory: str, state: LogState, start_offset: int) -> None:
    """Doubtful from now on: it may lack what it was counted on to hold."""
    state.restart_at = start_offset
    state.is_doubtful = True
    state.save(disk, directory)


def finish_restart(disk: Disk, directory: str, state: LogState) -> None:
    """Remove all that the log held, and what vouches for it first. Every step may have happened before a crash."""
    remove_behind(disk, directory, NOTHING_KNOWN)
    swap.sweep(disk, directory)
    bases = [base for base in map(base_offset_of, disk.list(directory)) if base is not None]
    for name in disk.list(directory):
        if name.endswith(INDEX_SUFFIX):
            index_files.remove(disk, f"{directory}/{name.removesuffix(INDEX_SUFFIX)}")
    disk.sync_directory(directory)
    for base in reversed(bases):
        disk.remove(segment_path(directory, base, ".log"))
    disk.sync_directory(directory)
    state.start_offset, state.restart_at = state.restart_at, NO_OFFSET
    state.compacted_to = state.gaps_to = state.tombstones_to = 0
    state.epochs = EpochHistory()
    state.save(disk, directory)

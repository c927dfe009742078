"""Our own small files beside the log (indexes, state), saved and loaded whole. What they look like is said in
`records.log_files`.
"""

from goqueue.records.log_files import Kind, pack, read_frame
from goqueue.storage.disk import Disk

DRAFT = ".tmp"
"""Behind the name of a file that is being written; recovery sweeps up what a crash leaves of them."""


def load(disk: Disk, path: str, kind: Kind) -> bytes:
    """The body of a file that holds one frame; a missing file is FileNotFoundError."""
    file = disk.open(path)
    try:
        return read_frame(file, 0, kind)[0]
    finally:
        file.close()


def save_durably(disk: Disk, path: str, kind: Kind, body: bytes) -> None:
    """A file of one frame, replaced at once or not at all."""
    replace_durably(disk, path, pack(kind, body))


def replace_durably(disk: Disk, path: str, data: bytes) -> None:
    """A crash leaves the old content or the new."""
    replace_synced(disk, path, data)
    disk.sync_directory(path.rpartition("/")[0])  # perhaps the root


def replace_synced(disk: Disk, path: str, data: bytes) -> None:
    """The same, but for the sync of the directory, which is the caller's: a crash before it may leave the old content
    still, or nothing where there was nothing."""
    _replace(disk, path, data, is_synced=True)


def replace_unsynced(disk: Disk, path: str, data: bytes) -> None:
    """The same without any sync: a crash may leave a part of the new content, too."""
    _replace(disk, path, data, is_synced=False)


def _replace(disk: Disk, path: str, data: bytes, *, is_synced: bool) -> None:
    draft = path + DRAFT
    if disk.exists(draft):
        disk.remove(draft)
    file = disk.open(draft, create=True)
    try:
        file.write(0, [data])
        if is_synced:
            file.sync()
    finally:
        file.close()
    disk.rename(draft, path)

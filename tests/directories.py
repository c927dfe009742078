"""What tests of whole data directories share."""

from goqueue.storage.committer import Committer
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.disk import Disk
from goqueue.storage.options import LogOptions


def open_directory(disk: Disk, now_ms: int) -> DataDirectory:
    """Opened without a commit thread: what is appended is synced when it is closed."""
    committer = Committer(lambda finish: finish(), lambda: now_ms)
    return DataDirectory.open(disk, defaults=LogOptions(), committer=committer, now_ms=now_ms)

"""What tests of whole data directories share."""

from goqueue.storage.committer import Committer
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.disk import Disk
from goqueue.storage.options import LogOptions


def open_directory(disk: Disk, now_ms: int, options: LogOptions | None = None) -> DataDirectory:
    """With every log that is there opened, and no commit thread: what is appended is synced when it is closed."""
    directory = DataDirectory.open(disk, committer=Committer(lambda finish: finish(), lambda: now_ms))
    for topic, partition in directory.names():
        directory.open_log(topic, partition, options or LogOptions(), now_ms)
    return directory

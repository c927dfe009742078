"""What a log must remember besides its batches: where it starts, what is compacted, which leaders wrote it."""

from dataclasses import dataclass, field
from threading import Lock

from goqueue.records.batch import NO_EPOCH
from goqueue.records.log_files import STATE_NAME, Kind, LogFacts, pack
from goqueue.storage import side_file
from goqueue.storage.disk import Disk


@dataclass(slots=True)
class LogState(LogFacts):
    """It belongs to the thread of its log, but for `save_wanted`."""

    kept_epoch: int = field(default=NO_EPOCH, compare=False)
    """The latest that is on the disk, or will be with the next sync."""
    _lock: Lock = field(default_factory=Lock, compare=False, repr=False)
    """Of the file."""
    _wanted: bytes = field(default=b"", compare=False, repr=False)
    """What the next sync is to save, unless it is what was saved last."""
    _saved: bytes = field(default=b"", compare=False, repr=False)

    def save(self, disk: Disk, directory: str) -> None:
        """Durable when it returns."""
        with self._lock:
            body = self.encode()
            side_file.save_durably(disk, f"{directory}/{STATE_NAME}", Kind.LOG_STATE, body)
            self._wanted = self._saved = body
        self.kept_epoch = self.epochs.latest

    def save_later(self) -> None:
        """As it is now, with the next sync of the log."""
        self._wanted = self.encode()
        self.kept_epoch = self.epochs.latest

    @property
    def is_unsaved(self) -> bool:
        """`save_later` has left something to a sync."""
        return self._wanted is not self._saved

    def save_wanted(self, disk: Disk, directory: str) -> None:
        """What `save_later` left to a sync, in any thread."""
        if self._wanted is self._saved:
            return
        with self._lock:
            body = self._wanted
            if body is not self._saved:
                side_file.save_durably(disk, f"{directory}/{STATE_NAME}", Kind.LOG_STATE, body)
                self._saved = body

    def let_go(self) -> None:
        """The log is deleted: nothing is saved any more, since another log may get its name."""
        with self._lock:
            self._wanted = self._saved

    def save_first(self, disk: Disk, directory: str, *, is_synced: bool = True) -> None:
        """Of a log that is being made: durable with the directory's next sync, which its first segment needs too. Not
        synced: `sync` comes before that."""
        data = pack(Kind.LOG_STATE, self.encode())
        if is_synced:
            side_file.replace_synced(disk, f"{directory}/{STATE_NAME}", data)
        else:
            side_file.replace_unsynced(disk, f"{directory}/{STATE_NAME}", data)
        self.kept_epoch = self.epochs.latest

    @staticmethod
    def sync(disk: Disk, directory: str) -> None:
        file = disk.open(f"{directory}/{STATE_NAME}")
        try:
            file.sync()
        finally:
            file.close()

    @classmethod
    def load(cls, disk: Disk, directory: str) -> "LogState":
        state = cls.decode(side_file.load(disk, f"{directory}/{STATE_NAME}", Kind.LOG_STATE))
        state.kept_epoch = state.epochs.latest
        return state

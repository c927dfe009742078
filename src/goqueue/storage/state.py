"""What a log must remember besides its batches: where it starts, what is compacted, which leaders wrote it."""

from goqueue.records.log_files import STATE_NAME, Kind, LogFacts, pack
from goqueue.storage import side_file
from goqueue.storage.disk import Disk


class LogState(LogFacts):
    def save(self, disk: Disk, directory: str) -> None:
        side_file.save_durably(disk, f"{directory}/{STATE_NAME}", Kind.LOG_STATE, self.encode())

    def save_first(self, disk: Disk, directory: str, *, is_synced: bool = True) -> None:
        """Of a log that is being made: durable with the directory's next sync, which its first segment needs too. Not
        synced: `sync` comes before that."""
        data = pack(Kind.LOG_STATE, self.encode())
        if is_synced:
            side_file.replace_synced(disk, f"{directory}/{STATE_NAME}", data)
        else:
            side_file.replace_unsynced(disk, f"{directory}/{STATE_NAME}", data)

    @staticmethod
    def sync(disk: Disk, directory: str) -> None:
        file = disk.open(f"{directory}/{STATE_NAME}")
        try:
            file.sync()
        finally:
            file.close()

    @classmethod
    def load(cls, disk: Disk, directory: str) -> "LogState":
        return cls.decode(side_file.load(disk, f"{directory}/{STATE_NAME}", Kind.LOG_STATE))

"""What a log must remember besides its batches: where it starts, what is compacted, which leaders wrote it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError

from goqueue.model.errors import DamagedFile
from goqueue.storage import side_file
from goqueue.storage.disk import Disk
from goqueue.storage.epochs import EpochHistory
from goqueue.storage.side_file import Kind

STATE_NAME = "state"
HEAD = Struct("<qqI")
ENTRY = Struct("<iq")


@dataclass(slots=True)
class LogState:
    start_offset: int = 0
    compacted_to: int = 0
    """Below it each key stands once and offsets have gaps. Always a segment boundary."""
    epochs: EpochHistory = field(default_factory=EpochHistory)

    def save(self, disk: Disk, directory: str) -> None:
        side_file.save_durably(disk, f"{directory}/{STATE_NAME}", Kind.LOG_STATE, self._encode())

    def save_first(self, disk: Disk, directory: str) -> None:
        """Of a log that is being made: durable with the directory's next sync, which its first segment needs too."""
        side_file.replace_synced(disk, f"{directory}/{STATE_NAME}", side_file.pack(Kind.LOG_STATE, self._encode()))

    def _encode(self) -> bytes:
        entries = self.epochs.entries()
        head = HEAD.pack(self.start_offset, self.compacted_to, len(entries))
        return head + b"".join(ENTRY.pack(*entry) for entry in entries)

    @classmethod
    def load(cls, disk: Disk, directory: str) -> "LogState":
        body = side_file.load(disk, f"{directory}/{STATE_NAME}", Kind.LOG_STATE)
        try:
            start_offset, compacted_to, count = HEAD.unpack_from(body)
            entries: Iterable[tuple[int, int]] = [
                ENTRY.unpack_from(body, HEAD.size + number * ENTRY.size) for number in range(count)
            ]
        except StructError as error:
            raise DamagedFile(f"log state of {len(body)} bytes cannot be read") from error
        return cls(start_offset, compacted_to, EpochHistory(entries))

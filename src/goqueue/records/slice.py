"""Whole batches where they are stored: they are read when they are sent, and by whoever sends them."""

from typing import NamedTuple, Protocol

from goqueue.model.errors import ReadFailed


class StoredBytes(Protocol):
    """Of a file, what a slice needs."""

    def read(self, position: int, length: int) -> bytes: ...

    def view(self, position: int, length: int) -> memoryview: ...

    def fileno(self) -> int:
        """For sendfile."""


class Slice(NamedTuple):
    """Whole batches of one segment, for the network to send without a copy. Keeps its file alive."""

    file: StoredBytes
    position: int
    length: int
    first_offset: int
    next_offset: int
    """Where to read on. Behind a damaged or compacted place this is not the last offset plus one."""

    def read(self) -> bytes:
        try:
            return self.file.read(self.position, self.length)
        except OSError as error:
            raise ReadFailed(f"{error.strerror} at byte {self.position}") from error

    def view(self) -> memoryview:
        try:
            return self.file.view(self.position, self.length)
        except OSError as error:
            raise ReadFailed(f"{error.strerror} at byte {self.position}") from error

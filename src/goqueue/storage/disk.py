"""The disk as storage sees it. All file access goes through this port, so that a test can crash it at any write.

Paths are relative to the disk's root, with forward slashes. Every error is an OSError; a full disk is errno ENOSPC.
Nothing is durable before a sync: `File.sync` for what a file holds and how long it is, `Disk.sync_directory` for
which names exist.
"""

from collections.abc import Sequence
from typing import Protocol


class File(Protocol):
    """An open file. It may be synced from another thread while its owner writes."""

    def size(self) -> int: ...

    def write(self, position: int, buffers: Sequence[memoryview | bytes | bytearray]) -> None:
        """Write all buffers one behind the other, or raise; after a raise any part of it may have been written."""

    def read(self, position: int, length: int) -> bytes:
        """A copy of at most `length` bytes; shorter only at the end of the file."""

    def view(self, position: int, length: int) -> memoryview:
        """The same bytes without a copy, valid for as long as the view lives."""

    def fileno(self) -> int:
        """For sendfile. A disk without descriptors raises OSError (errno ENOTSUP)."""

    def allocate(self, size: int) -> None:
        """Reserve room up to `size`, reading as zeros, so that later writes below it cannot meet a full disk."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Return when the bytes and the size are durable (fdatasync)."""

    def close(self) -> None:
        """Closing twice is fine. Views stay valid."""


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. `create` makes a new empty file and fails if there is one."""

    def exists(self, path: str) -> bool: ...

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; empty if it does not exist."""

    def make_directory(self, path: str) -> None:
        """Make it and its parents where missing, each name durable."""

    def rename(self, source: str, target: str) -> None:
        """Replaces the target if there is one. Directories too."""

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""

    def sync_directory(self, path: str) -> None: ...

    def free_bytes(self) -> int: ...

    def lock(self, path: str) -> Lock:
        """Hold `path` for this process until release or death, however it dies; DataDirectoryLocked if it is held."""

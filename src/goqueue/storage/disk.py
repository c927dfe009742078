"""The disk as storage sees it. All file access goes through this port, so that a test can crash it at any write.

Paths are relative to the disk's root, with forward slashes; "" is the root itself. A path that could leave the root is
a bug of ours: ValueError. Every other error is an OSError; a full disk is errno ENOSPC, a closed file EBADF.
Nothing is durable before a sync: `File.sync` for what a file holds and how long it is, `Disk.sync_directory` for
which names exist.
"""

from collections.abc import Sequence
from typing import Protocol

NO_NAMES = frozenset(("", ".", ".."))


def check_path(path: str, *, may_be_root: bool = False) -> str:
    """The path, if it names one place inside the root in exactly one way."""
    if path == "" and may_be_root:
        return path
    if "\0" in path or not NO_NAMES.isdisjoint(path.split("/")):
        raise ValueError(f"not a path inside the data directory: {path!r}")
    return path


class File(Protocol):
    """An open file. It may be synced from another thread while its owner writes or closes it. Dropping the last
    reference closes it."""

    def size(self) -> int: ...

    def write(self, position: int, buffers: Sequence[memoryview | bytes | bytearray]) -> None:
        """Write all buffers one behind the other, or raise; after a raise any part of it may have been written."""

    def read(self, position: int, length: int) -> bytes:
        """A copy of at most `length` bytes; shorter only at the end of the file."""

    def view(self, position: int, length: int) -> memoryview:
        """The same bytes, read-only and where it pays without a copy, valid for as long as the view or a slice of it
        lives. Whether it shows later writes to its range is not promised."""

    def fileno(self) -> int:
        """For sendfile. A disk without descriptors raises OSError (errno ENOTSUP)."""

    def allocate(self, size: int) -> None:
        """Reserve room up to `size`, reading as zeros, so that later writes below it cannot meet a full disk. Never
        shrinks. If it raises, the file is as long as before."""

    def truncate(self, size: int) -> None:
        """Cut or extend with zeros. OSError (errno EBUSY) while a view of this file reaches past `size`: touching
        memory mapped from behind the end of a file kills the process."""

    def sync(self) -> None:
        """Return when the bytes and the size are durable (fdatasync). After a raise nothing written since the last
        good sync is known to be durable, and a later sync that succeeds does not change that."""

    def close(self) -> None:
        """Closing twice is fine, as is closing while another thread syncs. Views stay valid."""


class Lock(Protocol):
    def release(self) -> None:
        """Releasing twice is fine."""


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. `create` makes a new empty file and fails if there is one."""

    def exists(self, path: str) -> bool:
        """False means that it is not there; a disk that cannot tell raises."""

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; empty if it does not exist."""

    def make_directory(self, path: str, *, is_durable: bool = True) -> None:
        """Make it and its parents where missing, each name durable, unless the caller sees to that. Fine if it is
        there."""

    def make_directories(self, parent: str, names: Sequence[str]) -> None:
        """The same for many of one parent, all of them durable for the price of one."""

    def rename(self, source: str, target: str) -> None:
        """Replaces the target if there is one. Directories too. Durable when the directories of both are synced."""

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory. Open files and views of it stay usable."""

    def sync_directory(self, path: str) -> None:
        """Return when the names in this directory are durable: what was created, renamed or removed in it."""

    @property
    def syncs_together(self) -> bool:
        """Whether `sync_together` can be done here."""

    def sync_together(self, files: Sequence[File]) -> None:
        """As `File.sync` of each, for much less where there are many; it may wait for what others have written, too.
        OSError: it cannot be done so, or nobody knows of which. Sync each to learn that: a file whose bytes were lost
        says so itself."""

    def free_bytes(self) -> int: ...

    def total_bytes(self) -> int:
        """Of the file system: what is used and what is free."""

    def lock(self, path: str) -> Lock:
        """Hold `path` for this process until release or death, however it dies; DataDirectoryLocked if it is held.
        Makes the file; it stays when the lock is released. Dropping the Lock does not release it."""

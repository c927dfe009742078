"""All that was written to a file system, synced with one call."""

import ctypes
import errno
import os
import re
from pathlib import Path

TELLS_LOSSES = (5, 8)
"""Linux: since then `syncfs` says that something could not be written."""


class FileSystem:
    """The one that a directory is in. A loss is told to each descriptor once, so it keeps one; and what was lost before
    it had one is not told, so its first sync is refused: whoever asks syncs each file."""

    def __init__(self, directory: Path) -> None:
        self._fd = -1
        self._directory = directory
        self._sync = _syncfs()

    def sync(self) -> None:
        if self._sync is None:
            raise OSError(errno.ENOTSUP, "this system cannot sync a file system, or does not tell of losses")
        if self._fd < 0:
            self._fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            raise OSError(errno.EAGAIN, "what was lost before is not known")
        if self._sync(self._fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def _syncfs() -> "ctypes._NamedFuncPointer | None":
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if os.uname().sysname != "Linux" or version is None or tuple(map(int, version.groups())) < TELLS_LOSSES:
        return None
    found: ctypes._NamedFuncPointer | None = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return found

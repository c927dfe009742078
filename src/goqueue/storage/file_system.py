"""All that was written to a file system, synced with one call."""

import ctypes
import errno
import os
import re
from pathlib import Path
from threading import Lock

LINUX = (5, 8)
"""Since then `syncfs` says that something could not be written."""
TELL_LOSSES = frozenset({"ext4", "xfs"})
"""Of these it is known. overlayfs, for one, does not pass on what the file system below it says."""
MOUNTS = Path("/proc/self/mountinfo")


class FileSystem:
    """The one that a directory is in. A loss is told to each descriptor once, so it keeps one; and what was lost before
    it had one is not told, so its first sync is refused: whoever asks syncs each file.

    A sync that fails may be told of the loss of a file that was only written to meanwhile, or that somebody else
    syncs, whose own sync would then hear nothing of it. So it is the last one, and no two run at a time."""

    def __init__(self, directory: Path) -> None:
        self._fd = -1
        self._lock = Lock()
        self._directory = directory
        self._sync = _syncfs() if kind_of(directory) in TELL_LOSSES else None

    @property
    def tells_losses(self) -> bool:
        """Whether it can be synced as one."""
        return self._sync is not None

    def sync(self) -> None:
        with self._lock:
            if self._sync is None:
                raise OSError(errno.ENOTSUP, "this file system cannot be synced as one, or does not tell of losses")
            if self._fd < 0:
                self._fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                raise OSError(errno.EAGAIN, "what was lost before is not known")
            if self._sync(self._fd):
                number = ctypes.get_errno()
                self._sync = None
                raise OSError(number, os.strerror(number))

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def kind_of(directory: Path) -> str:
    """Empty: not known."""
    number = directory.stat().st_dev
    place = f"{os.major(number)}:{os.minor(number)}"
    try:
        mounts = [line.split() for line in MOUNTS.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    return next((mount[mount.index("-") + 1] for mount in mounts if mount[2] == place and "-" in mount), "")


def _syncfs() -> "ctypes._NamedFuncPointer | None":
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if os.uname().sysname != "Linux" or version is None or tuple(map(int, version.groups())) < LINUX:
        return None
    found: ctypes._NamedFuncPointer | None = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return found

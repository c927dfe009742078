"""A file system of its own for each node, in a file: it can be full, fail, or lose its power without harm to others.

Needs root and ext4. When the mount namespace of the run is gone, so is the mount, and with it the loop device.
"""

import fcntl
import os
import shutil
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

from tools.nemesis.waiting import wait_until

DISK_BYTES = 4 << 30
"""The file is sparse: what nodes do not write takes no room."""
EXT4_IOC_SHUTDOWN = 0x8004587D
NOTHING_IS_WRITTEN_ANY_MORE = 2
"""Not even the journal (EXT4_GOING_FLAGS_NOLOGFLUSH)."""
UNMOUNT_S_MAX = 20.0


class NoDisks(Exception):
    """Not allowed here."""


def _run(*command: str) -> None:
    if shutil.which(command[0]) is None:
        raise NoDisks(f"there is no {command[0]}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoDisks(f"{' '.join(command)}: {done.stderr.strip()}")


class Disk:
    """Mounted at `place` while it is of use."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.place = folder / "disk"
        self._image = folder / "disk.img"
        self._ballast = self.place / "ballast"
        with self._image.open("wb") as file:
            file.truncate(DISK_BYTES)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        self.place.mkdir(exist_ok=True)
        self.mount()

    def mount(self) -> None:
        _run("mount", "-t", "ext4", "-o", "loop", str(self._image), str(self.place))

    def unmount(self) -> None:
        """A process that was just killed may hold it a moment longer."""
        wait_until(self._is_unmounted, UNMOUNT_S_MAX)
        if os.path.ismount(self.place):
            _run("umount", str(self.place))

    def _is_unmounted(self) -> bool:
        return subprocess.run(["umount", str(self.place)], capture_output=True, check=False).returncode == 0

    def shut_down(self) -> None:
        """From here on everything fails with EIO, and nothing that was not synced will be there after a new mount."""
        place = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, EXT4_IOC_SHUTDOWN, struct.pack("I", NOTHING_IS_WRITTEN_ANY_MORE))
        finally:
            os.close(place)

    def fill(self, leave_bytes: int) -> None:
        """All free room is taken but so much."""
        status = os.statvfs(self.place)
        wanted = status.f_bavail * status.f_frsize - leave_bytes
        with self._ballast.open("ab") as file:
            with suppress(OSError):  # the node has written meanwhile
                os.posix_fallocate(file.fileno(), 0, max(1, wanted))
            if not leave_bytes:
                _take_all(file.fileno())

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)


def _take_all(file: int) -> None:
    """To the last block; what is free is no exact number while others write."""
    os.lseek(file, 0, os.SEEK_END)
    with suppress(OSError):
        while True:
            os.write(file, bytes(65536))

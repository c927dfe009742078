"""The operating system's disk. Writing is the hot path: one system call and no lock; the rare cases stand elsewhere."""

import errno
import fcntl
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

from goqueue.model.errors import DataDirectoryLocked
from goqueue.storage.disk import File, check_path
from goqueue.storage.file_system import FileSystem

FILE_MODE = 0o640
DIRECTORY_MODE = 0o750
IOV_MAX = 1024
"""The most buffers that Linux takes in one call."""
COPY_BYTES_MAX = 120 * 1024
"""Views up to here are copies. Measured, to make a view and read it once: 64 KiB 14 us copied, 36 us mapped; 128 KiB 26
and 56 us; 160 KiB 190 and 62 us; 1 MiB 1,500 and 210 us. The jump is glibc, which takes pieces of 128 KiB or more fresh
from the kernel each time."""
PID_BYTES_MAX = 20


class RealFile:
    """Owns its descriptor."""

    __slots__ = ("_close_lock", "_fd", "_mapped_ends", "_syncs_running")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._close_lock = Lock()
        """Guards who closes the descriptor, owner or last sync. Not held during a sync; a write never takes it."""
        self._syncs_running = 0
        self._mapped_ends: WeakKeyDictionary[mmap.mmap, int] = WeakKeyDictionary()
        """Where each living mapping ends."""

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def write(self, position: int, buffers: Sequence[memoryview | bytes | bytearray]) -> None:
        written = 0
        if position >= 0 and len(buffers) <= IOV_MAX:
            missing = -(written := os.pwritev(self._fd, buffers, position))
            for buffer in buffers:  # for a few buffers half the price of sum(map(len, buffers))
                missing += len(buffer)
            if not missing:
                return
        self._write_rest(position, buffers, written)

    def _write_rest(self, position: int, buffers: Sequence[memoryview | bytes | bytearray], written: int) -> None:
        if position < 0:  # to the kernel -1 means "where the last write ended"
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        rest = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
        first = 0
        while True:
            position += written
            while first < len(rest) and written >= len(rest[first]):
                written -= len(rest[first])
                first += 1
            if first == len(rest):
                return
            rest[first] = rest[first][written:]
            written = os.pwritev(self._fd, rest[first : first + IOV_MAX], position)
            if not written:
                raise OSError(errno.EIO, "the disk takes no more bytes and does not say why")

    def read(self, position: int, length: int) -> bytes:
        if length > COPY_BYTES_MAX:  # pread takes the memory first, and a damaged length may be larger than that
            length = max(0, min(length, self.size() - position))
        data = os.pread(self._fd, length, position)
        while 0 < len(data) < length and (more := os.pread(self._fd, length - len(data), position + len(data))):
            data += more
        return data

    def view(self, position: int, length: int) -> memoryview:
        """Small ones are copies, see COPY_BYTES_MAX, and so is what cannot be mapped. A mapping holds a descriptor of
        its own (mmap duplicates it), so it outlives this file."""
        if length > COPY_BYTES_MAX:
            length = max(0, min(length, self.size() - position))
        if length > COPY_BYTES_MAX:
            with suppress(OSError):  # no read error is lost: the copy meets it again
                return self._map(position, position + length)
        return memoryview(self.read(position, length))

    def _map(self, position: int, end: int) -> memoryview:
        """A mapped page that cannot be read from the disk is a SIGBUS, which would kill the broker. So all pages are
        brought to the page cache first, by a call that can report an error: sendfile to nowhere moves no bytes, costs
        about as much as the page faults it saves (256 KiB: 4 us of 80), and waits for a cold disk without holding the
        interpreter lock, which madvise(MADV_POPULATE_READ) does hold. What remains: a page that is evicted before it
        is touched and then fails."""
        start = position - position % mmap.ALLOCATIONGRANULARITY
        warm = start
        while warm < end:
            sent = os.sendfile(_nowhere(), self._fd, warm, end - warm)
            if not sent:
                raise OSError(errno.EIO, "the file ends before its size")
            warm += sent
        mapping = mmap.mmap(self._fd, end - start, mmap.MAP_SHARED, mmap.PROT_READ, offset=start)
        self._mapped_ends[mapping] = end
        return memoryview(mapping)[position - start :]

    def fileno(self) -> int:
        if self._fd < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._fd

    def allocate(self, size: int) -> None:
        before = self.size()
        if size == 0:
            return
        try:
            os.posix_fallocate(self._fd, 0, size)
        except OSError:
            if before < size:  # a full disk keeps nothing of what it could not give whole
                os.ftruncate(self._fd, before)
            raise

    def truncate(self, size: int) -> None:
        if any(end > size for end in self._mapped_ends.values()):
            raise OSError(errno.EBUSY, "a view reaches past the new end")
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """A close meanwhile leaves the descriptor to us, so that its number cannot become another file's."""
        with self._close_lock:
            fd = self.fileno()
            self._syncs_running += 1
        try:
            os.fdatasync(fd)
        finally:
            with self._close_lock:
                self._syncs_running -= 1
                if self._fd < 0 and not self._syncs_running:
                    os.close(fd)

    def close(self) -> None:
        with self._close_lock:
            fd, self._fd = self._fd, -1
            if fd >= 0 and not self._syncs_running:
                os.close(fd)

    def __del__(self) -> None:
        """A deleted segment only drops its files; whoever still sends from one keeps it open."""
        self.close()


class RealLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a child between fork and exec has the descriptor too
            os.close(fd)


class RealDisk:
    """All below one directory, which `make_directory("")` makes if it is missing."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._prefix = f"{self._root}/"
        self._file_system: FileSystem | None = None

    def _resolve(self, path: str, *, may_be_root: bool = False) -> str:
        """A string: a start opens thousands of logs, and made paths for as long as it read files."""
        return self._prefix + check_path(path, may_be_root=may_be_root)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        return RealFile(os.open(self._resolve(path), flags, FILE_MODE))

    def exists(self, path: str) -> bool:
        """Unlike Path.exists of some Python versions, this never answers "no" for "cannot tell"."""
        try:
            os.stat(self._resolve(path, may_be_root=True))  # noqa: PTH116  see `_resolve`
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def list(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(self._resolve(directory, may_be_root=True)))  # noqa: PTH208  see `_resolve`
        except FileNotFoundError:
            return []

    def make_directory(self, path: str, *, is_durable: bool = True) -> None:
        """Inside the root each parent is synced even if nothing was missing: the process that made it may have died
        before it came to that. Above the root only what we make."""
        target = Path(self._resolve(path, may_be_root=True))
        chain = [target, *target.parents]
        depth = len(chain) - len(self._root.parents) - 1
        missing_above = [directory for directory in chain[depth:] if not directory.exists()]
        for directory in reversed(chain[:depth] + missing_above):
            directory.mkdir(DIRECTORY_MODE, exist_ok=True)
            if is_durable:
                _sync_directory(directory.parent)

    def make_directories(self, parent: str, names: Sequence[str]) -> None:
        targets = [self._resolve(f"{parent}/{name}") for name in names]
        self.make_directory(parent)
        for target in targets:
            Path(target).mkdir(DIRECTORY_MODE, exist_ok=True)
        self.sync_directory(parent)

    def rename(self, source: str, target: str) -> None:
        Path(self._resolve(source)).replace(self._resolve(target))

    def remove(self, path: str) -> None:
        target = Path(self._resolve(path))
        try:
            target.unlink()
        except IsADirectoryError:
            target.rmdir()

    def sync_directory(self, path: str) -> None:
        _sync_directory(self._resolve(path, may_be_root=True))

    @property
    def syncs_together(self) -> bool:
        return self._its_file_system().tells_losses

    def sync_together(self, files: Sequence[File]) -> None:  # noqa: ARG002  the file system has them all
        self._its_file_system().sync()

    def _its_file_system(self) -> FileSystem:
        """Looked for when it is first wanted: the directory need not be there before."""
        if self._file_system is None:
            self._file_system = FileSystem(self._root)
        return self._file_system

    def free_bytes(self) -> int:
        room = os.statvfs(self._root)
        return room.f_bavail * room.f_frsize

    def total_bytes(self) -> int:
        room = os.statvfs(self._root)
        return room.f_blocks * room.f_frsize

    def lock(self, path: str) -> RealLock:
        """A kernel lock, because it ends with its owner. The pid in the file only tells a person where to look: in a
        container every broker may be pid 1, the dead one as well as the one that starts after it. A forked child that
        does not exec keeps the lock too."""
        target = self._resolve(path)
        fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"{target} is held by {_owner(fd)}"
            os.close(fd)
            if isinstance(error, BlockingIOError):
                raise DataDirectoryLocked(message) from None
            raise
        with suppress(OSError):  # a full disk must not keep the broker from starting
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        return RealLock(fd)


def _owner(fd: int) -> str:
    with suppress(OSError):
        pid = os.pread(fd, PID_BYTES_MAX, 0).strip()
        if pid.isdigit():
            return f"pid {pid.decode()}"
    return "another process"


def _sync_directory(directory: Path | str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@cache
def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

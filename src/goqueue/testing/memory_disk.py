"""A disk in memory that can be crashed at any of its operations, to see what storage makes of what is left.

It is as forgetful as a real disk may be: what was not synced can be lost, each change for itself; see journal.py.
"""

import errno
from collections.abc import Collection, Sequence
from random import Random
from weakref import WeakKeyDictionary

from goqueue.model.errors import DataDirectoryLocked
from goqueue.storage.disk import File, check_path
from goqueue.testing.drive import UNLIMITED_BYTES, Drive
from goqueue.testing.faults import Faults
from goqueue.testing.journal import Allocate, FlipBit, MakeDirectory, Names, Resize, Write
from goqueue.testing.tree import ROOT, Tree, os_error

OpNumbers = list[int]
Lines = list[str]
"""Named here because `list` is a method inside MemoryDisk."""


class _Exported(bytearray):
    """The memory behind a view, of a type that can be watched to see when the last slice of the view is gone."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


class MemoryFile:
    def __init__(self, drive: Drive, node: int, path: str) -> None:
        self._drive = drive
        self._node = node
        self._path = path
        """As it was opened; a rename does not change it."""
        self._is_open = True
        self._view_ends: WeakKeyDictionary[_Exported, int] = WeakKeyDictionary()

    def size(self) -> int:
        with self._drive.lock:
            self._check()
            self._drive.begin("stat", self._path)
            return self._drive.tree.size(self._node)

    def write(self, position: int, buffers: Sequence[memoryview | bytes | bytearray]) -> None:
        data = b"".join(buffers)
        drive, path, node = self._drive, self._path, self._node
        with drive.lock:
            self._check(position)
            fault = drive.strike("write", path)
            error = 0
            kept = data
            if fault:
                error, kept = fault.error, data[: fault.kept_bytes]
            elif drive.capacity_bytes is not None and data:
                beyond = position + len(data) - drive.tree.size(node) - drive.free_bytes()
                if beyond > 0:  # what fits is written, as a real disk would
                    error, kept = errno.ENOSPC, data[: max(0, len(data) - beyond)]
            if kept:
                text = f"write {path} {position}+{len(kept)}"
                if error:
                    text += f" of {len(data)}, then failed"
                drive.commit(Write(text, {node}, node, position, kept))
            if error:
                raise os_error(error, path)

    def read(self, position: int, length: int) -> bytes:
        with self._drive.lock:
            self._check(position, length)
            self._drive.begin("read", self._path)
            return self._drive.tree.read(self._node, position, length)

    def view(self, position: int, length: int) -> memoryview:
        with self._drive.lock:
            self._check(position, length)
            self._drive.begin("view", self._path)
            exported = _Exported(self._drive.tree.read(self._node, position, length))
            self._view_ends[exported] = position + len(exported)
            return memoryview(exported).toreadonly()

    def fileno(self) -> int:
        raise os_error(errno.ENOTSUP, self._path)

    def allocate(self, size: int) -> None:
        with self._drive.lock:
            self._check(size)
            self._drive.begin("allocate", self._path)
            if size > self._drive.tree.size(self._node):
                self._drive.check_room(self._node, size, self._path)
                self._drive.commit(Allocate(f"allocate {self._path} {size}", {self._node}, self._node, size))

    def truncate(self, size: int) -> None:
        with self._drive.lock:
            self._check(size)
            self._drive.begin("truncate", self._path)
            if any(end > size for end in self._view_ends.values()):
                raise os_error(errno.EBUSY, self._path)
            self._drive.check_room(self._node, size, self._path)
            self._drive.commit(Resize(f"truncate {self._path} {size}", {self._node}, self._node, size))

    def sync(self) -> None:
        with self._drive.lock:
            self._check()
            self._drive.sync("sync", self._node, self._path)

    def close(self) -> None:
        self._is_open = False

    def _check(self, *not_negative: int) -> None:
        if not self._is_open:
            raise os_error(errno.EBADF, self._path)
        for number in not_negative:
            if number < 0:
                raise os_error(errno.EINVAL, self._path)


class MemoryLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path: str | None = path

    def release(self) -> None:
        if self._path is not None:
            self._held.discard(self._path)
            self._path = None


class MemoryDisk:
    """Thread-safe. `crash*` methods leave this disk as it is, so one run gives as many images as are wanted."""

    def __init__(self, drive: Drive | None = None) -> None:
        self._drive = drive or Drive(Tree.empty(), ROOT + 1, None)
        self._locked_paths: set[str] = set()

    # -- the port

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        check_path(path)
        drive = self._drive
        with drive.lock:
            drive.begin("create" if create else "open", path)
            node = drive.tree.find(path)
            if create:
                if node is not None:
                    raise os_error(errno.EEXIST, path)
                directory, name = drive.tree.place(path)
                node = drive.new_node()
                drive.commit(Names(f"create {path}", {directory}, made=(directory, name, node)))
            elif node is None:
                raise os_error(errno.ENOENT, path)
            elif drive.tree.is_directory(node):
                raise os_error(errno.EISDIR, path)
            return MemoryFile(drive, node, path)

    def exists(self, path: str) -> bool:
        check_path(path, may_be_root=True)
        with self._drive.lock:
            self._drive.begin("stat", path)
            try:
                return self._drive.tree.find(path) is not None
            except NotADirectoryError:
                return False

    def list(self, directory: str) -> list[str]:
        check_path(directory, may_be_root=True)
        with self._drive.lock:
            self._drive.begin("list", directory)
            node = self._drive.tree.find(directory)
            return [] if node is None else sorted(self._drive.tree.names(node, directory))

    def make_directory(self, path: str, *, is_durable: bool = True) -> None:
        check_path(path, may_be_root=True)
        drive = self._drive
        parts = path.split("/")
        with drive.lock:
            drive.check_power()
            for depth in range(1, len(parts) + 1):
                level = "/".join(parts[:depth])
                node = drive.tree.find(level)
                if node is None:
                    drive.begin("make_directory", level)
                    parent, name = drive.tree.place(level)
                    awaits = set() if is_durable else {parent}
                    drive.commit(MakeDirectory(f"make_directory {level}", awaits, parent, name, drive.new_node()))
                elif not drive.tree.is_directory(node):
                    raise os_error(errno.EEXIST, level)

    def make_directories(self, parent: str, names: Sequence[str]) -> None:
        paths = {name: check_path(f"{parent}/{name}") for name in names}
        drive = self._drive
        with drive.lock:
            self.make_directory(parent)
            above = drive.tree.existing(parent)
            for name, path in paths.items():
                node = drive.tree.find(path)
                if node is None:
                    drive.begin("make_directory", path)
                    drive.commit(MakeDirectory(f"make_directory {path}", {above}, above, name, drive.new_node()))
                elif not drive.tree.is_directory(node):
                    raise os_error(errno.EEXIST, path)
            drive.sync("sync_directory", above, parent)

    def rename(self, source: str, target: str) -> None:
        check_path(source)
        check_path(target)
        drive = self._drive
        with drive.lock:
            drive.begin("rename", source, target)
            node = drive.tree.existing(source)
            old_directory, old_name = drive.tree.place(source)
            new_directory, new_name = drive.tree.place(target)
            if (old_directory, old_name) == (new_directory, new_name):
                return
            self._check_replaceable(source, node, target)
            drive.commit(
                Names(
                    f"rename {source} {target}",
                    {old_directory, new_directory},
                    gone=(old_directory, old_name),
                    made=(new_directory, new_name, node),
                )
            )

    def _check_replaceable(self, source: str, node: int, target: str) -> None:
        tree = self._drive.tree
        if target.startswith(f"{source}/"):
            raise os_error(errno.EINVAL, target)
        if source.startswith(f"{target}/"):
            raise os_error(errno.ENOTEMPTY, target)
        replaced = tree.find(target)
        if replaced is None:
            return
        if not tree.is_directory(replaced):
            if tree.is_directory(node):
                raise os_error(errno.ENOTDIR, target)
        elif not tree.is_directory(node):
            raise os_error(errno.EISDIR, target)
        elif tree.names(replaced, target):
            raise os_error(errno.ENOTEMPTY, target)

    def remove(self, path: str) -> None:
        check_path(path)
        drive = self._drive
        with drive.lock:
            drive.begin("remove", path)
            node = drive.tree.existing(path)
            if drive.tree.is_directory(node) and drive.tree.names(node, path):
                raise os_error(errno.ENOTEMPTY, path)
            place = drive.tree.place(path)
            drive.commit(Names(f"remove {path}", {place[0]}, gone=place))

    def sync_directory(self, path: str) -> None:
        check_path(path, may_be_root=True)
        with self._drive.lock:
            self._drive.check_power()
            node = self._drive.tree.existing(path)
            self._drive.tree.names(node, path)
            self._drive.sync("sync_directory", node, path)

    @property
    def syncs_together(self) -> bool:
        return True

    def sync_together(self, files: Sequence[File]) -> None:
        """As a kernel tells of lost bytes: not of whose, and again to whoever syncs that file itself."""
        if self._drive.faults.may_strike("sync"):
            raise os_error(errno.EIO, "")
        for file in files:
            file.sync()

    def free_bytes(self) -> int:
        with self._drive.lock:
            self._drive.check_power()
            return self._drive.free_bytes()

    def total_bytes(self) -> int:
        return self._drive.capacity_bytes or UNLIMITED_BYTES

    def lock(self, path: str) -> MemoryLock:
        """The file it makes is durable at once: nothing depends on it, so its loss would only cost images."""
        check_path(path)
        drive = self._drive
        with drive.lock:
            drive.check_power()
            if path in self._locked_paths:
                raise DataDirectoryLocked(f"{path} is held")
            if drive.tree.find(path) is None:
                drive.begin("create", path)
                drive.commit(Names(f"lock {path}", set(), made=(*drive.tree.place(path), drive.new_node())))
            self._locked_paths.add(path)
        return MemoryLock(self._locked_paths, path)

    # -- what can happen to it

    @property
    def faults(self) -> Faults:
        return self._drive.faults

    @property
    def capacity_bytes(self) -> int | None:
        """Room for the contents of all files that have a name; None for plenty. Room allocated ahead counts."""
        return self._drive.capacity_bytes

    @capacity_bytes.setter
    def capacity_bytes(self, capacity_bytes: int | None) -> None:
        self._drive.capacity_bytes = capacity_bytes

    def flip_bit(self, path: str, bit_index: int) -> None:
        """Rot: bit `bit_index` of the file changes silently and for good. Counts as an op."""
        with self._drive.lock:
            node = self._drive.tree.existing(path)
            if not 0 <= bit_index < 8 * self._drive.tree.size(node):
                raise ValueError(f"{path} has no bit {bit_index}")
            self._drive.commit(FlipBit(f"flip_bit {path} {bit_index}", set(), node, bit_index))

    def crash_at(self, op_number: int | None) -> None:
        """Lose power at this op: it does not happen, it and every call after it raise PowerLost. None: do not."""
        with self._drive.lock:
            self._drive.crash_at = op_number

    def survive_as_kill(self) -> None:
        """What crashed at `crash_at` was the process, not the machine: all that was written is still there."""
        with self._drive.lock:
            self._drive.crash_at = None
            self._drive.power_lost = False
            self._locked_paths.clear()

    @property
    def power_lost(self) -> bool:
        return self._drive.power_lost

    # -- history and images

    @property
    def op_count(self) -> int:
        return len(self._drive.journal.ops)

    def trace(self) -> Lines:
        """One line per op, for the message of a failing test; `*` marks what a crash now could lose."""
        with self._drive.lock:
            unsynced = set(self.unsynced())
            return [
                f"{number:4}{'*' if number in unsynced else ' '} {op.text}"
                for number, op in enumerate(self._drive.journal.ops)
            ]

    def unsynced(self, upto: int | None = None) -> OpNumbers:
        """The ops that a crash behind the first `upto` could lose."""
        with self._drive.lock:
            return self._drive.journal.unsynced(self.op_count if upto is None else upto)

    def unsynced_by_file(self, upto: int | None = None) -> dict[str, OpNumbers]:
        """The same by file, since each file may keep more or less of its own end: give `crashed` what it loses."""
        with self._drive.lock:
            return self._drive.journal.unsynced_by_file(self.op_count if upto is None else upto)

    def sector_cuts(self, op_number: int) -> OpNumbers:
        """For `torn`: how many bytes a write may keep so that it ends between two sectors of the file."""
        with self._drive.lock:
            return self._drive.journal.write(op_number).sector_cuts()

    def crashed(
        self, upto: int | None = None, *, lost: Collection[int] = (), torn: tuple[int, int] | None = None
    ) -> "MemoryDisk":
        """The disk that a crash behind the first `upto` ops leaves, if the un-synced ops `lost` never reached it and
        of the un-synced write `torn[0]` only the first `torn[1]` bytes did. ValueError for what no crash can do. Its
        history begins anew, with all it holds durable, no locks and no faults."""
        drive = self._drive
        with drive.lock:
            tree = drive.journal.replay(drive.base, self.op_count if upto is None else upto, frozenset(lost), torn)
            return MemoryDisk(Drive(tree, drive.next_node, drive.capacity_bytes))

    def crash(self, random: Random) -> "MemoryDisk":
        """A crash now: all, none, one or some of the un-synced ops are lost, or the end of each file by itself; the
        last write perhaps torn."""
        with self._drive.lock:
            unsynced = self.unsynced()
            some = [number for number in unsynced if random.random() < 0.5]
            one = [random.choice(unsynced)] if unsynced else []
            by_file = self.unsynced_by_file().values()
            ends = [number for each in by_file for number in each[random.randint(0, len(each)) :]]
            lost = random.choice([unsynced, [], one, some, ends])
            writes = [number for number in unsynced if isinstance(self._drive.journal.ops[number], Write)]
            cuts = self.sector_cuts(writes[-1]) if writes else []
            if not cuts or random.random() < 0.5:
                return self.crashed(lost=lost)
            lost = [number for number in lost if number != writes[-1]]
            return self.crashed(lost=lost, torn=(writes[-1], random.choice(cuts)))

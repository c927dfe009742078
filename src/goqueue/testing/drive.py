"""What the files and the names of a MemoryDisk share: the state, its history, and all that can go wrong with it."""

import errno
from threading import RLock

from goqueue.testing.faults import Fault, Faults, Kind
from goqueue.testing.journal import Journal, Op
from goqueue.testing.tree import Tree, os_error

CHANGING: frozenset[Kind] = frozenset(
    ("create", "write", "allocate", "truncate", "sync", "rename", "remove", "make_directory", "sync_directory")
)
UNLIMITED_BYTES = 1 << 40
"""What a disk without a capacity says is free."""


class PowerLost(BaseException):
    """The machine is off. Not an Exception: code that handles faults must not take this for one and go on."""


class Drive:
    """Callers hold `lock` from the check to the change."""

    def __init__(self, base: Tree, next_node: int, capacity_bytes: int | None) -> None:
        self.base = base
        """Where the journal starts. Never changed."""
        self.tree = base.fork()
        self.journal = Journal()
        self.faults = Faults()
        self.capacity_bytes = capacity_bytes
        self.crash_at: int | None = None
        self.power_lost = False
        self.lock = RLock()
        self._next_node = next_node

    @property
    def next_node(self) -> int:
        return self._next_node

    def new_node(self) -> int:
        self._next_node += 1
        return self._next_node - 1

    def strike(self, kind: Kind, *paths: str) -> Fault | None:
        """PowerLost if the machine is off by now, else the fault that hits this operation, if any does."""
        if self.crash_at is not None and kind in CHANGING and len(self.journal.ops) >= self.crash_at:
            self.power_lost = True
        if self.power_lost:
            self.check_power()
        return self.faults.strike(kind, *paths)

    def check_power(self) -> None:
        if self.power_lost:
            raise PowerLost(f"at op {len(self.journal.ops)}")

    def begin(self, kind: Kind, *paths: str) -> None:
        """For operations whose failure has no effect."""
        fault = self.strike(kind, *paths)
        if fault:
            raise os_error(fault.error, paths[0])

    def commit(self, op: Op) -> None:
        self.journal.append(op)
        op.apply(self.tree)

    def sync(self, kind: Kind, node: int, path: str) -> None:
        fault = self.strike(kind, path)
        if fault:
            self.journal.fail_sync(node, f"{kind} {path} failed")
            raise os_error(fault.error, path)
        self.journal.sync(node, f"{kind} {path}")

    def free_bytes(self) -> int:
        if self.capacity_bytes is None:
            return UNLIMITED_BYTES
        return max(0, self.capacity_bytes - self.tree.used_bytes())

    def check_room(self, node: int, size: int, path: str) -> None:
        if size - self.tree.size(node) > self.free_bytes():
            raise os_error(errno.ENOSPC, path)

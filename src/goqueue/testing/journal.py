"""Every change of a disk in order, and which of them a crash could still take back.

A change waits for the sync of each file or directory that it touched. Until then a crash may lose it, alone or with any
others. After a failed sync it waits for ever: Linux has dropped the dirty mark of its pages, so the next sync succeeds
without it.
"""

import sys
from collections.abc import Collection
from dataclasses import dataclass, field

from goqueue.testing.tree import Tree

SECTOR_BYTES = 512
"""What a disk writes whole or not at all."""
NEVER = sys.maxsize


@dataclass(slots=True, eq=False)
class Op:
    """One change. The base class changes nothing: a sync."""

    text: str
    awaits: set[int]
    """Nodes to be synced before this op is durable."""
    durable_at: int = field(init=False, default=NEVER)
    """The number of the op that made this one durable."""

    def apply(self, tree: Tree) -> None:
        """Take effect."""


@dataclass(slots=True, eq=False)
class Write(Op):
    node: int
    position: int
    data: bytes

    def apply(self, tree: Tree) -> None:
        tree.write(self.node, self.position, self.data)

    def apply_torn(self, tree: Tree, kept_bytes: int) -> None:
        if kept_bytes:
            tree.write(self.node, self.position, self.data[:kept_bytes])

    def sector_cuts(self) -> list[int]:
        first = SECTOR_BYTES - self.position % SECTOR_BYTES
        return list(range(first, len(self.data), SECTOR_BYTES))


@dataclass(slots=True, eq=False)
class Resize(Op):
    node: int
    size: int

    def apply(self, tree: Tree) -> None:
        tree.resize(self.node, self.size)


@dataclass(slots=True, eq=False)
class Allocate(Op):
    """Never shrinks, not even an image in which a lost truncate left the file longer."""

    node: int
    size: int

    def apply(self, tree: Tree) -> None:
        tree.reserve(self.node, self.size)


@dataclass(slots=True, eq=False)
class FlipBit(Op):
    node: int
    bit_index: int

    def apply(self, tree: Tree) -> None:
        tree.flip_bit(self.node, self.bit_index)


@dataclass(slots=True, eq=False)
class Names(Op):
    """Facts and not intents: which name goes and which node gets which name. So the names of an image make sense
    whatever was lost before."""

    gone: tuple[int, str] | None = None
    made: tuple[int, str, int] | None = None

    def apply(self, tree: Tree) -> None:
        if self.gone:
            tree.unlink(*self.gone)
        if self.made:
            tree.link(*self.made)


@dataclass(slots=True, eq=False)
class MakeDirectory(Op):
    parent: int
    name: str
    node: int

    def apply(self, tree: Tree) -> None:
        tree.make_directory(self.node)
        tree.link(self.parent, self.name, self.node)


class Journal:
    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._pending: list[Op] = []
        """Ops that a sync can still make durable."""

    def append(self, op: Op) -> None:
        if op.awaits:
            self._pending.append(op)
        else:
            op.durable_at = len(self.ops)
        self.ops.append(op)

    def sync(self, node: int, text: str) -> None:
        for op in self._pending:
            op.awaits.discard(node)
            if not op.awaits:
                op.durable_at = len(self.ops)
        self._pending = [op for op in self._pending if op.awaits]
        self.append(Op(text, set()))

    def fail_sync(self, node: int, text: str) -> None:
        self._pending = [op for op in self._pending if node not in op.awaits]
        self.append(Op(text, set()))

    def unsynced(self, upto: int) -> list[int]:
        return [number for number in range(upto) if self.ops[number].durable_at >= upto]

    def unsynced_by_file(self, upto: int) -> dict[str, list[int]]:
        """The same by the file that each changed, as it was opened; a change of names stands for itself."""
        by_file: dict[str, list[int]] = {}
        for number in self.unsynced(upto):
            op = self.ops[number]
            is_content = isinstance(op, (Write, Resize, Allocate))
            by_file.setdefault(op.text.split(" ")[1] if is_content else op.text, []).append(number)
        return by_file

    def write(self, number: int) -> Write:
        op = self.ops[number]
        if not isinstance(op, Write):
            raise ValueError(f"op {number} is not a write: {op.text}")
        return op

    def replay(self, base: Tree, upto: int, lost: Collection[int], torn: tuple[int, int] | None) -> Tree:
        """The tree that a crash behind the first `upto` ops leaves of what began as `base`."""
        if not 0 <= upto <= len(self.ops):
            raise ValueError(f"there are {len(self.ops)} ops, not {upto}")
        for number in lost:
            self._check_can_be_lost(number, upto)
        tree = base.fork()
        if torn is None:
            torn_number, torn_kept = -1, 0
        else:
            torn_number, torn_kept = torn
            self._check_can_be_lost(torn_number, upto)
            if torn_number in lost or not 0 <= torn_kept <= len(self.write(torn_number).data):
                raise ValueError(f"op {torn_number} cannot keep {torn_kept} bytes")
        for number in range(upto):
            if number == torn_number:
                self.write(number).apply_torn(tree, torn_kept)
            elif number not in lost:
                self.ops[number].apply(tree)
        return tree

    def _check_can_be_lost(self, number: int, upto: int) -> None:
        if not 0 <= number < upto:
            raise ValueError(f"op {number} is not one of the first {upto}")
        if self.ops[number].durable_at < upto:
            raise ValueError(f"op {number} is durable: {self.ops[number].text}")

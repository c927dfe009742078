"""Files and directories in memory. A fork copies a file only when it changes it, so that crash images are cheap."""

import errno
import os
from dataclasses import dataclass, field

ROOT = 0


def os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


@dataclass(slots=True)
class Content:
    """`data` may be shorter than `size`: the rest reads as zeros, and room allocated ahead costs no memory."""

    data: bytearray = field(default_factory=bytearray)
    size: int = 0


class Tree:
    """Nodes have numbers that outlive their names, as inodes do: a removed file that is still open stays usable.

    Invariant: a tree that was forked is not changed any more; its contents are shared with the fork.
    """

    __slots__ = ("_directories", "_files", "_owned")

    def __init__(self, files: dict[int, Content], directories: dict[int, dict[str, int]]) -> None:
        self._files = files
        self._directories = directories
        self._owned: set[int] = set()
        """Nodes that no other tree shares."""

    @classmethod
    def empty(cls) -> "Tree":
        return cls({}, {ROOT: {}})

    def fork(self) -> "Tree":
        return Tree(self._files.copy(), self._directories.copy())

    # -- reading

    def find(self, path: str) -> int | None:
        """The node behind a path, None if it is not there."""
        node: int | None = ROOT
        for name in path.split("/") if path else ():
            if node is None:
                return None
            if node not in self._directories:
                raise os_error(errno.ENOTDIR, path)
            node = self._directories[node].get(name)
        return node

    def existing(self, path: str) -> int:
        node = self.find(path)
        if node is None:
            raise os_error(errno.ENOENT, path)
        return node

    def place(self, path: str) -> tuple[int, str]:
        """Where a name stands or would stand: its directory, which must exist, and the last part of the path."""
        parent, _, name = path.rpartition("/")
        directory = self.existing(parent)
        self.names(directory, path)
        return directory, name

    def is_directory(self, node: int) -> bool:
        return node in self._directories

    def names(self, node: int, path: str) -> dict[str, int]:
        if node not in self._directories:
            raise os_error(errno.ENOTDIR, path)
        return self._directories[node]

    def size(self, node: int) -> int:
        return self._files[node].size

    def read(self, node: int, position: int, length: int) -> bytes:
        content = self._files[node]
        length = max(0, min(length, content.size - position))
        return bytes(content.data[position : position + length]).ljust(length, b"\0")

    def used_bytes(self, node: int = ROOT) -> int:
        """Of all files that have a name."""
        if node in self._directories:
            return sum(self.used_bytes(child) for child in self._directories[node].values())
        return self._files[node].size

    # -- changing

    def write(self, node: int, position: int, data: bytes) -> None:
        content = self._own_file(node)
        end = position + len(data)
        gap = position - len(content.data)
        if gap > 0:
            content.data.extend(bytes(gap))
        content.data[position:end] = data
        content.size = max(content.size, end)

    def resize(self, node: int, size: int) -> None:
        content = self._own_file(node)
        del content.data[size:]
        content.size = size

    def reserve(self, node: int, size: int) -> None:
        content = self._own_file(node)
        content.size = max(content.size, size)

    def flip_bit(self, node: int, bit_index: int) -> None:
        """Nothing, if the file does not reach so far."""
        position, bit = divmod(bit_index, 8)
        value = self.read(node, position, 1)
        if value:
            self.write(node, position, bytes([value[0] ^ 1 << bit]))

    def link(self, directory: int, name: str, node: int) -> None:
        """A node without content yet becomes an empty file."""
        self._own_directory(directory)[name] = node
        if node not in self._directories:
            self._files.setdefault(node, Content())

    def unlink(self, directory: int, name: str) -> None:
        self._own_directory(directory).pop(name, None)

    def make_directory(self, node: int) -> None:
        self._own_directory(node)

    def _own_file(self, node: int) -> Content:
        """Made if it is missing: what was written to a file survives in a crash that lost its creation."""
        if node in self._owned:
            return self._files[node]
        self._owned.add(node)
        shared = self._files.get(node)
        own = self._files[node] = Content(shared.data[:], shared.size) if shared else Content()
        return own

    def _own_directory(self, node: int) -> dict[str, int]:
        if node in self._owned:
            return self._directories[node]
        self._owned.add(node)
        own = self._directories[node] = self._directories.get(node, {}).copy()
        return own

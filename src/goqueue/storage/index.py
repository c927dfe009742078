"""Sparse indexes: scanning one 4 KiB block is cheaper than remembering every batch.

A block begins with the first batch that starts 4 KiB or more behind the start of the last block. Both indexes get
one entry when a block begins, so they always agree on the blocks.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

from goqueue.model.errors import DamagedFile

EARLIEST_MS = -(1 << 63)
COUNT = Struct("<I")


class OffsetIndex:
    """Where blocks begin: entry i is (first offset - base offset, position), four bytes each."""

    __slots__ = ("base_offset", "deltas", "positions")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.deltas = array("I")
        self.positions = array("I")

    def __len__(self) -> int:
        return len(self.positions)

    def add(self, offset: int, position: int) -> None:
        self.deltas.append(offset - self.base_offset)
        self.positions.append(position)

    def block_of_offset(self, offset: int) -> int:
        """The block that holds `offset` if any does; 0 for offsets before the first entry."""
        return max(0, bisect_right(self.deltas, offset - self.base_offset) - 1)

    def block_of_position(self, position: int) -> int:
        return max(0, bisect_right(self.positions, position) - 1)

    def encode(self) -> bytes:
        return COUNT.pack(len(self)) + _to_bytes(self.deltas) + _to_bytes(self.positions)

    @classmethod
    def decode(cls, base_offset: int, body: bytes) -> "OffsetIndex":
        index = cls(base_offset)
        index.deltas, index.positions = _from_bytes(body, "I", "I")
        return index


class TimeIndex:
    """When blocks begin: entry i is (highest timestamp before the block, first offset), eight bytes each.

    Invariant: `highest` never falls, whatever order the producers' timestamps come in; so the first batch at or after
    a time is always in the last block whose entry lies before that time.
    """

    __slots__ = ("highest", "offsets")

    def __init__(self) -> None:
        self.highest = array("q")
        self.offsets = array("q")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, highest_before: int, offset: int) -> None:
        self.highest.append(highest_before)
        self.offsets.append(offset)

    def block_of_time(self, timestamp: int) -> int:
        """The block to start looking in for the first record at or after `timestamp`."""
        return max(0, bisect_left(self.highest, timestamp) - 1)

    def encode(self) -> bytes:
        return COUNT.pack(len(self)) + _to_bytes(self.highest) + _to_bytes(self.offsets)

    @classmethod
    def decode(cls, body: bytes) -> "TimeIndex":
        index = cls()
        index.highest, index.offsets = _from_bytes(body, "q", "q")
        return index


def _to_bytes(values: "array[int]") -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _from_bytes(body: bytes, first: str, second: str) -> tuple["array[int]", "array[int]"]:
    columns = array(first), array(second)
    (count,) = COUNT.unpack_from(body)
    if len(body) != COUNT.size + count * sum(column.itemsize for column in columns):
        raise DamagedFile(f"an index of {count} entries cannot have {len(body)} bytes")
    position = COUNT.size
    for column in columns:
        end = position + count * column.itemsize
        column.frombytes(body[position:end])
        if sys.byteorder == "big":
            column.byteswap()
        position = end
    return columns

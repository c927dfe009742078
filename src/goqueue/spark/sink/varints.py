"""The small numbers inside a record as columns of bytes, so that Arrow writes a whole column of them at once."""

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

TABLE_NUMBERS = 16_384
"""Lengths and places in a batch that are larger are rare."""


@cache
def _table() -> pa.BinaryArray:
    """From -1 on."""
    return pa.array([varint(number) for number in range(-1, TABLE_NUMBERS)], pa.binary())


def varints(numbers: pa.Array) -> pa.BinaryArray:
    """Each as it stands in a record; none is below -1."""
    if len(numbers) == 0 or pc.max(numbers).as_py() < TABLE_NUMBERS:
        return _table().take(pc.add(numbers, 1))
    encoded = numbers.dictionary_encode()
    return pa.array([varint(number) for number in encoded.dictionary.to_pylist()], pa.binary()).take(encoded.indices)


def counted(sizes: list[int]) -> pa.BinaryArray:
    """From 0 on, for each size anew: the places in batches of so many records."""
    table = _table()
    return pa.concat_arrays([table.slice(1, size) for size in sizes])


def varint(number: int) -> bytes:
    """Zigzag, seven bits a byte."""
    bits = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)

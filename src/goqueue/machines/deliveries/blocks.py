"""What is stored of a window, in blocks of neighbouring offsets: ledgers keep the last word on each key, so a fact
must say all about its subject, and a block is small enough to be said again whenever something in it changes.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

BLOCK = 128
"""Offsets per block. A settlement of 100 neighbours touches two of them at most."""

FOREVER = 2**62

Range: TypeAlias = tuple[int, int]
"""first and last offset"""

_BITS_BYTES = BLOCK // 8
_ROW = Struct("<BBBqq")
"""A Retry; first and last as indexes within the block. Rows lie in rising order."""
_ONES = re.compile("1+")


class Retry(NamedTuple):
    """Records that were delivered and not settled. Not an object each while they wait: a block keeps them packed."""

    first: int
    last: int
    attempts: int
    """Deliveries that ended."""
    first_delivered_ms: int
    visible_at_ms: int
    """0: at once."""


def blocks_of(first: int, last: int) -> range:
    return range(first // BLOCK, last // BLOCK + 1)


def bits_of(number: int, first: int, last: int) -> int:
    """The bits of first..last in block `number`."""
    low = max(first - number * BLOCK, 0)
    high = min(last - number * BLOCK, BLOCK - 1)
    return ((1 << (high - low + 1)) - 1) << low if high >= low else 0


def pack_bits(bits: int) -> bytes:
    return bits.to_bytes(_BITS_BYTES, "little")


def unpack_bits(packed: bytes) -> int:
    return int.from_bytes(packed, "little")


def ranges_of(number: int, bits: int) -> Iterator[Range]:
    base = number * BLOCK
    for ones in _ONES.finditer(f"{bits:b}"[::-1]):
        yield base + ones.start(), base + ones.end() - 1


def split_retry(retry: Retry) -> Iterator[Retry]:
    """Each part within one block."""
    for number in blocks_of(retry.first, retry.last):
        first, last = max(retry.first, number * BLOCK), min(retry.last, (number + 1) * BLOCK - 1)
        yield Retry(first, last, *retry[2:])


def pack_retries(number: int, retries: Iterable[Retry]) -> bytes:
    """All within block `number`, none of them twice."""
    packed = b""
    for retry in retries:
        packed = with_retry(number, packed, retry)
    return packed


def unpack_retries(number: int, packed: bytes, first: int = 0, last: int = FOREVER) -> Iterator[Retry]:
    """Those that concern some of first..last, in rising order."""
    base = number * BLOCK
    firsts = packed[:: _ROW.size]
    begin, end = max(0, bisect_right(firsts, first - base) - 1), bisect_right(firsts, last - base)
    for row in _ROW.iter_unpack(packed[begin * _ROW.size : end * _ROW.size]):
        if base + row[1] >= first:
            yield Retry(base + row[0], base + row[1], *row[2:])


def times_of(packed: bytes) -> Iterator[tuple[int, int, int]]:
    """First and last index within the block, and when they are visible again."""
    for first, last, _, _, visible_at_ms in _ROW.iter_unpack(packed):
        yield first, last, visible_at_ms


def without_retries(number: int, packed: bytes, first: int, last: int) -> bytes:
    """Nothing is said about first..last any more. Rows are cut as bytes: a block may hold one per record."""
    low, high = max(first - number * BLOCK, 0), min(last - number * BLOCK, BLOCK - 1)
    firsts = packed[:: _ROW.size]
    begin, end = bisect_left(firsts, low), bisect_right(firsts, high)
    if begin and packed[(begin - 1) * _ROW.size + 1] >= low:
        begin -= 1
    if begin >= end:
        return packed
    left = b""
    before, after = _row(packed, begin), _row(packed, end - 1)
    if before[0] < low:
        left += bytes((before[0], low - 1)) + before[2:]
    if after[1] > high:
        left += bytes((high + 1, after[1])) + after[2:]
    return packed[: begin * _ROW.size] + left + packed[end * _ROW.size :]


def with_retry(number: int, packed: bytes, retry: Retry) -> bytes:
    """And this one, which is within the block, instead of what was said about the same offsets."""
    packed = without_retries(number, packed, retry.first, retry.last)
    base = number * BLOCK
    row = _ROW.pack(retry.first - base, retry.last - base, *retry[2:])
    place = bisect_left(packed[:: _ROW.size], row[0])
    begin = end = place * _ROW.size
    if place:
        before = _row(packed, place - 1)
        if before[1] == row[0] - 1 and before[2:] == row[2:]:
            row = before[:1] + row[1:]
            begin -= _ROW.size
    after = _row(packed, place)
    if after and after[0] == row[1] + 1 and after[2:] == row[2:]:
        row = row[:1] + after[1:]
        end += _ROW.size
    return packed[:begin] + row + packed[end:]


def _row(packed: bytes, place: int) -> bytes:
    return packed[place * _ROW.size : (place + 1) * _ROW.size]


def clipped(ranges: Iterable[Range], first: int, last: int) -> Iterator[Range]:
    """The parts of `ranges` within first..last."""
    for low, high in ranges:
        if low <= last and high >= first:
            yield max(low, first), min(high, last)


def without(ranges: Iterable[Range], removed: Iterable[Range]) -> list[Range]:
    """`ranges` less `removed`; both in rising order, and so is what is left."""
    left: list[Range] = []
    holes = list(removed)
    skipped = 0
    for begin, last in ranges:
        first = begin
        while skipped < len(holes) and holes[skipped][1] < first:
            skipped += 1
        position = skipped
        while position < len(holes) and holes[position][0] <= last:
            low, high = holes[position]
            if low > first:
                left.append((first, low - 1))
            first = high + 1
            position += 1
        if first <= last:
            left.append((first, last))
    return left


def merged(ranges: Iterable[Range]) -> list[Range]:
    """In rising order, neighbours and overlaps as one."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def shared(some: Collection[int], others: range) -> Iterable[int]:
    """What both hold, looked up in the larger of the two."""
    if len(some) < len(others):
        return [each for each in some if each in others]
    return [each for each in others if each in some]

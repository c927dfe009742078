"""Sets of offsets as sorted ranges first..last: what was settled, what differs."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]


def merge(ranges: Iterable[Range]) -> list[Range]:
    """The same set, in order, neighbours joined."""
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def subtract(whole: Iterable[Range], taken: Iterable[Range]) -> list[Range]:
    """What is in `whole` and not in `taken`."""
    left: list[Range] = []
    away = merge(taken)
    place = 0
    for first, last in merge(whole):
        while place < len(away) and away[place][1] < first:
            place += 1
        position = first
        for gone_first, gone_last in _from(away, place):
            if gone_first > last:
                break
            if gone_first > position:
                left.append((position, gone_first - 1))
            position = max(position, gone_last + 1)
        if position <= last:
            left.append((position, last))
    return left


def _from(ranges: Sequence[Range], place: int) -> Iterable[Range]:
    return (ranges[number] for number in range(place, len(ranges)))


def count(ranges: Iterable[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)

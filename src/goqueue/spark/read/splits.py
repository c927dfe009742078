"""What one Spark task reads: a range of offsets of one partition. Large ranges are cut so that more tasks can help."""

import heapq
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition


class Range(NamedTuple):
    """From `start` up to `end`, without it."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: bytes = b""
    """Of the topic that it was planned for; empty: any of that name."""

    @property
    def offsets(self) -> int:
        return self.end - self.start


class Split(InputPartition):
    """A range on its way to an executor."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(wanted)
        self.range = wanted


def cut(ranges: Iterable[Range], parts_min: int | None, offsets_max: int | None) -> list[Range]:
    """At least `parts_min` pieces where there are as many offsets, none with more than `offsets_max`. Empty ranges
    are left out.
    """
    wanted = [one for one in ranges if one.offsets > 0]
    parts = [-(-one.offsets // offsets_max) if offsets_max else 1 for one in wanted]
    missing = min(parts_min or 0, sum(one.offsets for one in wanted)) - sum(parts)
    # The largest piece is cut next, until there are enough.
    largest = [(-one.offsets / count, number) for number, (one, count) in enumerate(zip(wanted, parts))]
    heapq.heapify(largest)
    for _ in range(missing):
        number = largest[0][1]
        parts[number] += 1
        heapq.heapreplace(largest, (-wanted[number].offsets / parts[number], number))
    return [piece for one, count in zip(wanted, parts) for piece in _evenly(one, count)]


def _evenly(whole: Range, count: int) -> list[Range]:
    bounds = [whole.start + whole.offsets * number // count for number in range(count + 1)]
    return [whole._replace(start=start, end=end) for start, end in pairwise(bounds)]

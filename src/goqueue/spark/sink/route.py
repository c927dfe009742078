"""Which partition each row goes to, and how the rows of one partition are cut into batches."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import cycle
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from goqueue.records.partitioners import Partitioner, partition_for, partitions_for
from goqueue.spark.errors import SparkError
from goqueue.spark.sink.columns import Rows
from goqueue.spark.sink.encode import BATCH_ROWS_MAX

ROW_BYTES = 64
"""What a row takes beside its key, value and headers, its wishes included: rather too much."""

Place = tuple[str, int]


class Routed(NamedTuple):
    rows: Rows
    """In the order of their places."""
    places: list[tuple[Place, int]]
    """How many rows each has, one after the other."""


class Target(NamedTuple):
    """A topic as far as rows have to choose a partition of it."""

    partitions: int
    partitioner: Partitioner


class Router:
    def __init__(self, topic: str | None, targets: Callable[[str], Target]) -> None:
        self._topic = topic
        self._targets = targets
        self._turn = 0

    def route(self, rows: Rows) -> Routed:
        """The rows of one partition stay in their order."""
        if self._topic is not None:
            return self._route(self._topic, rows)
        if rows.topic is None or rows.topic.null_count:
            raise SparkError("column 'topic' holds NULL, and there is no .option(\"topic\", ...)")
        encoded = rows.topic.dictionary_encode()
        topics = encoded.dictionary.to_pylist()
        if len(topics) == 1:
            return self._route(topics[0], rows)
        parts = [
            self._route(topic, rows.take(pc.indices_nonzero(pc.equal(encoded.indices, number))))
            for number, topic in enumerate(topics)
        ]
        return Routed(joined([part.rows for part in parts]), [place for part in parts for place in part.places])

    def _route(self, topic: str, rows: Rows) -> Routed:
        target = self._targets(topic)
        count = target.partitions
        if rows.partition is None and rows.key is None:
            # Nothing ties a row to a place: each gets as many, and none needs to be moved.
            self._turn += 1
            cuts = [rows.length * number // count for number in range(count + 1)]
            shares = [
                ((topic, (self._turn + number) % count), cuts[number + 1] - cuts[number]) for number in range(count)
            ]
            return Routed(rows, [share for share in shares if share[1]])
        numbers = self._numbers(topic, rows, target)
        counts = {one["values"]: one["counts"] for one in pc.value_counts(numbers).to_pylist()}
        places = [((topic, number), counts[number]) for number in sorted(counts)]
        return Routed(rows.take(pc.sort_indices(numbers)) if len(places) > 1 else rows, places)

    def _numbers(self, topic: str, rows: Rows, target: Target) -> pa.Array:
        count, kind = target
        if rows.partition is not None:
            found = pc.min_max(rows.partition).as_py()
            for number in (found["min"], found["max"]):
                if not 0 <= number < count:
                    raise SparkError(
                        f"column 'partition' holds {number}, but topic {topic!r} has only 0 to {count - 1}"
                    )
            if not rows.partition.null_count:
                return rows.partition
        key = None if kind is Partitioner.ROUND_ROBIN else rows.key
        keys: list[Any] = [None] * rows.length if key is None else key.to_pylist()
        if None in keys:
            turns = cycle(range(count))
            numbers = [next(turns) if key is None else partition_for(key, count, kind) for key in keys]
        else:
            numbers = partitions_for(keys, count, kind)
        chosen = pa.array(numbers, pa.int64())
        return chosen if rows.partition is None else pc.coalesce(rows.partition, chosen)


def joined(parts: list[Rows]) -> Rows:
    """One behind the other. A column that some lack is NULL there."""
    columns: list[pa.Array | None] = []
    for number in range(1, len(Rows._fields)):
        found: list[Any] = [part[number] for part in parts]
        kind = next((column.type for column in found if column is not None), None)
        if kind is None:
            columns.append(None)
            continue
        filled = [
            pa.nulls(part.length, kind) if column is None else column for part, column in zip(parts, found, strict=True)
        ]
        columns.append(pa.concat_arrays(filled))
    return Rows(sum(part.length for part in parts), *columns)


def cut(routed: Routed, batch_bytes_max: int) -> list[tuple[Place, int]]:
    """The same places, those with much in them more than once."""
    ends = _ends(routed.rows)
    batches = []
    row = 0
    for place, count in routed.places:
        last = row + count
        while row < last:
            so_far = ends[row - 1] if row else 0
            until = bisect_right(ends, so_far + batch_bytes_max, row, min(last, row + BATCH_ROWS_MAX))
            until = max(until, row + 1)
            batches.append((place, until - row))
            row = until
    return batches


def _ends(rows: Rows) -> list[int]:
    """How many bytes all rows up to each one take, about."""
    total = pa.repeat(pa.scalar(ROW_BYTES, pa.int64()), rows.length)
    for column in (rows.key, rows.value):
        if column is not None:
            total = pc.add(total, pc.fill_null(pc.binary_length(column), 0))
    if rows.headers is not None:
        total = pc.add(total, _header_bytes(rows.headers))
    ends: list[int] = pc.cumulative_sum(total).to_pylist()
    return ends


def _header_bytes(headers: pa.ListArray) -> pa.Array:
    """Every header counts as much as all do on average: enough to cut by."""
    flat = headers.flatten()
    if not len(flat):
        return pa.repeat(pa.scalar(0, pa.int64()), len(headers))
    lengths = (pc.sum(pc.binary_length(pc.struct_field(flat, number))).as_py() or 0 for number in range(2))
    average = sum(lengths) // len(flat) + 10
    return pc.multiply(pc.fill_null(pc.list_value_length(headers), 0).cast(pa.int64()), average)

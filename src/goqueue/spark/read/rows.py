"""From record batches to Arrow: whole columns at a time, because a Python object per field would cost most of the time.

A column is collected over many record batches, which may be small, and becomes an Arrow array when there are rows
enough: Spark is slow with small ones.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from goqueue.model.lanes import Lane
from goqueue.model.moments import MOMENT_MS_MAX
from goqueue.records.batch import Batch
from goqueue.records.decode import DecodedRecord, decode, unpack
from goqueue.records.native import Headers
from goqueue.records.wishes import batch_lane, lane_and_expiry
from goqueue.spark.read.uniform import Run, runs_of
from goqueue.telemetry.trace_ids import TRACEPARENT, make_trace_id, parse_traceparent

ROWS = 20_000
"""A RecordBatch is given away when it has so many."""
BYTES = 64 * 1024 * 1024
"""Or when its values take so much: they may be large."""

TYPES_KEPT = 32
_MS, _US = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
_LANE_NAMES = [lane.name.lower() for lane in Lane]


class Home(NamedTuple):
    """Where rows come from."""

    topic: str
    topic_id: bytes
    partition: int


class Pieces(NamedTuple):
    """Some records of one batch, column by column: Python values, or an Arrow array where that is easily had."""

    home: Home
    batch: Batch
    records: Sequence[DecodedRecord]

    def key(self) -> list[bytes | None]:
        return [one.key for one in self.records]

    def value(self) -> list[bytes | None]:
        return [one.value for one in self.records]

    def timestamp(self) -> list[int | None]:
        found: list[int | None] = [one.timestamp for one in self.records]
        if max(self.batch.max_timestamp, self.batch.base_timestamp) > MOMENT_MS_MAX:  # no calendar has them
            return [moment if moment is not None and abs(moment) <= MOMENT_MS_MAX else None for moment in found]
        return found

    def offset(self) -> pa.Array:
        first, last = self.records[0].offset, self.records[-1].offset
        if last - first == len(self.records) - 1:  # they rise
            return pa.arange(first, last + 1)
        return pa.array([one.offset for one in self.records], pa.int64())

    def timestampType(self) -> pa.Array:  # noqa: N802  the column's name
        return _timestamp_type(self.batch, len(self.records))

    def headers(self) -> list[list[dict[str, Any]]]:
        return [_as_structs(one.headers) for one in self.records]

    def priority(self) -> list[str]:
        lane = batch_lane(self.batch)
        if lane is not None:
            return [_LANE_NAMES[lane]] * len(self.records)
        return [_LANE_NAMES[lane_and_expiry(one.headers)[0]] for one in self.records]

    def trace_id(self) -> list[str]:
        return [_trace_id(self.home, one) for one in self.records]


class UniformPieces(NamedTuple):
    """The same of a run of records that are alike, and have no headers."""

    home: Home
    batch: Batch
    run: Run

    def key(self) -> pa.Array:
        return self.run.keys()

    def value(self) -> pa.Array:
        return self.run.values()

    def timestamp(self) -> pa.Array:
        if self.batch.is_append_time:  # the broker's own time
            return pa.repeat(pa.scalar(self.batch.max_timestamp, _MS), self.run.count).cast(_US)
        return self.run.times(self.batch.base_timestamp).view(_US)

    def offset(self) -> pa.Array:
        return pa.arange(self._first, self._first + self.run.count)

    def timestampType(self) -> pa.Array:  # noqa: N802  the column's name
        return _timestamp_type(self.batch, self.run.count)

    def headers(self) -> list[list[dict[str, Any]]]:
        return [[] for _ in range(self.run.count)]

    def priority(self) -> list[str]:
        lane = batch_lane(self.batch)
        return [_LANE_NAMES[Lane.NORMAL if lane is None else lane]] * self.run.count

    def trace_id(self) -> list[str]:
        topic_id, partition = self.home.topic_id, self.home.partition
        return [make_trace_id(topic_id, partition, self._first + number) for number in range(self.run.count)]

    @property
    def _first(self) -> int:
        return self.batch.base_offset + self.run.first


class Rows:
    """The rows of one partition, until `take`. `schema` says which columns, by name."""

    def __init__(self, schema: pa.Schema, home: Home) -> None:
        self._schema = schema
        self._home = home
        self._same = {"topic": home.topic, "partition": home.partition, "delivery_count": 0}
        self._columns = {field.name: _Column(field.type) for field in schema if field.name not in self._same}
        self.count = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self.count >= ROWS or self._bytes >= BYTES

    def add(self, batch: Batch, start: int, end: int) -> None:
        """The records of `batch` from `start` up to `end`, without it. CorruptBatch: it is damaged."""
        with _no_collection():
            unpacked = unpack(batch)
            for pieces in self._pieces(batch, unpacked, start, end):
                for name, column in self._columns.items():
                    column.add(getattr(pieces, name)())
        self._bytes += len(unpacked)

    def add_records(self, batch: Batch, records: Sequence[DecodedRecord], unpacked_bytes: int) -> None:
        """Some records of `batch`, which took so many bytes."""
        if not records:
            return
        pieces = Pieces(self._home, batch, records)
        for name, column in self._columns.items():
            column.add(getattr(pieces, name)())
        self.count += len(records)
        self._bytes += unpacked_bytes

    def _pieces(
        self, batch: Batch, unpacked: bytes | memoryview, start: int, end: int
    ) -> Iterable[Pieces | UniformPieces]:
        is_whole = start <= batch.base_offset and batch.next_offset <= end
        if is_whole and batch.is_dense and 0 <= batch.base_timestamp <= MOMENT_MS_MAX:
            runs = runs_of(bytes(unpacked), batch.record_count)
            if runs is not None:
                self.count += batch.record_count
                return [UniformPieces(self._home, batch, run) for run in runs]
        records = decode(batch, unpacked=unpacked)
        if not is_whole:
            records = [one for one in records if start <= one.offset < end]
        self.count += len(records)
        return [Pieces(self._home, batch, records)] if records else []

    def take(self) -> pa.RecordBatch:
        arrays = [
            pa.repeat(pa.scalar(self._same[field.name], field.type), self.count)
            if field.name in self._same
            else self._columns[field.name].take()
            for field in self._schema
        ]
        self.count = self._bytes = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _Column:
    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._values: list[Any] = []
        self._arrays: list[pa.Array] = []

    def add(self, more: list[Any] | pa.Array) -> None:
        if isinstance(more, list):
            self._values += more
        else:
            self._settle()
            self._arrays.append(more)

    def take(self) -> pa.Array:
        self._settle()
        arrays, self._arrays = self._arrays, []
        return pa.concat_arrays(arrays)

    def _settle(self) -> None:
        if self._values:
            values, self._values = self._values, []
            is_moment = pa.types.is_timestamp(self._type)
            self._arrays.append(pa.array(values, _MS).cast(self._type) if is_moment else pa.array(values, self._type))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Decoding makes many objects, all of which are gone soon; to look among them for cycles doubles its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _timestamp_type(batch: Batch, count: int) -> pa.Array:
    return _timestamp_types(batch.is_append_time, 1 << count.bit_length()).slice(0, count)


@lru_cache(TYPES_KEPT)
def _timestamp_types(is_append_time: bool, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(int(is_append_time), pa.int32()), count)


def _as_structs(headers: Headers) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in headers]


def _trace_id(home: Home, record: DecodedRecord) -> str:
    given = dict(record.headers).get(TRACEPARENT)  # where it is repeated, the last one counts
    parent = parse_traceparent(given)
    return make_trace_id(home.topic_id, home.partition, record.offset) if parent is None else parent.trace_id

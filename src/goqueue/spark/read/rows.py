"""From record batches to Arrow: whole columns at a time, because a Python object per field would cost most of the time.

A column is collected over many record batches, which may be small, and becomes an Arrow array when there are rows
enough: Spark is slow with small ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from goqueue.model.lanes import Lane
from goqueue.records.batch import Batch
from goqueue.records.decode import DecodedRecord, decode
from goqueue.records.native import Headers
from goqueue.records.wishes import batch_lane, lane_and_expiry
from goqueue.telemetry.trace_ids import TRACEPARENT, make_trace_id, parse_traceparent

ROWS = 20_000
"""A RecordBatch is given away when it has so many."""
BYTES = 64 * 1024 * 1024
"""Or when its values take so much: they may be large."""

_LANE_NAMES = [lane.name.lower() for lane in Lane]


class Home(NamedTuple):
    """Where rows come from."""

    topic: str
    topic_id: bytes
    partition: int


class Piece(NamedTuple):
    """Some records of one batch, column by column: Python values, or an Arrow array where that is easily had."""

    home: Home
    batch: Batch
    records: Sequence[DecodedRecord]

    def keys(self) -> list[bytes | None]:
        return [one.key for one in self.records]

    def values(self) -> list[bytes | None]:
        return [one.value for one in self.records]

    def timestamps(self) -> list[int]:
        return [one.timestamp for one in self.records]

    def offsets(self) -> pa.Array:
        first, last = self.records[0].offset, self.records[-1].offset
        if last - first == len(self.records) - 1:  # they rise
            return pa.arange(first, last + 1)
        return pa.array([one.offset for one in self.records], pa.int64())

    def timestamp_types(self) -> pa.Array:
        return pa.repeat(pa.scalar(int(self.batch.is_append_time), pa.int32()), len(self.records))

    def headers(self) -> list[list[dict[str, Any]]]:
        return [_as_structs(one.headers) for one in self.records]

    def priorities(self) -> list[str]:
        lane = batch_lane(self.batch)
        if lane is not None:
            return [_LANE_NAMES[lane]] * len(self.records)
        return [_LANE_NAMES[lane_and_expiry(one.headers)[0]] for one in self.records]

    def trace_ids(self) -> list[str]:
        return [_trace_id(self.home, one) for one in self.records]


_COLLECTED: dict[str, Callable[[Piece], list[Any] | pa.Array]] = {
    "key": Piece.keys,
    "value": Piece.values,
    "offset": Piece.offsets,
    "timestamp": Piece.timestamps,
    "timestampType": Piece.timestamp_types,
    "headers": Piece.headers,
    "priority": Piece.priorities,
    "trace_id": Piece.trace_ids,
}


class Rows:
    """The rows of one partition, until `take`. `schema` says which columns, by name."""

    def __init__(self, schema: pa.Schema, home: Home) -> None:
        self._schema = schema
        self._home = home
        self._same = {"topic": home.topic, "partition": home.partition, "delivery_count": 0}
        self._columns = {field.name: _Column(field.type) for field in schema if field.name in _COLLECTED}
        self.count = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self.count >= ROWS or self._bytes >= BYTES

    def add(self, batch: Batch, start: int, end: int) -> None:
        """The records of `batch` from `start` up to `end`, without it. CorruptBatch: it is damaged."""
        records: Sequence[DecodedRecord] = decode(batch)
        if batch.base_offset < start or batch.next_offset > end:
            records = [one for one in records if start <= one.offset < end]
        self.add_records(batch, records)

    def add_records(self, batch: Batch, records: Sequence[DecodedRecord]) -> None:
        """Some records of `batch`."""
        if not records:
            return
        piece = Piece(self._home, batch, records)
        for name, column in self._columns.items():
            column.add(_COLLECTED[name](piece))
        self.count += len(records)
        self._bytes += batch.size

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
            if pa.types.is_timestamp(self._type):
                self._arrays.append(pa.array(values, pa.timestamp("ms", self._type.tz)).cast(self._type))
            else:
                self._arrays.append(pa.array(values, self._type))


def _as_structs(headers: Headers) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in headers]


def _trace_id(home: Home, record: DecodedRecord) -> str:
    given = dict(record.headers).get(TRACEPARENT)  # where it is repeated, the last one counts
    parent = parse_traceparent(given)
    return make_trace_id(home.topic_id, home.partition, record.offset) if parent is None else parent.trace_id

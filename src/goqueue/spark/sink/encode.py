"""Rows become the records of batches, all columns at once: Arrow joins the bytes, and no Python runs for each row."""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from goqueue.model.lanes import Lane
from goqueue.records.batch import TRANSACTIONAL_BIT, Codec
from goqueue.records.encode import Head, assemble
from goqueue.records.wishes import DELAY_MS, DELIVER_AT, EXPIRES_AT, PREFIX, PRIORITY, lane_bits
from goqueue.spark.sink.columns import Rows
from goqueue.spark.sink.varints import TABLE_NUMBERS, counted, varint, varints

NORMAL = int(Lane.NORMAL)
BATCH_ROWS_MAX = TABLE_NUMBERS - 1
_EMPTY = pa.scalar(b"", pa.binary())
_NO_HEADERS = varint(0)
_ABSENT = varint(-1)


class Wished(NamedTuple):
    """The headers of some rows as they stand in their records, the delivery wishes among them."""

    counts: pa.Int64Array
    bytes: pa.BinaryArray


class Times(NamedTuple):
    spans: list[tuple[int, int]]
    """The first and the last of each batch."""
    deltas: pa.BinaryArray | None
    """How long after the first of its batch each record is, as it stands there. None: all are of one time."""


class Encoded(NamedTuple):
    data: bytearray
    length: int


def encode(rows: Rows, sizes: list[int], now_ms: int, codec: Codec) -> list[Encoded]:
    """Batches of so many rows each, one behind the other. Their producer is still to be written into them."""
    assert sum(sizes) == rows.length
    times = _times(rows, sizes, now_ms)
    records = _records(rows, headers_of(rows, now_ms), counted(sizes), times)
    _, ends, data = records.buffers()
    offsets = memoryview(ends).cast("i")[records.offset :]
    view = memoryview(data)
    is_mixed = rows.headers is not None and _has_wishes(rows.headers)
    made = []
    at = 0
    for size, (first_ms, last_ms) in zip(sizes, times.spans, strict=True):
        lane = None if is_mixed else _lane(rows, at, size)
        head = Head(size - 1, first_ms, last_ms, size, codec | TRANSACTIONAL_BIT | lane_bits(lane))
        made.append(Encoded(assemble(head, view[offsets[at] : offsets[at + size]]), size))
        at += size
    return made


def _times(rows: Rows, sizes: list[int], now_ms: int) -> Times:
    if rows.timestamp_ms is None:
        return Times([(now_ms, now_ms)] * len(sizes), None)
    each = pc.fill_null(rows.timestamp_ms, now_ms)
    spans, firsts, at = [], [], 0
    for size in sizes:
        found = pc.min_max(each.slice(at, size)).as_py()
        spans.append((found["min"], found["max"]))
        firsts.append(pa.repeat(pa.scalar(found["min"], pa.int64()), size))
        at += size
    return Times(spans, varints(pc.subtract(each, pa.concat_arrays(firsts))))


def _records(rows: Rows, headers: Wished | None, places: pa.BinaryArray, times: Times) -> pa.BinaryArray:
    """Length, attributes (0), time since that of the batch, place, key, value, headers."""
    parts: list[pa.Array | bytes] = [b"\0\0"] if times.deltas is None else [b"\0", times.deltas]
    parts.append(places)
    for column in (rows.key, rows.value):
        if column is None:
            parts.append(_ABSENT)
        else:
            parts += [varints(pc.fill_null(pc.binary_length(column), -1)), pc.fill_null(column, _EMPTY)]
    parts += [_NO_HEADERS] if headers is None else [varints(headers.counts), headers.bytes]
    body: pa.Array | int = sum(len(part) for part in parts if isinstance(part, bytes))
    for part in parts:
        if not isinstance(part, bytes):
            body = pc.add(body, pc.cast(pc.binary_length(part), pa.int64()))
    return _join(varints(body), *parts)


def _join(*parts: pa.Array | bytes) -> pa.BinaryArray:
    given = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*given, _EMPTY)


def _lane(rows: Rows, at: int, size: int) -> int | None:
    """That of all these rows; None: their headers say it, each for itself."""
    if rows.lane is None:
        return NORMAL
    found = pc.min_max(pc.fill_null(rows.lane.slice(at, size), NORMAL)).as_py()
    return int(found["min"]) if found["min"] == found["max"] else None


def _has_wishes(headers: pa.ListArray) -> bool:
    names = pc.struct_field(headers.flatten(), 0)
    return bool(pc.any(pc.starts_with(names, PREFIX)).as_py())


# -- headers


def headers_of(rows: Rows, now_ms: int) -> Wished | None:
    """None: no row has any."""
    found: list[Wished] = []
    is_explicit = False
    if rows.headers is not None:
        found.append(_given_headers(rows.headers))
        is_explicit = _has_wishes(rows.headers)
    if rows.lane is not None:
        # As our clients do: a row of the normal lane need not say so, unless its headers may say otherwise.
        lane = (
            rows.lane
            if is_explicit
            else pc.if_else(pc.equal(rows.lane, NORMAL), pa.scalar(None, pa.int64()), rows.lane)
        )
        names = pa.array([name.name.lower() for name in sorted(Lane)], pa.string())
        found.append(_wish(PRIORITY, names.take(lane)))
    for name, numbers in (
        (DELAY_MS, rows.delay_ms),
        (DELIVER_AT, rows.deliver_at_ms),
        (EXPIRES_AT, None if rows.ttl_ms is None else pc.add(rows.ttl_ms, now_ms)),
    ):
        if numbers is not None:
            found.append(_wish(name, numbers.cast(pa.string())))
    if not found:
        return None
    counts = found[0].counts
    for one in found[1:]:
        counts = pc.add(counts, one.counts)
    return Wished(counts, _join(*(one.bytes for one in found)))


def _wish(name: str, values: pa.StringArray) -> Wished:
    """A header where there is a value."""
    octets = values.cast(pa.binary())
    lengths = varints(pc.fill_null(pc.binary_length(octets), 0))
    header = _join(varint(len(name)) + name.encode(), lengths, octets)  # NULL where `octets` is
    return Wished(pc.is_valid(values).cast(pa.int64()), pc.fill_null(header, _EMPTY))


def _given_headers(headers: pa.ListArray) -> Wished:
    flat = headers.flatten()
    names = pc.struct_field(flat, 0).cast(pa.binary())
    values = pc.struct_field(flat, 1).cast(pa.binary())
    lengths = pc.fill_null(pc.binary_length(values), -1)
    each = _join(varints(pc.binary_length(names)), names, varints(lengths), pc.fill_null(values, _EMPTY))
    counts = pc.fill_null(pc.list_value_length(headers), 0).cast(pa.int64())
    ends = pc.cumulative_sum(counts)
    starts = pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())
    lists = pa.ListArray.from_arrays(starts, each)
    return Wished(counts, pc.binary_join(lists, _EMPTY))

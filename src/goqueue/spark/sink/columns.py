"""The columns of the sink: which there may be, of which types, and what Arrow brings in them, made uniform."""

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from goqueue.model.errors import InvalidMoment
from goqueue.model.moments import DURATION_FORMS, MOMENT_MS_MAX, format_moment, parse_duration_ms, shown
from goqueue.records.wishes import parse_lane
from goqueue.spark.errors import SparkError

Types = tuple[type[DataType], ...]

_OCTETS: Types = (BinaryType, StringType)
_WHOLE: Types = (ByteType, ShortType, IntegerType, LongType)
_DURATION: Types = (*_WHOLE, StringType, DayTimeIntervalType)
COLUMNS: dict[str, tuple[Types, str]] = {
    "key": (_OCTETS, "binary or string"),
    "value": (_OCTETS, "binary or string"),
    "headers": ((ArrayType,), "array<struct<key: string, value: binary>>"),
    "topic": ((StringType,), "string"),
    "partition": (_WHOLE, "int"),
    "timestamp": ((TimestampType, *_WHOLE), "timestamp, or milliseconds since 1970"),
    "priority": ((StringType, *_WHOLE), "string or int: critical, high, normal, low, background or 0 to 4"),
    "delay": (_DURATION, "milliseconds, text such as '5m', or a day-time interval"),
    "deliver_at": ((TimestampType, *_WHOLE), "timestamp, or milliseconds since 1970"),
    "ttl": (_DURATION, "milliseconds, text such as '5m', or a day-time interval"),
}

OF_READS = frozenset({"offset", "timestamptype", "trace_id", "delivery_count", "receipt"})
"""Columns that a read gives and the broker makes anew: rows may be written back as they were read."""


def check_schema(schema: StructType, *, has_topic: bool) -> None:
    """SparkError: no message could be made of such rows; all problems are told at once."""
    found = {field.name.lower(): field.dataType for field in schema.fields}
    problems = [
        f"there is no column {name!r} in a message; those are {', '.join(COLUMNS)}"
        for name in found.keys() - COLUMNS - OF_READS
    ]
    problems += [
        f"column {name!r} is {found[name].simpleString()}, but must be {meaning}"
        for name, (types, meaning) in COLUMNS.items()
        if name in found and not _fits(name, found[name], types)
    ]
    names = [field.name.lower() for field in schema.fields]
    problems += [f"column {name!r} is there {names.count(name)} times" for name in found if names.count(name) > 1]
    if "value" not in found:
        problems.append("column 'value' is missing: a message needs one, which may be NULL")
    if not has_topic and isinstance(found.get("topic", NullType()), NullType):
        problems.append("no topic is given: say .option(\"topic\", ...), or have a column 'topic'")
    if problems:
        raise SparkError("; ".join(sorted(problems)))


def _fits(name: str, given: DataType, types: Types) -> bool:
    if isinstance(given, NullType):
        return True
    if name == "headers":
        return isinstance(given, ArrayType) and _are_headers(given.elementType)
    return isinstance(given, types) and not isinstance(given, MapType)


def _are_headers(element: DataType) -> bool:
    if not isinstance(element, StructType) or len(element.fields) != 2:
        return False
    name, value = element.fields
    return isinstance(name.dataType, StringType) and isinstance(value.dataType, _OCTETS)


class Rows(NamedTuple):
    """Arrays of one length; None: there is no such column, or nothing but NULL in it."""

    length: int
    value: pa.BinaryArray | None
    key: pa.BinaryArray | None = None
    headers: pa.ListArray | None = None
    topic: pa.StringArray | None = None
    partition: pa.Int64Array | None = None
    lane: pa.Int64Array | None = None
    delay_ms: pa.Int64Array | None = None
    deliver_at_ms: pa.Int64Array | None = None
    ttl_ms: pa.Int64Array | None = None
    timestamp_ms: pa.Int64Array | None = None

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for column in self[1:] if column is not None)

    def take(self, places: pa.Array) -> "Rows":
        taken = (None if column is None else column.take(places) for column in self[1:])
        columns = (None if column is None or column.null_count == len(column) else column for column in taken)
        return Rows(len(places), *columns)


class Unfit(Exception):
    """Of the row at this place: what its column holds, and why that cannot be."""

    def __init__(self, place: int, words: str) -> None:
        super().__init__(words)
        self.place = place


def rows_of(batch: pa.RecordBatch, topic: str | None = None) -> Rows:
    """SparkError: a value that is none of what its column may hold. `topic`: of all rows, if they do not say it."""
    columns = {
        name.lower(): column
        for name, column in zip(batch.schema.names, batch.columns)
        if column.null_count < len(column) and not pa.types.is_null(column.type)
    }

    def get(name: str, make: Callable[[pa.Array], pa.Array]) -> pa.Array | None:
        if name not in columns:
            return None
        try:
            return make(columns[name])
        except Unfit as unfit:
            where = columns["topic"][unfit.place].as_py() if topic is None and "topic" in columns else topic
            raise SparkError(f"column {name!r} holds {unfit}; the row is for topic {where!r}") from None

    return Rows(
        batch.num_rows,
        get("value", _octets),
        get("key", _octets),
        get("headers", _headers),
        get("topic", lambda column: column),
        get("partition", _whole),
        get("priority", _lanes),
        get("delay", _durations),
        get("deliver_at", lambda column: _alone(_moments(column), columns.get("delay"))),
        get("ttl", _durations),
        get("timestamp", _moments),
    )


def _octets(column: pa.Array) -> pa.Array:
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def _whole(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64())


def _headers(column: pa.Array) -> pa.Array:
    flat = column.flatten()
    nameless = pc.or_(pc.is_null(flat), pc.is_null(pc.struct_field(flat, 0)))
    found = pc.index(nameless, True).as_py()
    if found >= 0:
        raise Unfit(pc.list_parent_indices(column)[found].as_py(), "a header without a name")
    return column


def _moments(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    return _in_time(_whole(column), format_moment)


def _alone(moments: pa.Array, delays: pa.Array | None) -> pa.Array:
    if delays is not None:
        found = pc.index(pc.and_(pc.is_valid(moments), pc.is_valid(delays)), True).as_py()
        if found >= 0:
            raise Unfit(found, f"{format_moment(moments[found].as_py())} beside 'delay': say either")
    return moments


def _durations(column: pa.Array) -> pa.Array:
    def parse(text: str) -> int:
        try:
            return parse_duration_ms(text)
        except InvalidMoment:
            raise ValueError(f"{shown(text)}, which is no duration: possible are {DURATION_FORMS}") from None

    if _is_text(column.type):
        return _mapped(column, parse)
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("ms"), safe=False)
    return _in_time(_whole(column), str)


def _lanes(column: pa.Array) -> pa.Array:
    def parse(text: str) -> int:
        lane = parse_lane(text)
        if lane is None:
            raise ValueError(f"{shown(text)}, but must be {COLUMNS['priority'][1]}")
        return lane

    return _mapped(column if _is_text(column.type) else column.cast(pa.string()), parse)


def _mapped(column: pa.Array, parse: Callable[[str], int]) -> pa.Array:
    """There are many rows and few different texts."""
    encoded = column.dictionary_encode()
    numbers = []
    for place, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            numbers.append(parse(text))
        except ValueError as error:
            raise Unfit(pc.index(encoded.indices, place).as_py(), str(error)) from None
    return pa.array(numbers, pa.int64()).take(encoded.indices)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _in_time(numbers: pa.Array, written: Callable[[int], str]) -> pa.Array:
    bounds = pc.min_max(numbers).as_py()
    for bound, is_wrong, why in (
        (bounds["min"], bounds["min"] < 0, "which is below 0"),
        (bounds["max"], bounds["max"] > MOMENT_MS_MAX, "which is more than there is until the year 9999"),
    ):
        if is_wrong:
            raise Unfit(pc.index(numbers, bound).as_py(), f"{written(bound)}, {why}")
    return numbers

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

from goqueue.model.errors import GoQueueError
from goqueue.model.moments import parse_duration_ms
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
    "priority": ((StringType, *_WHOLE), "string or int: critical, high, normal, low, background or 0 to 4"),
    "delay": (_DURATION, "milliseconds, text such as '5m', or a day-time interval"),
    "deliver_at": ((TimestampType, *_WHOLE), "timestamp, or milliseconds since 1970"),
    "ttl": (_DURATION, "milliseconds, text such as '5m', or a day-time interval"),
}


def check_schema(schema: StructType, *, has_topic: bool) -> None:
    """SparkError: no message could be made of such rows; all problems are told at once."""
    found = {field.name.lower(): field.dataType for field in schema.fields}
    problems = [
        f"there is no column {name!r} in a message; those are {', '.join(COLUMNS)}" for name in found.keys() - COLUMNS
    ]
    problems += [
        f"column {name!r} is {found[name].simpleString()}, but must be {meaning}"
        for name, (types, meaning) in COLUMNS.items()
        if name in found and not _fits(name, found[name], types)
    ]
    if "value" not in found:
        problems.append("column 'value' is missing: a message needs one, which may be NULL")
    if not has_topic and "topic" not in found:
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

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for column in self[1:] if column is not None)

    def take(self, places: pa.Array) -> "Rows":
        taken = (None if column is None else column.take(places) for column in self[1:])
        columns = (None if column is None or column.null_count == len(column) else column for column in taken)
        return Rows(len(places), *columns)


def rows_of(batch: pa.RecordBatch) -> Rows:
    """SparkError: a value that is none of what its column may hold."""
    columns = {
        name.lower(): column
        for name, column in zip(batch.schema.names, batch.columns)
        if column.null_count < len(column) and not pa.types.is_null(column.type)
    }

    def get(name: str, make: Callable[[pa.Array], pa.Array]) -> pa.Array | None:
        return make(columns[name]) if name in columns else None

    return Rows(
        batch.num_rows,
        get("value", _octets),
        get("key", _octets),
        get("headers", lambda column: column),
        get("topic", lambda column: column),
        get("partition", _whole),
        get("priority", _lanes),
        get("delay", lambda column: _durations("delay", column)),
        get("deliver_at", _moments),
        get("ttl", lambda column: _durations("ttl", column)),
    )


def _octets(column: pa.Array) -> pa.Array:
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def _whole(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64())


def _moments(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    return _from_zero("deliver_at", _whole(column))


def _durations(name: str, column: pa.Array) -> pa.Array:
    def parse(text: str) -> int:
        try:
            return parse_duration_ms(text)
        except GoQueueError as error:
            raise SparkError(f"column {name!r}: {error}") from None

    if _is_text(column.type):
        return _mapped(column, parse)
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("ms"), safe=False)
    return _from_zero(name, _whole(column))


def _lanes(column: pa.Array) -> pa.Array:
    def parse(text: str) -> int:
        lane = parse_lane(text)
        if lane is None:
            raise SparkError(f"column 'priority' holds {text!r}, but must be {COLUMNS['priority'][1]}")
        return lane

    return _mapped(column if _is_text(column.type) else column.cast(pa.string()), parse)


def _mapped(column: pa.Array, parse: Callable[[str], int]) -> pa.Array:
    """There are many rows and few different texts."""
    encoded = column.dictionary_encode()
    numbers = pa.array([parse(text) for text in encoded.dictionary.to_pylist()], pa.int64())
    return numbers.take(encoded.indices)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _from_zero(name: str, numbers: pa.Array) -> pa.Array:
    least = pc.min(numbers).as_py()
    if least is not None and least < 0:
        raise SparkError(f"column {name!r} holds {least}, which is below 0")
    return numbers

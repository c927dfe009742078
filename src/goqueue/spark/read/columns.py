"""The columns that a message has. A read gives the usual ones, or those that `columns` or `.schema(...)` name."""

import difflib
from typing import NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options, Part

HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


class Column(NamedTuple):
    name: str
    type: DataType
    meaning: str
    is_usual: bool = False
    may_be_null: bool = False


COLUMNS: tuple[Column, ...] = (
    Column("key", BinaryType(), "null: it has none", is_usual=True, may_be_null=True),
    Column("value", BinaryType(), "null: a tombstone", is_usual=True, may_be_null=True),
    Column("topic", StringType(), "", is_usual=True),
    Column("partition", IntegerType(), "", is_usual=True),
    Column("offset", LongType(), "", is_usual=True),
    Column("timestamp", TimestampType(), "the producer's, or that of the append", is_usual=True, may_be_null=True),
    Column("timestampType", IntegerType(), "0: the producer's, 1: that of the append", is_usual=True),
    Column("headers", HEADERS_TYPE, "in their order, never null; `includeHeaders` adds them to the usual ones"),
    Column("priority", StringType(), "critical, high, normal, low or background"),
    Column("trace_id", StringType(), "of the trace it belongs to, for `goqueue trace get`"),
    Column("delivery_count", IntegerType(), "how often it was delivered; 0 unless it is leased"),
)
RECEIPT = Column("receipt", StringType(), "what settles it")
LEASED = ("delivery_count", "priority", RECEIPT.name)
"""What rows have besides the usual columns, in queue mode."""


def known_columns(part: Part) -> dict[str, Column]:
    columns = (*COLUMNS, RECEIPT) if part is Part.QUEUE else COLUMNS
    return {column.name: column for column in columns}


def schema_of(options: Options) -> StructType:
    """What a read with these options gives. SparkError: a column that there is not."""
    known = known_columns(options.part)
    usual = tuple(column.name for column in COLUMNS if column.is_usual)
    wanted: tuple[str, ...] = options.get("columns") or (*usual, *(LEASED if options.part is Part.QUEUE else ()))
    if options.get("includeHeaders") and "headers" not in wanted:
        wanted = (*wanted, "headers")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SparkError("; ".join(_no_such_column(name, known) for name in unknown))
    twice = {name for name in wanted if wanted.count(name) > 1}
    if twice:
        raise SparkError(f"columns names {', '.join(sorted(twice))} more than once")
    return StructType([StructField(name, known[name].type) for name in wanted])


def check_schema(schema: StructType, part: Part = Part.BATCH) -> None:
    """What `.schema(...)` was given: some of our columns, each of its type."""
    problems = []
    known = known_columns(part)
    for field in schema.fields:
        column = known.get(field.name)
        if column is None:
            problems.append(_no_such_column(field.name, known))
        elif field.dataType.simpleString() != column.type.simpleString():
            problems.append(
                f"column {field.name} is {column.type.simpleString()}, not {field.dataType.simpleString()}:"
                " cast it after the read"
            )
        elif column.may_be_null and not field.nullable:
            problems.append(f"column {field.name} may be null")
    if problems:
        raise SparkError("; ".join(problems))


def _no_such_column(name: str, known: dict[str, Column]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
    return f"there is no column {name!r}; {hint}"

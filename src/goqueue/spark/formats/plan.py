"""What the columns of a read are whose values are decoded: those of the schema, and beside them those of the message.

The fields of the latest schema are columns of their own names. What a message has besides keeps its name, with `_`
before it where the schema has a field of that name.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from goqueue.spark.errors import SparkError
from goqueue.spark.formats.registry import Registry, SchemaText
from goqueue.spark.formats.shapes import Shape, Unsupported
from goqueue.spark.options import Options, Part, names
from goqueue.spark.read.columns import LEASED, known_columns
from goqueue.spark.segments.directory import find_logs
from goqueue.spark.where import Where, kafka_at

ANY_TOPIC = ""
ERROR, VALUE = "_error", "_value"
WHOLE = "value"
"""The column of a value that is no record."""


class Format(Protocol):
    @property
    def shape(self) -> Shape: ...

    def decode(self, payload: bytes, writer: SchemaText, is_framed: bool) -> Any:
        """Of a value without the id of its schema. Misfit: it is none."""


def make_format(name: str, schema: SchemaText) -> Format:
    """SparkError: a schema of another format, or one that says what no column can be."""
    if schema.kind.lower() != name:
        raise SparkError(f"valueFormat={name}, but schema {schema.id} of the registry is {schema.kind}")
    try:
        if name == "avro":
            from goqueue.spark.formats.avro import AvroFormat

            return AvroFormat(schema)
        if name == "protobuf":
            from goqueue.spark.formats.protobuf import ProtobufFormat

            return ProtobufFormat(schema)
        from goqueue.spark.formats.json_schema import JsonFormat

        return JsonFormat(schema)
    except Unsupported as error:
        raise SparkError(f"schema {schema.id} cannot be columns: {error}") from None


class Column(NamedTuple):
    """Where it comes from: one of them is said."""

    name: str
    type: DataType
    field: str | None = None
    raw: str | None = None
    is_usual: bool = True


@dataclass(frozen=True)
class Decoding:
    """All that an executor needs to know, as plain data."""

    server: Where
    format: str
    subject: str | None
    latest: dict[str, SchemaText]
    """By topic; ANY_TOPIC: of all of them."""
    fields: StructType
    bad_rows: str
    servers: Where | None
    part: Part


def decoding_of(options: Options, server: Where) -> Decoding:
    """Asks the registry. SparkError: there is no schema, or the topics have different ones."""
    name = options.get("valueFormat")
    bad_rows = options.get("badRows")
    if bad_rows == "deadletter" and options.part is Part.SEGMENTS:
        raise SparkError("badRows=deadletter needs a broker that takes the letters: a read of segments has none")
    subject: str | None = options.get("valueSubject")
    with Registry(server) as registry:
        latest = {
            topic: _latest(registry, topic, subject)
            for topic in ([ANY_TOPIC] if subject else _topics(options, registry))
        }
    if not latest:
        raise SparkError("no topic is there yet, so nobody knows the columns: say valueSubject")
    types = {topic: fields_of(make_format(name, schema).shape) for topic, schema in latest.items()}
    (first, fields), *others = types.items()
    for topic, other in others:
        if other != fields:
            raise SparkError(
                f"topics {first} and {topic} have different columns: {fields.simpleString()} and"
                f" {other.simpleString()}; read them apart, or say valueSubject"
            )
    has_brokers = options.part is not Part.SEGMENTS and options.get("kafka.bootstrap.servers") is not None
    servers = kafka_at(options) if has_brokers else None
    return Decoding(server, name, subject, latest, fields, bad_rows, servers, options.part)


def subjects_of(topic: str, subject: str | None) -> tuple[str, ...]:
    """Where the latest schema is: the one that is named, or those that validation on publish looks at."""
    return (subject,) if subject else (f"{topic}-value", topic)


def _latest(registry: Registry, topic: str, subject: str | None) -> SchemaText:
    found = registry.latest(subjects_of(topic, subject))
    if found is None:
        tried = " or ".join(subjects_of(topic, subject))
        raise SparkError(f"the registry at {registry.server} has no subject {tried}: say valueSubject")
    return found


def _topics(options: Options, registry: Registry) -> Sequence[str]:
    if options.part is Part.SEGMENTS:
        return sorted({log.topic for log in find_logs(options)})
    if options.has("subscribePattern"):
        pattern = re.compile(options.get("subscribePattern"))
        return sorted(filter(pattern.fullmatch, registry.admin.topics()))
    if options.has("assign"):
        return sorted(options.get("assign"))
    named: Iterable[str] = options.get("subscribe") or names(options.need("path"))
    return sorted(set(named))


def fields_of(shape: Shape) -> StructType:
    return shape.type if isinstance(shape.type, StructType) else StructType([StructField(WHOLE, shape.type)])


def columns_of(decoding: Decoding) -> dict[str, Column]:
    """All that a read can give, in their order. SparkError: names that Spark cannot tell apart."""
    found: dict[str, Column] = {}
    for field in decoding.fields.fields:
        if field.name.lower() in found:
            raise SparkError(f"the schema has {field.name!r} twice, but for upper and lower case")
        found[field.name.lower()] = Column(field.name, field.dataType, field=field.name)
    leased = LEASED if decoding.part is Part.QUEUE else ()
    others = [
        Column(one.name, one.type, raw=one.name, is_usual=one.is_usual or one.name in leased)
        for one in known_columns(decoding.part).values()
        if one.name != WHOLE
    ]
    if decoding.bad_rows == "permissive":
        others += [Column(ERROR, StringType()), Column(VALUE, BinaryType())]
    for column in others:
        name = column.name
        while name.lower() in found:
            name = f"_{name}"
        found[name.lower()] = column._replace(name=name, raw=column.raw or column.name)
    return {column.name: column for column in found.values()}


def typed_schema(options: Options, decoding: Decoding) -> StructType:
    there = columns_of(decoding)
    wanted: Sequence[str] = options.get("columns") or [
        column.name
        for column in there.values()
        if column.is_usual or (column.raw == "headers" and options.get("includeHeaders"))
    ]
    chosen = [_look_up(there, name) for name in wanted]
    return StructType([StructField(column.name, column.type) for column in chosen])


def chosen_columns(schema: StructType, decoding: Decoding) -> list[Column]:
    """Of a schema that Spark gives back, or that `.schema(...)` was given."""
    there = columns_of(decoding)
    chosen = []
    for field in schema.fields:
        column = _look_up(there, field.name)
        if column.type.simpleString() != field.dataType.simpleString():
            raise SparkError(
                f"column {field.name} is {column.type.simpleString()} by the latest schema, not"
                f" {field.dataType.simpleString()}: if the schema is new, load again"
            )
        chosen.append(column)
    return chosen


def _look_up(there: dict[str, Column], name: str) -> Column:
    if name not in there:
        close = difflib.get_close_matches(name, there, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(there)}"
        raise SparkError(f"there is no column {name!r}; {hint}")
    return there[name]

"""From rows with raw values to rows with typed columns, a RecordBatch at a time. This runs on the executors."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from goqueue.records.schema_framing import LATEST, PREFIX_BYTES, named_schema
from goqueue.spark.errors import SparkError
from goqueue.spark.formats.dead_letters import Letter, write_letters
from goqueue.spark.formats.plan import (
    ANY_TOPIC,
    ERROR,
    VALUE,
    Column,
    Decoding,
    Format,
    fields_of,
    make_format,
    subjects_of,
)
from goqueue.spark.formats.registry import Registry, SchemaText
from goqueue.spark.formats.shapes import Misfit
from goqueue.spark.read.columns import known_columns
from goqueue.spark.versions import arrow_schema

NEEDED = ("value", "headers", "topic", "partition", "offset")
FOR_LETTERS = ("key", "timestamp")
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)
_DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError)
"""What the libraries that decode raise about a value that nobody has thought of. It is the value's fault, and one value
must not stop all that come after it."""

Pairs = list[tuple[str, bytes | None]]


def raw_schema(columns: Sequence[Column], decoding: Decoding, *, has_error: bool) -> StructType:
    """What must be read so that these columns can be made."""
    wanted = {column.raw for column in columns} | set(NEEDED)
    if decoding.bad_rows == "deadletter":
        wanted |= set(FOR_LETTERS)
    fields = [StructField(one.name, one.type) for one in known_columns(decoding.part).values() if one.name in wanted]
    if has_error:
        fields.append(StructField(ERROR, StringType()))
    return StructType(fields)


class Typing:
    """Of one task."""

    def __init__(self, decoding: Decoding, columns: Sequence[Column]) -> None:
        self._decoding = decoding
        self._columns = columns
        schema = StructType([StructField(column.name, column.type) for column in columns])
        self._schema = arrow_schema(schema)
        self._fields = pa.struct(list(arrow_schema(decoding.fields)))
        self._formats: dict[str, _Latest] = {}
        self._registry = Registry(decoding.server)

    def __enter__(self) -> "Typing":
        return self

    def __exit__(self, *_: object) -> None:
        self._registry.__exit__()

    def apply(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = self._typed(batch)
            if made.num_rows:
                yield made

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        errors = self._damage(batch)
        values = batch.column("value").to_pylist()
        headers = batch.column("headers").to_pylist()
        topics = batch.column("topic").to_pylist()
        made = [
            None if value is None else self._decoded(topics[number], value, headers[number], number, errors)
            for number, value in enumerate(values)
        ]
        typed = self._array(made, errors)
        if errors and self._decoding.bad_rows == "failfast":
            number = min(errors)
            raise SparkError(f"{_place(batch, number)}: {errors[number]}; badRows=permissive or deadletter goes on")
        if errors and self._decoding.bad_rows == "deadletter":
            self._write_letters(batch, errors)
            good = pa.array([number not in errors for number in range(batch.num_rows)])
            batch, typed, errors, values = batch.filter(good), typed.filter(good), {}, []
        fields = dict(zip(self._decoding.fields.names, typed.flatten()))
        arrays = [self._column(column, batch, fields, values, errors) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _damage(self, batch: pa.RecordBatch) -> dict[int, str]:
        """What the reader of segments could not read."""
        if ERROR not in batch.schema.names:
            return {}
        return {number: why for number, why in enumerate(batch.column(ERROR).to_pylist()) if why is not None}

    def _column(
        self, column: Column, batch: pa.RecordBatch, fields: dict[str, Any], values: list[Any], errors: dict[int, str]
    ) -> Any:
        if column.field is not None:
            return fields[column.field]
        if column.raw == ERROR:
            return pa.array([errors.get(number) for number in range(batch.num_rows)], pa.string())
        if column.raw == VALUE:
            return pa.array(
                [values[number] if number in errors else None for number in range(batch.num_rows)], pa.binary()
            )
        return batch.column(column.raw)

    # -- values

    def _decoded(self, topic: str, value: bytes, headers: Any, number: int, errors: dict[int, str]) -> Any:
        try:
            return self._format(topic).row(value, _pairs(headers) if headers else [])
        except Misfit as misfit:
            errors[number] = str(misfit)
            return None

    def _format(self, topic: str) -> "_Latest":
        found = self._formats.get(topic)
        if found is None:
            found = self._formats[topic] = self._make_format(topic)
        return found

    def _make_format(self, topic: str) -> "_Latest":
        """A topic that appeared after the read was planned is asked for."""
        known = self._decoding
        latest = known.latest.get(topic) or known.latest.get(ANY_TOPIC)
        if latest is not None:
            return _Latest(make_format(known.format, latest), latest, self._registry)
        latest = self._registry.latest(subjects_of(topic, None))
        if latest is None:
            raise SparkError(f"topic {topic} is new and has no schema in the registry at {known.server}")
        made = make_format(known.format, latest)
        if fields_of(made.shape) != known.fields:
            raise SparkError(f"topic {topic} has a schema with other columns than those that were planned: load again")
        return _Latest(made, latest, self._registry)

    def _array(self, made: list[Any], errors: dict[int, str]) -> Any:
        try:
            return pa.array(made, self._fields)
        except _UNFIT:
            pass
        for number, row in enumerate(made):
            try:
                pa.array([row], self._fields)
            except _UNFIT as error:
                errors[number] = f"a value that its column cannot hold: {error}"
                made[number] = None
        return pa.array(made, self._fields)

    def _write_letters(self, batch: pa.RecordBatch, errors: dict[int, str]) -> None:
        by_topic: dict[str, list[Letter]] = {}
        for number, why in errors.items():
            row = {name: batch.column(name)[number].as_py() for name in (*NEEDED, "key")}
            timestamp_ms = batch.column("timestamp")[number].value // 1000
            place = row["partition"], row["offset"], timestamp_ms
            letter = Letter(*place, row["key"], row["value"], _pairs(row["headers"]), why)
            by_topic.setdefault(row["topic"], []).append(letter)
        servers = self._decoding.servers
        assert servers is not None
        for topic, letters in by_topic.items():
            write_letters(servers, self._registry.admin, topic, letters)


class _Latest:
    """Decodes by the latest schema what any of its versions wrote."""

    def __init__(self, made: Format, latest: SchemaText, registry: Registry) -> None:
        self._made = made
        self._convert = made.shape.convert
        self._latest = latest
        self._registry = registry
        self._is_record = isinstance(made.shape.type, StructType)

    def row(self, value: bytes, headers: Pairs) -> Any:
        try:
            schema_id, is_framed = named_schema(value, headers)
        except ValueError as error:
            raise Misfit(str(error)) from None
        writer: SchemaText | None = self._latest
        if schema_id not in (LATEST, self._latest.id):
            writer = self._registry.by_id(schema_id)
        if writer is None:
            raise Misfit(f"there is no schema {schema_id} in the registry")
        if writer.kind != self._latest.kind:
            raise Misfit(f"schema {schema_id} is {writer.kind}, not {self._latest.kind}")
        try:
            made = self._made.decode(value[PREFIX_BYTES:] if is_framed else value, writer, is_framed)
            if self._convert is not None and made is not None:
                made = self._convert(made)
        except Misfit as misfit:
            raise Misfit(f"does not fit schema {writer.id}: {misfit}") from None
        except _DAMAGE as error:
            why = str(error) or type(error).__name__
            raise Misfit(f"does not fit schema {writer.id}: {why}") from None
        return made if self._is_record else {"value": made}


def _pairs(headers: Any) -> Pairs:
    return [(each["key"], each["value"]) for each in headers or ()]


def _place(batch: pa.RecordBatch, number: int) -> str:
    topic, partition, offset = (batch.column(name)[number].as_py() for name in ("topic", "partition", "offset"))
    return f"topic {topic}, partition {partition}, offset {offset}"

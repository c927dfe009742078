"""Avro: types as spark-avro maps them, values read by `fastavro`, which resolves what older schemas wrote."""

from datetime import time
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import msgspec
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from goqueue.spark.formats.avro_defaults import make_defaults
from goqueue.spark.formats.registry import SchemaText
from goqueue.spark.formats.shapes import Misfit, Path, Shape, Unsupported, list_of, map_of, struct_of

PRECISION_MAX = 38
PLAIN: dict[str, DataType] = {
    "null": NullType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
WIDER = {frozenset(("int", "long")): LongType(), frozenset(("float", "double")): DoubleType()}


def writer_of(schema: SchemaText) -> Any:
    return _parsed(schema, {})


def _parsed(schema: SchemaText, named: dict[str, Any]) -> Any:
    for each in schema.dependencies:
        fastavro.parse_schema(_document(each.text), named)
    return fastavro.parse_schema(_document(schema.text), named)


def _document(text: str) -> Any:
    return text.strip() if text.strip() in PLAIN else msgspec.json.decode(text)


class AvroFormat:
    def __init__(self, schema: SchemaText) -> None:
        self._named: dict[str, Any] = {}
        self._reader = _parsed(schema, self._named)
        make_defaults(self._reader, self._named)
        self._path = Path()
        self.shape = self._of(self._reader)

    def decode(self, payload: bytes, writer: SchemaText, is_framed: bool) -> Any:  # noqa: ARG002
        source = BytesIO(payload)
        try:
            value = fastavro.schemaless_reader(source, writer.kept(writer_of), self._reader)
        except Exception as error:  # noqa: BLE001  it raises whatever its parts do
            raise Misfit(f"no value of schema {writer.id}: {str(error) or type(error).__name__}") from None
        left = len(payload) - source.tell()
        if left:
            raise Misfit(f"{left} bytes are left behind a value of schema {writer.id}")
        return value

    # -- types

    def _of(self, schema: Any) -> Shape:
        if isinstance(schema, str):
            return Shape(PLAIN[schema]) if schema in PLAIN else self._of(self._named[schema])
        if isinstance(schema, list):
            return self._of_union(schema)
        kind = schema["type"]
        if isinstance(kind, list | dict):
            return self._of(kind)
        return _of_logical(kind, schema) or self._of_kind(kind, schema)

    def _of_kind(self, kind: str, schema: Any) -> Shape:
        match kind:
            case "record" | "error":
                return self._of_record(schema)
            case "array":
                return list_of(self._of(schema["items"]))
            case "map":
                return map_of(self._of(schema["values"]))
            case "enum" | "fixed":
                return Shape(StringType() if kind == "enum" else BinaryType())
        return self._of(kind)

    def _of_record(self, schema: Any) -> Shape:
        self._path.enter(schema["name"])
        fields = [(field["name"], self._of(field["type"])) for field in schema["fields"]]
        self._path.leave()
        return struct_of(fields)

    def _of_union(self, branches: list[Any]) -> Shape:
        left = [each for each in branches if each != "null"]
        if not left:
            return Shape(NullType())
        if len(left) == 1:
            return self._of(left[0])
        names = frozenset(each for each in left if isinstance(each, str))
        if len(names) == len(left) and names in WIDER:
            return Shape(WIDER[names])
        shown = ", ".join(each if isinstance(each, str) else str(each.get("name", each["type"])) for each in left)
        raise Unsupported(f"a union of {shown} is no single type; null and one other are")


def _of_logical(kind: str, schema: Any) -> Shape | None:
    """None: it has none, or one that says nothing about how it is read."""
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _of_decimal(schema)
    return _LOGICAL.get((logical, kind))


def _of_decimal(schema: Any) -> Shape:
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if not 0 < precision <= PRECISION_MAX:
        raise Unsupported(f"a decimal of {precision} digits: a column has at most {PRECISION_MAX}")

    def fitting(value: Decimal) -> Decimal:
        if value.adjusted() >= precision - scale:
            raise Misfit(f"{value} has more than {precision} digits")
        return value

    return Shape(DecimalType(precision, scale), fitting)


def _time_text(value: time) -> str:
    return value.isoformat()


_LOGICAL: dict[tuple[str | None, str], Shape] = {
    ("date", "int"): Shape(DateType()),
    ("timestamp-millis", "long"): Shape(TimestampType()),
    ("timestamp-micros", "long"): Shape(TimestampType()),
    ("local-timestamp-millis", "long"): Shape(TimestampNTZType()),
    ("local-timestamp-micros", "long"): Shape(TimestampNTZType()),
    ("time-millis", "int"): Shape(StringType(), _time_text),
    ("time-micros", "long"): Shape(StringType(), _time_text),
    ("uuid", "string"): Shape(StringType(), str),
    ("uuid", "fixed"): Shape(StringType(), str),
}

"""Protobuf: the registry gives compiled descriptors, so no compiler is needed here; fields are known by their numbers,
so the latest schema reads what all compatible ones wrote.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from goqueue.model.schemas import InvalidSchema
from goqueue.records.protobuf_files import encoded_file, installed_file, message_at, pool_of
from goqueue.records.schema_framing import message_indexes
from goqueue.spark.formats.registry import SchemaText
from goqueue.spark.formats.shapes import Misfit, Path, Shape, Unsupported

SELF = "default.proto"
WELL_KNOWN = (
    any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2, descriptor_pb2,
)  # fmt: skip
"""Imported so that the library knows their descriptors."""
JSON_TEXT = frozenset(("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"))
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
TYPES: dict[int, DataType] = {
    FieldDescriptor.CPPTYPE_INT32: IntegerType(),
    FieldDescriptor.CPPTYPE_INT64: LongType(),
    FieldDescriptor.CPPTYPE_UINT32: LongType(),
    FieldDescriptor.CPPTYPE_UINT64: DecimalType(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: DoubleType(),
    FieldDescriptor.CPPTYPE_FLOAT: FloatType(),
    FieldDescriptor.CPPTYPE_BOOL: BooleanType(),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def file_of(schema: SchemaText) -> FileDescriptor:
    files = [encoded_file(each.name, each.text) for each in schema.dependencies]
    pool = pool_of([*files, encoded_file(SELF, schema.text)], installed_file)
    found: FileDescriptor = pool.FindFileByName(SELF)
    return found


class ProtobufFormat:
    """The first message of a schema is what its values are."""

    def __init__(self, schema: SchemaText) -> None:
        self._id = schema.id
        try:
            self._message = message_at(file_of(schema), (0,))
        except (InvalidSchema, ValueError) as error:
            raise Unsupported(str(error)) from None
        self._class = message_factory.GetMessageClass(self._message)
        self._path = Path()
        self.shape = self._of_message(self._message)

    def decode(self, payload: bytes, writer: SchemaText, is_framed: bool) -> Any:
        start = 0
        if is_framed:
            try:
                indexes, start = message_indexes(payload)
                written = message_at(writer.kept(file_of), indexes)
            except ValueError as error:
                raise Misfit(str(error)) from None
            if written.full_name != self._message.full_name:
                raise Misfit(f"it is a {written.full_name}, and the columns are those of {self._message.full_name}")
        try:
            return self._class.FromString(payload[start:])
        except DecodeError:
            raise Misfit(f"no {self._message.full_name} of schema {self._id}") from None

    # -- types

    def _of_message(self, message: Descriptor) -> Shape:
        if message.full_name == "google.protobuf.Timestamp":
            return Shape(TimestampType(), _moment)
        if message.full_name in JSON_TEXT:
            return Shape(StringType(), _json_text)
        if message.full_name in WRAPPERS:
            inner = self._of_single(message.fields_by_name["value"])
            convert = inner.convert
            return Shape(inner.type, lambda value: value.value if convert is None else convert(value.value))
        self._path.enter(message.full_name)
        fields = [(field, self._of_field(field)) for field in message.fields]
        self._path.leave()
        type_ = StructType([StructField(field.name, shape.type) for field, shape in fields])
        getters = [(field.name, _getter(field, shape.convert)) for field, shape in fields]
        return Shape(type_, lambda value: {name: get(value) for name, get in getters})

    def _of_field(self, field: FieldDescriptor) -> Shape:
        if not field.is_repeated:
            return self._of_single(field)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key = self._of_single(field.message_type.fields_by_name["key"])
            value = self._of_single(field.message_type.fields_by_name["value"])
            type_ = MapType(key.type, value.type)
            return Shape(
                type_, lambda found: [(_made(key.convert, one), _made(value.convert, found[one])) for one in found]
            )
        item = self._of_single(field)
        return Shape(ArrayType(item.type), lambda found: [_made(item.convert, one) for one in found])

    def _of_single(self, field: FieldDescriptor) -> Shape:
        if field.message_type is not None:
            return self._of_message(field.message_type)
        if field.enum_type is not None:
            names = {value.number: value.name for value in field.enum_type.values}
            return Shape(StringType(), lambda number: names.get(number, str(number)))
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return Shape(BinaryType() if field.type == FieldDescriptor.TYPE_BYTES else StringType())
        convert = Decimal if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else None
        return Shape(TYPES[field.cpp_type], convert)


def _getter(field: FieldDescriptor, convert: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    name = field.name
    if not field.has_presence or field.is_repeated:
        return lambda message: _made(convert, getattr(message, name))
    return lambda message: _made(convert, getattr(message, name)) if message.HasField(name) else None


def _made(convert: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if convert is None else convert(value)


def _json_text(value: Any) -> str:
    try:
        return json_format.MessageToJson(value, indent=None)
    except (json_format.Error, ValueError) as error:  # it holds a number that JSON has no word for
        raise Misfit(str(error)) from None


def _moment(value: Any) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    except OverflowError:
        raise Misfit(f"{value.seconds} seconds since 1970 are no moment of a calendar") from None

"""The columns of a table: those that every message has, and those of its value."""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
from pyiceberg.exceptions import ResolveError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids, promote
from pyiceberg.transforms import IdentityTransform, parse_transform
from pyiceberg.types import BinaryType, IcebergType, ListType, MapType, NestedField, StringType, StructType
from pyspark.sql import types as spark

from goqueue.model.table_options import Part
from goqueue.spark.errors import SparkError

_MOMENT = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
OWN = pa.schema(
    [
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", _MOMENT),
        ("_key", pa.binary()),
        ("_headers", HEADERS),
        ("_priority", pa.string()),
        ("_deliver_at", _MOMENT),
    ]
)
VALUE = pa.schema([("value", pa.binary())])
"""Of a table whose values are not decoded."""
DEAD = pa.schema([*OWN, ("_value", pa.binary()), ("_reason", pa.string())])
PARTITION_IDS_FROM = 1000
NAMES_MAX = 100
HOLDS = "holds the field "
"""The comment of a column that could not be called as its field."""


class Named(NamedTuple):
    """Which column of the table a field of the value becomes."""

    field: str
    column: str


def named(table: Schema, fields: pa.Schema, spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC) -> list[Named]:
    """A field goes to the column of its name, if that can hold it; else to the next of name_2, name_3 and so on that
    can, or is not there yet, and is no other field's. So a field that was a number and becomes a text loses neither.
    SparkError: two fields that nobody could tell apart.
    """
    columns = {field.name.lower(): field for field in table.fields}
    parts = (field.name.lower() for field in spec.fields if not isinstance(field.transform, IdentityTransform))
    own = {*(name.lower() for name in OWN.names), *parts}
    fields_named = {name.lower() for name in fields.names}
    taken: dict[str, str] = {}
    found: list[Named] = []
    for field in fields:
        if pa.types.is_null(field.type):
            continue  # there is nothing that it could hold
        if field.name.lower() in taken:
            raise SparkError(f"the schema has {field.name!r} twice, but for upper and lower case")
        taken[field.name.lower()] = field.name
        new = iceberg_schema(pa.schema([field])).fields[0].field_type
        for name in _candidates(field.name):
            there = columns.get(name.lower())
            if name.lower() in own or name.lower() in {one.column.lower() for one in found}:
                continue
            if not _is_for(field.name, name, there, fields_named):
                continue
            if there is None or fits(there.field_type, new):
                found.append(Named(field.name, name if there is None else there.name))
                break
        else:
            raise SparkError(f"field {field.name} has had more than {NAMES_MAX} types: make a table anew")
    return found


def _is_for(field: str, column: str, there: NestedField | None, fields_named: set[str]) -> bool:
    if there is not None and there.doc is not None and there.doc.startswith(HOLDS):
        return there.doc.removeprefix(HOLDS).lower() == field.lower()
    return column.lower() == field.lower() or column.lower() not in fields_named


def _candidates(name: str) -> Iterable[str]:
    yield name
    for number in range(2, NAMES_MAX + 1):
        yield f"{name}_{number}"


def fits(there: IcebergType, new: IcebergType) -> bool:
    """Whether one column can hold both: by Iceberg's own rules one is promoted to the other."""
    if isinstance(there, StructType) and isinstance(new, StructType):
        known = {field.name: field.field_type for field in there.fields}
        return all(field.name not in known or fits(known[field.name], field.field_type) for field in new.fields)
    if isinstance(there, ListType) and isinstance(new, ListType):
        return fits(there.element_type, new.element_type)
    if isinstance(there, MapType) and isinstance(new, MapType):
        return there.key_type == new.key_type and fits(there.value_type, new.value_type)
    return there == new or _is_promoted(there, new) or _is_promoted(new, there)


def _is_promoted(narrow: IcebergType, wide: IcebergType) -> bool:
    if isinstance(narrow, StringType | BinaryType):
        return False  # PyIceberg takes one for the other, and not all bytes are a text
    try:
        promote(narrow, wide)
    except ResolveError:
        return False
    return True


def renamed(fields: pa.Schema, names: Iterable[Named]) -> pa.Schema:
    """The columns that these fields need."""
    return pa.schema([_renamed(fields.field(one.field), one.column) for one in names])


def _renamed(field: pa.Field, column: str) -> pa.Field:
    if field.name.lower() == column.lower():
        return field.with_name(column)
    return field.with_name(column).with_metadata({"doc": f"{HOLDS}{field.name}"})


def held(fields: spark.StructType) -> spark.StructType:
    """Without what no file can hold, and nobody would miss: records without a field, and what is never but null."""
    left = _held(fields)
    return left if isinstance(left, spark.StructType) else spark.StructType([])


def _held(type_: spark.DataType) -> spark.DataType | None:
    match type_:
        case spark.StructType():
            found = [(one.name, _held(one.dataType)) for one in type_.fields]
            left = [spark.StructField(name, inner) for name, inner in found if inner is not None]
            return spark.StructType(left) if left else None
        case spark.ArrayType():
            inner = _held(type_.elementType)
            return None if inner is None else spark.ArrayType(inner)
        case spark.MapType():
            inner = _held(type_.valueType)
            return None if inner is None else spark.MapType(type_.keyType, inner)
    return None if isinstance(type_, spark.NullType) else type_


def iceberg_schema(columns: pa.Schema) -> Schema:
    """With numbers of its own: a catalog gives others when it makes a table of it."""
    from pyiceberg.catalog import Catalog

    return assign_fresh_schema_ids(Catalog._convert_schema_if_needed(columns))  # noqa: SLF001  what create_table does with a schema of Arrow


def spec_of(parts: Iterable[Part], schema: Schema, topic: str) -> PartitionSpec:
    """SparkError: a column that the table does not have."""
    fields = []
    taken = {name.lower() for name in schema.column_names}
    for number, part in enumerate(parts):
        try:
            source = schema.find_field(part.column, case_sensitive=False)
        except ValueError:
            raise SparkError(f"table.partition of {topic} names {part.column}, which the table does not have") from None
        how = part.transform.partition("[")[0]
        name = source.name if how == "identity" else f"{source.name.lstrip('_')}_{how}"
        while name.lower() in taken - {source.name.lower()}:
            name += "_part"
        transform = parse_transform(part.transform)
        if not transform.can_transform(source.field_type):
            raise SparkError(
                f"table.partition of {topic}: there is no {how} of {part.column}, which is {source.field_type}"
            )
        fields.append(PartitionField(source.field_id, PARTITION_IDS_FROM + number, transform, name))
    return PartitionSpec(*fields)

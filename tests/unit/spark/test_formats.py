"""Schemas become types, values become rows; what cannot is told with its field."""

import json
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory
from pyspark.sql.pandas.types import to_arrow_schema

from goqueue.broker.schemas.formats.protobuf import ProtobufSchema
from goqueue.spark.errors import SparkError
from goqueue.spark.formats.avro import AvroFormat
from goqueue.spark.formats.json_schema import JsonFormat
from goqueue.spark.formats.plan import (
    fields_of,
    make_format,
)
from goqueue.spark.formats.protobuf import ProtobufFormat, file_of
from goqueue.spark.formats.registry import Dependency, SchemaText
from goqueue.spark.formats.shapes import Misfit
from tests.unit.spark.avro_values import avro, record, written


def row_of(made: Any, payload: bytes, writer: SchemaText, *, is_framed: bool = False) -> Any:
    value = made.decode(payload, writer, is_framed)
    return value if made.shape.convert is None else made.shape.convert(value)


# -- Avro

LINE = {"type": "record", "name": "Line", "fields": [{"name": "pieces", "type": "int"}]}


@pytest.mark.parametrize(
    ("kind", "type_", "value", "read"),
    [
        ("long", "bigint", 5, 5),
        (["null", "string"], "string", None, None),
        (["int", "long", "null"], "bigint", 7, 7),
        ({"type": "int", "logicalType": "date"}, "date", date(2026, 11, 16), date(2026, 11, 16)),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            "timestamp",
            datetime(2026, 11, 16, 1, 2, 3, 456789, UTC),
            datetime(2026, 11, 16, 1, 2, 3, 456789, UTC),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "decimal(9,2)",
            Decimal("-12.30"),
            Decimal("-12.30"),
        ),
        ({"type": "enum", "name": "Kind", "symbols": ["A", "B"]}, "string", "B", "B"),
        ({"type": "fixed", "name": "Four", "size": 4}, "binary", b"abcd", b"abcd"),
        ({"type": "map", "values": ["null", "int"]}, "map<string,int>", {"a": None}, [("a", None)]),
        ({"type": "array", "items": LINE}, "array<struct<pieces:int>>", [{"pieces": 2}], [{"pieces": 2}]),
        ({"type": "long", "logicalType": "time-micros"}, "string", 3_723_000_004, "01:02:03.000004"),
        ("bytes", "binary", b"\0\1", b"\0\1"),
    ],
)
def test_avro_types_become_columns(kind: Any, type_: str, value: Any, read: Any) -> None:
    document = record(("field", kind))
    made = AvroFormat(avro(document))
    (field,) = fields_of(made.shape).fields
    assert field.dataType.simpleString() == type_
    row = row_of(made, written(document, {"field": value}), avro(document))
    struct = pa.struct(list(to_arrow_schema(fields_of(made.shape), timezone="UTC")))
    assert pa.array([row], struct).to_pylist() == [{"field": read}]


def test_avro_resolves_what_an_older_schema_wrote() -> None:
    old = record(("id", "int"), ("gone", "string"))
    new = record(("id", "long"))
    new["fields"].append({"name": "state", "type": "string", "default": "new"})
    row = row_of(AvroFormat(avro(new, 2)), written(old, {"id": 5, "gone": "x"}), avro(old))
    assert row == {"id": 5, "state": "new"}


def test_avro_defaults_are_values_of_their_type() -> None:
    def field(name: str, kind: Any, default: Any) -> Any:
        return {"name": name, "type": kind, "default": default}

    new = record(("id", "int"))
    inner = {"type": "record", "name": "Inner", "fields": [field("raw", "bytes", "\u00ff"), field("n", "int", 7)]}
    new["fields"] += [
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0000"),
        field("day", {"type": "int", "logicalType": "date"}, 1),
        field("at", [{"type": "long", "logicalType": "timestamp-millis"}, "null"], 1000),
        field("inner", inner, {}),
        field("days", {"type": "array", "items": {"type": "int", "logicalType": "date"}}, [0]),
        field("maybe", ["null", "Inner"], None),
    ]
    old = record(("id", "int"))
    assert row_of(AvroFormat(avro(new, 2)), written(old, {"id": 5}), avro(old)) == {
        "id": 5,
        "price": Decimal("2.56"),
        "day": date(1970, 1, 2),
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "inner": {"raw": b"\xff", "n": 7},
        "days": [date(1970, 1, 1)],
        "maybe": None,
    }


def test_avro_uses_what_a_schema_refers_to() -> None:
    text = json.dumps(record(("line", "Line")))
    schema = SchemaText(1, "AVRO", text, (Dependency("Line", json.dumps(LINE)),))
    made = make_format("avro", schema)
    assert made.shape.type.simpleString() == "struct<line:struct<pieces:int>>"
    assert row_of(made, b"\x04", schema) == {"line": {"pieces": 2}}


@pytest.mark.parametrize("payload", [b"", b"\x02", b"\x02a trailing", b"\xff" * 20])
def test_what_is_no_avro_value_is_told(payload: bytes) -> None:
    with pytest.raises(Misfit, match="schema 1"):
        row_of(AvroFormat(avro(record(("id", "string")))), payload, avro(record(("id", "string"))))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (record(("next", ["null", "Row"])), "Row holds itself"),
        (record(("either", ["string", "long"])), "a union of string, long is no single type"),
        (
            record(("much", {"type": "bytes", "logicalType": "decimal", "precision": 50})),
            "a decimal of 50 digits: a column has at most 38",
        ),
    ],
)
def test_an_avro_schema_that_cannot_be_columns_is_told(schema: Any, why: str) -> None:
    with pytest.raises(SparkError, match="schema 1 cannot be columns") as told:
        make_format("avro", avro(schema))
    assert why in str(told.value)


def test_a_schema_of_another_format_is_told() -> None:
    with pytest.raises(SparkError, match="valueFormat=json, but schema 1 of the registry is AVRO"):
        make_format("json", avro("string"))


# -- JSON

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "amount": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "when": {"type": "string", "format": "date-time"},
        "day": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "tags": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "anything": {},
        "state": {"enum": ["new", "paid"]},
    },
    "$defs": {"line": {"type": "object", "properties": {"pieces": {"type": "integer"}}}},
}


def json_format(document: Any = ORDER, *others: Dependency) -> JsonFormat:
    return JsonFormat(SchemaText(1, "JSON", json.dumps(document), others))


def test_json_schemas_become_columns() -> None:
    made = json_format()
    assert made.shape.type.simpleString() == (
        "struct<id:string,amount:bigint,price:double,when:timestamp,day:date,lines:array<struct<pieces:bigint>>,"
        "tags:map<string,boolean>,anything:string,state:string>"
    )
    value = {
        "id": "o-1",
        "amount": 3.0,
        "price": 2,
        "when": "2026-11-16T10:00:00+01:00",
        "day": "2026-11-16",
        "lines": [{"pieces": 2, "more": 1}, None],
        "tags": {"a": True},
        "anything": {"deep": [1]},
        "extra": 1,
    }
    row = row_of(made, json.dumps(value).encode(), SchemaText(1, "JSON", ""))
    struct = pa.struct(list(to_arrow_schema(fields_of(made.shape), timezone="UTC")))
    assert pa.array([row], struct).to_pylist() == [
        {
            "id": "o-1",
            "amount": 3,
            "price": 2.0,
            "when": datetime(2026, 11, 16, 9, tzinfo=UTC),
            "day": date(2026, 11, 16),
            "lines": [{"pieces": 2}, None],
            "tags": [("a", True)],
            "anything": '{"deep":[1]}',
            "state": None,
        }
    ]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('{"amount": "3"}', 'field amount: "3" is not an integer of 64 bits'),
        ('{"amount": 9223372036854775808}', "field amount: 9223372036854775808 is not an integer of 64 bits"),
        ('{"amount": true}', "field amount: true is not an integer of 64 bits"),
        ('{"lines": [{"pieces": 1}, {"pieces": "x"}]}', 'field lines[1].pieces: "x" is not an integer of 64 bits'),
        ('{"lines": 5}', "field lines: 5 is not an array"),
        ('{"when": "noon"}', 'field when: "noon" is not a date and time'),
        ("[1]", "[1] is not an object"),
        ("{", "not JSON: Input data was truncated"),
    ],
)
def test_a_json_value_that_does_not_fit_is_told_with_its_field(value: str, why: str) -> None:
    with pytest.raises(Misfit) as told:
        row_of(json_format(), value.encode(), SchemaText(1, "JSON", ""))
    assert str(told.value) == why


def test_json_schemas_may_refer_to_others_and_be_merged() -> None:
    line = Dependency("line.json", json.dumps(ORDER["$defs"]["line"]))  # type: ignore[index]
    made = json_format({"allOf": [{"$ref": "line.json"}, {"properties": {"id": {"type": "string"}}}]}, line)
    assert made.shape.type.simpleString() == "struct<pieces:bigint,id:string>"


def test_a_recursive_json_schema_is_told() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}}}
    with pytest.raises(SparkError, match="holds itself"):
        make_format("json", SchemaText(1, "JSON", json.dumps(tree)))


# -- Protobuf

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
enum State { NEW = 0; PAID = 1; }
message Order {
  message Line { int32 pieces = 1; }
  string id = 1;
  uint64 much = 2;
  optional int32 maybe = 3;
  repeated Line lines = 4;
  map<string, int64> counts = 5;
  State state = 6;
  google.protobuf.Timestamp at = 7;
  google.protobuf.Struct open = 8;
  google.protobuf.StringValue note = 9;
  oneof either { bool yes = 10; bytes no = 11; }
}
message Other { string id = 1; }
"""


def protobuf(text: str = PROTO, schema_id: int = 1) -> SchemaText:
    """As the registry gives it."""
    return SchemaText(schema_id, "PROTOBUF", ProtobufSchema(text).serialized)


def test_protobuf_messages_become_columns() -> None:
    schema = protobuf()
    made = ProtobufFormat(schema)
    assert made.shape.type.simpleString() == (
        "struct<id:string,much:decimal(20,0),maybe:int,lines:array<struct<pieces:int>>,counts:map<string,bigint>,"
        "state:string,at:timestamp,open:string,note:string,yes:boolean,no:binary>"
    )
    kind: Any = message_factory.GetMessageClass(file_of(schema).message_types_by_name["Order"])
    message = kind(id="o-1", much=2**64 - 1, counts={"a": 2**40}, state=1, no=b"\0")
    message.lines.add(pieces=3)
    message.at.FromDatetime(datetime(2026, 11, 16, 1, 2, 3, 4, UTC))
    message.open.update({"deep": [1.0]})
    message.note.value = "hi"
    row = row_of(made, b"\0" + message.SerializeToString(), schema, is_framed=True)
    struct = pa.struct(list(to_arrow_schema(fields_of(made.shape), timezone="UTC")))
    assert pa.array([row], struct).to_pylist() == [
        {
            "id": "o-1",
            "much": Decimal(2**64 - 1),
            "maybe": None,
            "lines": [{"pieces": 3}],
            "counts": [("a", 2**40)],
            "state": "PAID",
            "at": datetime(2026, 11, 16, 1, 2, 3, 4, UTC),
            "open": '{"deep": [1.0]}',
            "note": "hi",
            "yes": None,
            "no": b"\0",
        }
    ]
    assert row_of(made, kind(id="bare").SerializeToString(), schema)["id"] == "bare"
    message.open.update({"deep": float("nan")})
    with pytest.raises(Misfit, match="Fail to serialize NaN"):
        row_of(made, message.SerializeToString(), schema)


def test_another_message_of_a_protobuf_schema_does_not_fit() -> None:
    with pytest.raises(Misfit, match=r"it is a shop.Other, and the columns are those of shop.Order"):
        row_of(ProtobufFormat(protobuf()), b"\x02\x02", protobuf(), is_framed=True)
    with pytest.raises(Misfit, match=r"no shop.Order of schema 1"):
        row_of(ProtobufFormat(protobuf()), b"\0\xff", protobuf(), is_framed=True)


def test_a_recursive_or_broken_protobuf_schema_is_told() -> None:
    with pytest.raises(SparkError, match="Tree holds itself"):
        make_format("protobuf", protobuf('syntax = "proto3"; message Tree { Tree left = 1; }'))
    alone = descriptor_pb2.FileDescriptorProto(name="x", dependency=["missing.proto"], syntax="proto3")
    with pytest.raises(SparkError, match=r"'missing.proto' is imported, but is none of its references"):
        make_format("protobuf", SchemaText(1, "PROTOBUF", b64encode(alone.SerializeToString()).decode()))

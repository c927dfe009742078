"""Avro by its specification: schema resolution, and values that do not fit."""

import io
import json
from typing import Any

import fastavro
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse as apache_parse
from hypothesis import given
from hypothesis import strategies as st

from goqueue.broker.schemas.formats.avro import AvroSchema
from goqueue.broker.schemas.formats.parsed import Dependency
from goqueue.model.schemas import InvalidSchema


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


def avro(schema: Any) -> AvroSchema:
    return AvroSchema(json.dumps(schema))


A, B = field("a", "int"), field("b", "string")
LIST = record(field("next", ["null", "R"], default=None))
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}

# (reader, writer): by the chapter "Schema Resolution" of the specification.
READABLE: dict[str, tuple[Any, Any]] = {
    "the same": (record(A, B), record(A, B)),
    "a field was removed": (record(A), record(A, B)),
    "a field with a default was added": (record(A, field("b", "string", default="")), record(A)),
    "fields in another order": (record(B, A), record(A, B)),
    "a field was renamed with an alias": (record(field("x", "int", aliases=["a"])), record(A)),
    "a record was renamed with an alias": (record(A, name="S", aliases=["R"]), record(A)),
    "only the namespace changed": (record(A, namespace="new"), record(A, namespace="old")),
    "int to long": ("long", "int"),
    "int to float": ("float", "int"),
    "int to double": ("double", "int"),
    "long to float": ("float", "long"),
    "long to double": ("double", "long"),
    "float to double": ("double", "float"),
    "string to bytes": ("bytes", "string"),
    "bytes to string": ("string", "bytes"),
    "array of what is promoted": ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    "map of what is promoted": ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}),
    "into a union": (["null", "int"], "int"),
    "into a union, promoted": (["null", "long"], "int"),
    "a union with more branches": (["null", "int", "string"], ["null", "int"]),
    "out of a union of one": ("int", ["int"]),
    "out of a union that all fits": ("double", ["int", "float"]),
    "enum with more symbols": (enum("A", "B", "C"), enum("A", "B")),
    "enum with fewer symbols and a default": (enum("A", default="A"), enum("A", "B")),
    "fixed of the same size": (fixed(4), fixed(4)),
    "fixed renamed with an alias": ({**fixed(4), "name": "G", "aliases": ["F"]}, fixed(4)),
    "a list": (LIST, LIST),
    "nullable with a default": (record(field("a", ["null", "int"], default=None)), record()),
    "the same decimal": (DECIMAL, DECIMAL),
    "a plain type written longer": ({"type": "string"}, "string"),
}
UNREADABLE: dict[str, tuple[Any, Any]] = {
    "a field without a default was added": (record(A, B), record(A)),
    "a field was renamed": (record(field("x", "int")), record(A)),
    "a record was renamed": (record(A, name="S"), record(A)),
    "long to int": ("int", "long"),
    "double to float": ("float", "double"),
    "float to long": ("long", "float"),
    "string to int": ("int", "string"),
    "int to string": ("string", "int"),
    "boolean to int": ("int", "boolean"),
    "array of another type": ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}),
    "map of another type": ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}),
    "array to map": ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}),
    "a union with fewer branches": (["null", "int"], ["null", "int", "string"]),
    "out of a union": ("int", ["null", "int"]),
    "into a union without it": (["null", "string"], "int"),
    "enum with fewer symbols": (enum("A"), enum("A", "B")),
    "enum renamed": ({**enum("A"), "name": "G"}, enum("A")),
    "fixed of another size": (fixed(5), fixed(4)),
    "fixed renamed": ({**fixed(4), "name": "G"}, fixed(4)),
    "fixed to bytes": ("bytes", fixed(4)),
    "a field far inside changed": (
        record(field("in", record(field("x", "int"), name="I"))),
        record(field("in", record(field("x", "string"), name="I"))),
    ),
    "a decimal of another scale": ({**DECIMAL, "scale": 1}, DECIMAL),
}
NOT_APACHE = {
    "into a union, promoted",  # its checker takes branches of the same type only
    "a decimal of another scale",  # it does not look at logical types
}


@pytest.mark.parametrize("name", READABLE)
def test_what_can_be_resolved_is_compatible(name: str) -> None:
    reader, writer = READABLE[name]
    assert avro(reader).cannot_read(avro(writer)) == []


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_resolved_is_not(name: str) -> None:
    reader, writer = UNREADABLE[name]
    (why,) = avro(reader).cannot_read(avro(writer))
    assert ": " in why


@pytest.mark.parametrize("name", sorted({*READABLE, *UNREADABLE} - NOT_APACHE))
def test_the_checker_of_apache_says_the_same(name: str) -> None:
    reader, writer = (READABLE | UNREADABLE)[name]
    checker: Any = ReaderWriterCompatibilityChecker
    verdict = checker().get_compatibility(apache_parse(json.dumps(reader)), apache_parse(json.dumps(writer)))
    assert (verdict.compatibility is SchemaCompatibilityType.compatible) == (name in READABLE)


def test_a_refusal_names_the_field_and_why() -> None:
    older = record(field("in", record(field("x", "string"), name="I")), A)
    newer = record(field("in", record(field("x", "int"), name="I")), A, B)
    assert avro(newer).cannot_read(avro(older)) == [
        "in.x: was string, is int",
        "b: the field was not written and has no default",
    ]


BAD_SCHEMAS = [
    "{",
    "3",
    '"text"',
    '{"type": "record"}',
    '{"type": "record", "name": "1A", "fields": []}',
    '{"type": "record", "name": "A", "fields": [3]}',
    '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int", "default": "x"}]}',
    '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}',
    '{"type": "record", "name": "A", "fields": [{"name": "b", "type": "B"}]}',
    '{"type": "enum", "name": "E", "symbols": ["a", "a"]}',
    '{"type": "enum", "name": "E", "symbols": "ab"}',
    '{"type": "enum", "name": "E", "symbols": ["a-b"]}',
    '{"type": "fixed", "name": "F", "size": -1}',
    '{"type": "fixed", "name": "F", "size": "many"}',
    '{"type": "array"}',
    '{"type": "enum", "name": "a.string", "symbols": []}',
    '["null", "null"]',
    '[["null"]]',
    "[" * 100 + "]" * 100,
    "[" * 100_000 + "]" * 100_000,
]


@pytest.mark.parametrize("text", BAD_SCHEMAS, ids=range(len(BAD_SCHEMAS)))
def test_what_is_no_schema_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InvalidSchema, match=r".{10}"):
        AvroSchema(text)


@pytest.mark.parametrize("name", ["record", "array"])
def test_a_record_may_be_called_as_a_kind_of_types_is(name: str) -> None:
    schema = avro(record(field("next", ["null", name]), field("list", {"type": "array", "items": "int"}), name=name))
    assert schema.fault(b"\x00\x00", True) is None
    assert schema.fault(b"\x02\x00\x00\x00", True) is None
    assert schema.cannot_read(schema) == []


def test_a_schema_may_use_what_others_define() -> None:
    part = Dependency("Part", json.dumps(record(A, name="Part")))
    whole = AvroSchema(json.dumps(record(field("part", "Part"))), [part])
    assert whole.fault(b"\x06", True) is None
    assert whole.fault(b"", True) == "field part.a: the bytes end in the middle of a number"
    wider = Dependency("Part", json.dumps(record(field("a", "long"), name="Part")))
    newer = AvroSchema(json.dumps(record(field("part", "Part"))), [wider])
    assert (newer.cannot_read(whole), whole.cannot_read(newer)) == ([], ["part.a: was long, is int"])


def test_space_and_long_forms_make_no_other_schema() -> None:
    one, other = '{"type":"record","name":"R","fields":[]}', ' { "type" : "record", "name":"R", "fields": [ ] } '
    assert AvroSchema(one).fingerprint == AvroSchema(other).fingerprint
    long = {"type": "array", "items": {"type": "string"}}
    assert avro(long).normalized == avro({"items": "string", "type": "array"}).normalized


EVERYTHING = record(
    field("nothing", "null"),
    field("flag", "boolean"),
    field("int", "int"),
    field("long", "long"),
    field("float", "float"),
    field("double", "double"),
    field("bytes", "bytes"),
    field("text", "string"),
    field("enum", enum("A", "B")),
    field("fixed", fixed(2)),
    field("array", {"type": "array", "items": ["null", "string"]}),
    field("map", {"type": "map", "values": "E"}),
    field("next", ["null", "R"]),
)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = st.recursive(
    st.none(),
    lambda inner: st.fixed_dictionaries(
        {
            "nothing": st.none(),
            "flag": st.booleans(),
            "int": INT,
            "long": LONG,
            "float": st.floats(width=32, allow_nan=False),
            "double": st.floats(allow_nan=False),
            "bytes": st.binary(max_size=5),
            "text": st.text(max_size=5),
            "enum": st.sampled_from("AB"),
            "fixed": st.binary(min_size=2, max_size=2),
            "array": st.lists(st.none() | st.text(max_size=3), max_size=3),
            "map": st.dictionaries(st.text(max_size=3), st.sampled_from("AB"), max_size=3),
            "next": inner,
        }
    ),
    max_leaves=3,
).filter(bool)
CHECKER = avro(EVERYTHING)
PARSED = fastavro.parse_schema(EVERYTHING)


def written(value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED, value)
    return out.getvalue()


@given(VALUES)
def test_what_fastavro_writes_fits(value: Any) -> None:
    assert CHECKER.fault(written(value), True) is None


@given(VALUES, st.data())
def test_a_value_cut_short_or_with_bytes_behind_it_never_fits(value: Any, data: st.DataObject) -> None:
    payload = written(value)
    cut = data.draw(st.integers(0, len(payload) - 1))
    assert CHECKER.fault(payload[:cut], True) is not None
    assert CHECKER.fault(payload + b"\0", True) == "the value: 1 bytes are left behind it"


@given(st.binary(max_size=200))
def test_any_bytes_are_judged(payload: bytes) -> None:
    assert isinstance(CHECKER.fault(payload, True), str | None)


def test_hostile_values_cost_little() -> None:
    nulls = avro({"type": "array", "items": "null"})
    billion = bytes([0x80, 0x80, 0x80, 0x80, 0x40])
    assert "take no bytes" in str(nulls.fault(billion + b"\0", True))
    assert "levels deep" in str(avro(LIST).fault(b"\x02" * 1_000_000, True))
    assert "64 bits" in str(avro("long").fault(b"\xff" * 20, True))
    assert "a length of -1" in str(avro("bytes").fault(b"\x01", True))
    assert "not UTF-8" in str(avro("string").fault(b"\x02\xff", True))
    assert "is no boolean" in str(avro("boolean").fault(b"\x02", True))
    assert "32 bits" in str(avro("int").fault(b"\xfe\xff\xff\xff\x7f", True))
    assert str(avro(record(field("a", {"type": "array", "items": enum("A")}))).fault(b"\x04\x00\x02\x00", True)) == (
        "field a[1]: symbol 1 of an enum with 1"
    )

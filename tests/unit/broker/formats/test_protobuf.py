"""Protobuf: evolution by the rules of the wire format, as Confluent's registry judges it, and damaged values."""

from base64 import b64encode

import pytest
from google.protobuf import descriptor_pb2

from goqueue.broker.schemas.formats.parsed import Dependency
from goqueue.broker.schemas.formats.protobuf import ProtobufSchema
from goqueue.model.schemas import InvalidSchema


def proto(body: str, syntax: str = "proto3", package: str = "shop") -> ProtobufSchema:
    return ProtobufSchema(f'syntax = "{syntax}"; package {package}; {body}')


def order(*fields: str, more: str = "") -> str:
    return f"message Order {{ {' '.join(fields)} }} {more}"


A, B = "int32 a = 1;", "string b = 2;"

# (newer, older): whether the newer one reads all that the older one wrote.
READABLE: dict[str, tuple[str, str]] = {
    "the same": (order(A, B), order(A, B)),
    "a field was added": (order(A, B), order(A)),
    "a field was removed": (order(A), order(A, B)),
    "a field was renamed": (order("int32 x = 1;"), order(A)),
    "a message was added": (order(A, more="message New {}"), order(A)),
    "a message was moved": ("message New {} " + order(A), order(A, more="message New {}")),
    "an enum was added": (order(A, more="enum E { Z = 0; }"), order(A)),
    "an enum was removed": (order(A), order(A, more="enum E { Z = 0; }")),
    "an enum constant was added": (order(more="enum E { Z = 0; Y = 1; }"), order(more="enum E { Z = 0; }")),
    "an enum constant was removed": (order(more="enum E { Z = 0; }"), order(more="enum E { Z = 0; Y = 1; }")),
    "int32 to int64": (order("int64 a = 1;"), order(A)),
    "int32 to uint32": (order("uint32 a = 1;"), order(A)),
    "int32 to bool": (order("bool a = 1;"), order(A)),
    "int32 to enum": (order("E a = 1;", more="enum E { Z = 0; }"), order(A)),
    "sint32 to sint64": (order("sint64 a = 1;"), order("sint32 a = 1;")),
    "string to bytes": (order("bytes b = 2;"), order(B)),
    "fixed32 to sfixed32": (order("sfixed32 a = 1;"), order("fixed32 a = 1;")),
    "fixed64 to sfixed64": (order("sfixed64 a = 1;"), order("fixed64 a = 1;")),
    "one string to many": (order("repeated string b = 2;"), order(B)),
    "one message to many": (order("repeated P p = 3;", more="message P {}"), order("P p = 3;", more="message P {}")),
    "optional says that it may be absent": (order("optional int32 a = 1;"), order(A)),
    "one field moved into a new oneof": (order("oneof x { int32 a = 1; }"), order(A)),
    "a oneof got a field": (order("oneof x { int32 a = 1; string c = 3; }"), order("oneof x { int32 a = 1; }")),
    "a oneof was dissolved": (order(A, B), order("oneof x { int32 a = 1; string b = 2; }")),
    "a number was reserved": (order(A, "reserved 2;"), order(A, B)),
    "a map of what is written alike": (order("map<int64, bytes> m = 1;"), order("map<int32, string> m = 1;")),
    "a recursive message": (order("Order next = 1;", B), order("Order next = 1;")),
}
UNREADABLE: dict[str, tuple[str, str]] = {
    "a message was removed": (order(A), order(A, more="message Old {}")),
    "a nested message was removed": (order(A), order(A, "message Old {}")),
    "int32 to string": (order("string a = 1;"), order(A)),
    "int32 to sint32": (order("sint32 a = 1;"), order(A)),
    "int32 to fixed32": (order("fixed32 a = 1;"), order(A)),
    "float to double": (order("double a = 1;"), order("float a = 1;")),
    "fixed32 to float": (order("float a = 1;"), order("fixed32 a = 1;")),
    "string to a message": (order("P b = 2;", more="message P {}"), order(B, more="message P {}")),
    "another message": (
        order("Q p = 3;", more="message P {} message Q {}"),
        order("P p = 3;", more="message P {} message Q {}"),
    ),
    "one number to many": (order("repeated int32 a = 1;"), order(A)),
    "many numbers to one": (order(A), order("repeated int32 a = 1;")),
    "numbers of two fields were exchanged": (order("int32 a = 2;", "string b = 1;"), order(A, B)),
    "a field was removed from a oneof": (
        order("oneof x { int32 a = 1; }"),
        order("oneof x { int32 a = 1; string b = 2; }"),
    ),
    "a field moved into a oneof that was there": (
        order("oneof x { string b = 2; int32 a = 1; }"),
        order(A, "oneof x { string b = 2; }"),
    ),
    "two fields moved into a oneof": (order("oneof x { int32 a = 1; string b = 2; }"), order(A, B)),
    "a map of another type": (order("map<string, string> m = 1;"), order("map<string, int32> m = 1;")),
    "a map to a list": (
        order("repeated P m = 1;", more="message P {}"),
        order("map<string, int32> m = 1;", more="message P {}"),
    ),
    "a reserved number is used": (order(A, B), order(A, "reserved 2;")),
    "a reserved name is used": (order(A, B), order(A, 'reserved "b";')),
    "far inside": (
        order("P p = 3;", more="message P { Q q = 1; } message Q { string s = 1; }"),
        order("P p = 3;", more="message P { Q q = 1; } message Q { int32 s = 1; }"),
    ),
}


@pytest.mark.parametrize("name", READABLE)
def test_what_is_written_alike_is_compatible(name: str) -> None:
    newer, older = READABLE[name]
    assert proto(newer).cannot_read(proto(older)) == []


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_is_not(name: str) -> None:
    newer, older = UNREADABLE[name]
    assert proto(newer).cannot_read(proto(older)) != []


def test_required_fields_of_proto2_come_and_go_with_their_message() -> None:
    plain = proto("message Order { optional int32 a = 1; }", "proto2")
    strict = proto("message Order { optional int32 a = 1; required int32 b = 2; }", "proto2")
    assert strict.cannot_read(plain) == ["Order.b: a required field was added"]
    assert plain.cannot_read(strict) == ["Order.b: the required field was removed"]
    assert strict.fault(b"\0", True) == "field b: it is required and not there"


def test_another_package_is_another_schema() -> None:
    assert proto(order(A), package="x").cannot_read(proto(order(A))) == ["the package: was 'shop', is 'x'"]


def test_a_refusal_names_the_field_and_why() -> None:
    older = proto(order("P p = 3;", more="message P { int32 s = 1; }"))
    newer = proto(order("P p = 3;", more="message P { string s = 1; }"))
    assert newer.cannot_read(older) == ["Order.p.s: was a number, is a string or bytes"]


EVERYTHING = """
import "google/protobuf/timestamp.proto";
message Order {
  enum Kind { option allow_alias = true; NONE = 0; SOME = 1; ANY = 1; reserved 5 to 7; reserved "OLD"; }
  message Part { repeated int32 sizes = 1 [packed = false, deprecated = true]; }
  string id = 1 [json_name = "identity"];
  google.protobuf.Timestamp at = 2;
  map<string, Part> parts = 3;
  oneof how { int32 fast = 4; Kind slow = 5; }
  optional bool gift = 6;
  repeated Part more = 7;
  reserved 9, 20 to 30, 1000 to max;
  reserved "old";
}
service Orders { rpc Put (Order) returns (stream Order); }
"""
OLD = """
message Order {
  required string id = 1 [default = "a \\"quote\\""];
  optional int32 n = 2 [default = -5];
  extensions 100 to 199;
}
extend Order { optional string note = 100; }
"""


@pytest.mark.parametrize(("body", "syntax"), [(EVERYTHING, "proto3"), (OLD, "proto2")])
def test_text_and_descriptor_are_the_same_schema(body: str, syntax: str) -> None:
    text = proto(body, syntax)
    descriptor = ProtobufSchema(text.serialized)
    assert text.fingerprint == descriptor.fingerprint == ProtobufSchema(descriptor.text).fingerprint
    assert descriptor.text == text.normalized
    assert text.text.endswith(body)  # with all its comments
    assert (text.cannot_read(descriptor), descriptor.cannot_read(text)) == ([], [])
    assert ProtobufSchema(ProtobufSchema(text.normalized).serialized).serialized == text.serialized


def test_imports_are_references_or_well_known() -> None:
    part = Dependency("shop/part.proto", 'syntax = "proto3"; package shop; message Part { int32 n = 1; }')
    text = 'syntax = "proto3"; import "shop/part.proto"; message Whole { shop.Part part = 1; }'
    whole = ProtobufSchema(text, [part])
    assert whole.fault(b"\0\x0a\x02\x08\x01", True) is None
    assert ProtobufSchema(whole.serialized, [part]).fingerprint == whole.fingerprint
    for missing in (text, whole.serialized):
        with pytest.raises(InvalidSchema, match=r"shop/part\.proto"):
            ProtobufSchema(missing)
    for name in ("../part.proto", "/part.proto", "a/../../b", "x y"):
        with pytest.raises(InvalidSchema, match="name of a reference"):
            ProtobufSchema(text, [Dependency(name, part.text)])


BAD = [
    "message",
    "{",
    'syntax = "proto4"; message A {}',
    'syntax = "proto3"; message A { strin a = 1; }',
    'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }',
    'syntax = "proto3"; message A { int32 a = 0; }',
    'syntax = "proto3"; import "other.proto"; message A {}',
    'syntax = "proto3"; import "../../../etc/passwd"; message A {}',
    'syntax = "proto3"; import "google/api/http.proto"; message A {}',
    'syntax = "proto3";' + "message A {" * 1000 + "}" * 1000,
    'syntax = "proto2"; message A { optional group G = 1 { optional int32 a = 1; } }',
]


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_what_is_no_schema_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InvalidSchema, match=r".{10}"):
        ProtobufSchema(text)


def test_a_descriptor_that_contradicts_itself_is_refused() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    file.message_type.add(name="A").field.add(name="x", number=1, type=11, type_name=".Nowhere", label=1)
    with pytest.raises(InvalidSchema, match="Nowhere"):
        ProtobufSchema(b64encode(file.SerializeToString()).decode())


def test_where_the_compiler_stopped_is_told() -> None:
    with pytest.raises(InvalidSchema, match='line 2, column 13: "Part" is not defined'):
        ProtobufSchema('syntax = "proto3";\nmessage A { Part p = 1; }')
    with pytest.raises(InvalidSchema, match='line 1, column 22: "Part" is not defined'):
        ProtobufSchema("message A { optional Part p = 1; }")


FAULTS = [
    (b"\0\x0a\x01a", None),
    (b"\0", None),
    (b"\x02\x02\x08\x01", None),  # the second message
    (b"\x04\0\0\x08\x01", None),  # the first one inside the first
    (b"", "no message indexes"),
    (b"\x02\x06", "has no message 3"),
    (b"\x7f", "-64 message indexes"),
    (b"\0\x0a\x05a", "field id: 5 bytes are needed, 1 are left"),
    (b"\0\x0a\x01\xff", "field id: not UTF-8"),
    (b"\0\x12\x02\x08\xff", "field part.n: the bytes end in the middle of a number"),
    (b"\0\x0f", "field id: wire type 7"),
    (b"\0\x05", "field number 0"),
    (b"\0" + b"\xff" * 11, "64 bits"),
]


@pytest.mark.parametrize(("payload", "why"), FAULTS)
def test_a_damaged_value_is_refused_and_its_field_named(payload: bytes, why: str | None) -> None:
    schema = proto(
        "message Order { message Part { int32 n = 1; } string id = 1; Part part = 2; } message B { int32 n = 1; }"
    )
    fault = schema.fault(payload, True)
    assert fault is None if why is None else why in str(fault)


def test_a_value_without_an_id_before_it_is_of_the_first_message() -> None:
    schema = proto(order(A, B))
    assert schema.fault(b"\x12\x01x", False) is None
    assert schema.fault(b"\x12\x02x", False) == "field b: 2 bytes are needed, 1 are left"


def test_deep_values_end_in_a_refusal() -> None:
    schema = proto(order("Order next = 1;"))
    body = b""
    for _ in range(200):
        size = len(body)
        body = b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])) + body
    assert "levels deep" in str(schema.fault(b"\0" + body, True))

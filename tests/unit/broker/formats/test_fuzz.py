"""Whatever is sent as a schema or as a value, the answer is a verdict, never a stack trace."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.broker.schemas.formats.avro import AvroSchema
from goqueue.broker.schemas.formats.json_schema import JsonSchema
from goqueue.broker.schemas.formats.parsed import Parsed
from goqueue.broker.schemas.formats.protobuf import ProtobufSchema
from goqueue.model.schemas import InvalidSchema

AVRO_WORDS = r"""
    type name fields items values symbols size default aliases namespace logicalType precision order
"""
AVRO_VALUES = r"""
    record enum array map fixed null int string bytes decimal uuid R a.b
"""
JSON_WORDS = r"""
    type properties required items prefixItems additionalItems additionalProperties patternProperties
    enum const not anyOf allOf oneOf minimum maximum multipleOf maxLength pattern $ref definitions $defs
    dependencies if then uniqueItems $id $schema format dependentRequired contains
"""
JSON_VALUES = r"""
    string integer object array null #/definitions/a # a ^x ( a.json #a
"""
PROTO_WORDS = r"""
    syntax = "proto3" ; message A { } int32 string a 1 2 oneof map < , > repeated optional enum reserved
    to max import "google/protobuf/any.proto" package extend service rpc option group // /* ' \ .
"""


def documents(words: str, values: str) -> st.SearchStrategy[Any]:
    keys = words.split()
    leaves = st.sampled_from([*values.split(), *keys, None, True, False, 0, -1, 3, 2.5, ""])
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=4),
        max_leaves=12,
    )


def judged(kind: Any, text: str, payload: bytes, other: Parsed) -> None:
    try:
        schema = kind(text)
    except InvalidSchema as error:
        assert str(error)
        return
    for verdicts in (schema.cannot_read(other), other.cannot_read(schema), schema.cannot_read(schema)):
        assert all(isinstance(why, str) for why in verdicts)
    assert isinstance(schema.normalized, str)
    assert isinstance(schema.fault(payload, True), str | None)
    assert isinstance(schema.fault(payload, False), str | None)
    kind(schema.text)  # what was stored can be read again


PLAIN: dict[Any, Parsed] = {
    AvroSchema: AvroSchema('{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"]}]}'),
    JsonSchema: JsonSchema('{"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}}'),
    ProtobufSchema: ProtobufSchema('syntax = "proto3"; message A { string a = 1; oneof x { int32 b = 2; } }'),
}


@settings(max_examples=300, deadline=None)
@given(documents(AVRO_WORDS, AVRO_VALUES), st.binary(max_size=20))
def test_avro(document: Any, payload: bytes) -> None:
    judged(AvroSchema, json.dumps(document), payload, PLAIN[AvroSchema])


@settings(max_examples=300, deadline=None)
@given(documents(JSON_WORDS, JSON_VALUES), st.binary(max_size=20))
def test_json_schema(document: Any, payload: bytes) -> None:
    judged(JsonSchema, json.dumps(document), payload, PLAIN[JsonSchema])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PROTO_WORDS.split()), max_size=30).map(" ".join), st.binary(max_size=20))
def test_protobuf_texts(text: str, payload: bytes) -> None:
    judged(ProtobufSchema, text, payload, PLAIN[ProtobufSchema])


@settings(max_examples=200, deadline=None)
@given(st.data(), st.binary(max_size=20))
def test_protobuf_descriptors(data: st.DataObject, payload: bytes) -> None:
    whole = bytearray(PLAIN[ProtobufSchema].serialized.encode())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.sampled_from(b"ABCDEFabcdef0123456789+/"))
    judged(ProtobufSchema, whole.decode(), payload, PLAIN[ProtobufSchema])


@pytest.mark.parametrize("kind", PLAIN)
@given(text=st.text(max_size=50), junk=st.binary(max_size=50))
@settings(max_examples=50, deadline=None)
def test_any_text(kind: Any, text: str, junk: bytes) -> None:
    for each in (text, b64encode(junk).decode()):
        judged(kind, each, junk, PLAIN[kind])

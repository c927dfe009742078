"""JSON Schema: evolution as Confluent's registry judges it, and values that do not fit."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.broker.schemas.formats.json_schema import JsonSchema
from goqueue.broker.schemas.formats.parsed import Dependency, TooComplex
from goqueue.model.schemas import InvalidSchema

S, INT, N = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NEW = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def schema(document: Any) -> JsonSchema:
    return JsonSchema(json.dumps(document))


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties or {}, **more}


def closed(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return obj(properties, additionalProperties=False, **more)


def arr(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


# (newer, older): whether the newer one accepts all that the older one did.
ACCEPTED: dict[str, tuple[Any, Any]] = {
    "the same": (obj({"a": S}), obj({"a": S})),
    "title, description and default": ({**S, "title": "A", "description": "b", "default": "c"}, S),
    "property removed from an open model": (obj(), obj({"a": S})),
    "optional property added to a closed model": (closed({"a": S, "b": S}), closed({"a": S})),
    "required property with a default added to a closed one": (
        closed({"a": {**S, "default": ""}}, required=["a"]),
        closed(),
    ),
    "property without constraints added to an open model": (obj({"a": {}}), obj()),
    "property that was forbidden removed from a closed model": (closed(), closed({"a": False})),
    "a closed model opened": (obj({"a": S}), closed({"a": S})),
    "additional properties widened": (obj(additionalProperties=N), obj(additionalProperties=INT)),
    "property added that a pattern covered": (
        closed({"x_a": S}, patternProperties={"^x_": S}),
        closed(patternProperties={"^x_": S}),
    ),
    "property removed that a pattern covers": (
        closed(patternProperties={"^x_": S}),
        closed({"x_a": S}, patternProperties={"^x_": S}),
    ),
    "property added that was covered by additional ones": (
        obj({"a": N}, additionalProperties=INT),
        obj(additionalProperties=INT),
    ),
    "not required any more": (obj({"a": S}), obj({"a": S}, required=["a"])),
    "required with a default": (obj({"a": {**S, "default": ""}}, required=["a"]), obj({"a": {**S, "default": ""}})),
    "integer to number": (N, INT),
    "one type to several": ({"type": ["string", "null"]}, S),
    "type removed": ({}, S),
    "any value of a list to any value": ({"type": "string"}, {"type": "string", "enum": ["a"]}),
    "enum extended": ({"enum": ["a", "b"]}, {"enum": ["a"]}),
    "const to enum": ({"enum": ["a", "b"]}, {"const": "a"}),
    "maxLength raised": ({**S, "maxLength": 5}, {**S, "maxLength": 4}),
    "maxLength removed": (S, {**S, "maxLength": 4}),
    "minLength lowered": ({**S, "minLength": 1}, {**S, "minLength": 2}),
    "pattern removed": (S, {**S, "pattern": "a"}),
    "format is an annotation": ({**S, "format": "date"}, S),
    "minimum lowered": ({**INT, "minimum": 0}, {**INT, "minimum": 1}),
    "maximum raised": ({**INT, "maximum": 2}, {**INT, "maximum": 1}),
    "exclusiveMaximum removed": (INT, {**INT, "exclusiveMaximum": 9}),
    "multipleOf divided": ({**INT, "multipleOf": 5}, {**INT, "multipleOf": 10}),
    "maxProperties raised": (obj(maxProperties=3), obj(maxProperties=2)),
    "dependency removed": (obj({"a": S}), obj({"a": S}, dependencies={"a": ["b"]})),
    "dependency on less": (obj(dependencies={"a": ["b"]}), obj(dependencies={"a": ["b", "c"]})),
    "items widened": (arr(N), arr(INT)),
    "items removed": ({"type": "array"}, arr(S)),
    "maxItems raised": (arr(S, maxItems=3), arr(S, maxItems=2)),
    "uniqueItems removed": (arr(S), arr(S, uniqueItems=True)),
    "item added to a closed tuple": (
        {"type": "array", "items": [S, INT], "additionalItems": False},
        {"type": "array", "items": [S], "additionalItems": False},
    ),
    "item removed from an open tuple": ({"type": "array", "items": [S]}, {"type": "array", "items": [S, INT]}),
    "prefixItems of 2020-12": (
        {**NEW, "prefixItems": [S, N], "items": False},
        {**NEW, "prefixItems": [S], "items": False},
    ),
    "one schema to anyOf": ({"anyOf": [S, INT]}, S),
    "one schema to oneOf": ({"oneOf": [S, INT]}, INT),
    "more choices": ({"oneOf": [S, INT, {"type": "null"}]}, {"oneOf": [S, INT]}),
    "choices in another order": ({"oneOf": [INT, S]}, {"oneOf": [S, INT]}),
    "a choice widened": ({"oneOf": [S, N]}, {"oneOf": [S, INT]}),
    "oneOf to anyOf": ({"anyOf": [S, INT]}, {"oneOf": [S, INT]}),
    "allOf with fewer parts": ({"allOf": [{"minimum": 1}]}, {"allOf": [{"minimum": 1}, {"maximum": 5}]}),
    "a choice of one is what it is": (S, {"oneOf": [S]}),
    "what it is becomes a choice of one": ({"allOf": [S]}, S),
    "not refuses less": ({"not": {"type": "string", "maxLength": 1}}, {"not": S}),
    "a local reference": (
        {"$ref": "#/definitions/a", "definitions": {"a": N}},
        {"$ref": "#/definitions/b", "definitions": {"b": INT}},
    ),
    "a tree": (
        obj({"left": {"$ref": "#"}, "value": N}, title="new"),
        obj({"left": {"$ref": "#"}, "value": INT}),
    ),
    "from nothing to anything": (True, False),
}
REFUSED: dict[str, tuple[Any, Any]] = {
    "property added to an open model": (obj({"a": S}), obj()),
    "property removed from a closed model": (closed(), closed({"a": S})),
    "required property added to a closed model": (closed({"a": S}, required=["a"]), closed()),
    "required now": (obj({"a": S}, required=["a"]), obj({"a": S})),
    "an open model closed": (closed({"a": S}), obj({"a": S})),
    "additional properties narrowed": (obj(additionalProperties=INT), obj(additionalProperties=N)),
    "property added that a pattern covered otherwise": (
        closed({"x_a": INT}, patternProperties={"^x_": S}),
        closed(patternProperties={"^x_": S}),
    ),
    "property of another type": (obj({"a": INT}), obj({"a": S})),
    "far inside": (obj({"a": obj({"b": arr(obj({"c": INT}))})}), obj({"a": obj({"b": arr(obj({"c": S}))})})),
    "number to integer": (INT, N),
    "several types to one": (S, {"type": ["string", "null"]}),
    "type added": (S, {}),
    "enum added": ({**S, "enum": ["a"]}, S),
    "enum narrowed": ({"enum": ["a"]}, {"enum": ["a", "b"]}),
    "maxLength lowered": ({**S, "maxLength": 4}, {**S, "maxLength": 5}),
    "maxLength added": ({**S, "maxLength": 4}, S),
    "minLength raised": ({**S, "minLength": 2}, {**S, "minLength": 1}),
    "pattern added": ({**S, "pattern": "a"}, S),
    "pattern changed": ({**S, "pattern": "a"}, {**S, "pattern": "b"}),
    "minimum raised": ({**INT, "minimum": 1}, {**INT, "minimum": 0}),
    "maximum lowered": ({**INT, "maximum": 1}, {**INT, "maximum": 2}),
    "exclusiveMinimum added": ({**INT, "exclusiveMinimum": 1}, INT),
    "multipleOf multiplied": ({**INT, "multipleOf": 10}, {**INT, "multipleOf": 5}),
    "maxProperties lowered": (obj(maxProperties=2), obj(maxProperties=3)),
    "minProperties added": (obj(minProperties=1), obj()),
    "dependency added": (obj(dependencies={"a": ["b"]}), obj()),
    "dependentRequired extended": (
        {**NEW, **obj(dependentRequired={"a": ["b", "c"]})},
        {**NEW, **obj(dependentRequired={"a": ["b"]})},
    ),
    "items narrowed": (arr(INT), arr(N)),
    "items added": (arr(S), {"type": "array"}),
    "minItems raised": (arr(S, minItems=2), arr(S, minItems=1)),
    "uniqueItems added": (arr(S, uniqueItems=True), arr(S)),
    "item removed from a closed tuple": (
        {"type": "array", "items": [S], "additionalItems": False},
        {"type": "array", "items": [S, INT], "additionalItems": False},
    ),
    "fewer choices": ({"oneOf": [S]}, {"oneOf": [S, INT]}),
    "a choice narrowed": ({"oneOf": [S, INT]}, {"oneOf": [S, N]}),
    "anyOf to one schema": (S, {"anyOf": [S, INT]}),
    "allOf with more parts": ({"allOf": [{"minimum": 1}, {"maximum": 5}]}, {"allOf": [{"minimum": 1}]}),
    "not added": ({"not": S}, {}),
    "not refuses more": ({"not": S}, {"not": {"type": "string", "maxLength": 1}}),
    "condition added": ({"if": S, "then": {"maxLength": 3}}, {}),
    "behind a local reference": (
        {"$ref": "#/definitions/a", "definitions": {"a": INT}},
        {"$ref": "#/definitions/a", "definitions": {"a": S}},
    ),
    "far down a tree": (obj({"left": {"$ref": "#"}, "value": INT}), obj({"left": {"$ref": "#"}, "value": N})),
    "from anything to nothing": (False, True),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_schema_that_accepts_as_much_is_compatible(name: str) -> None:
    newer, older = ACCEPTED[name]
    assert schema(newer).cannot_read(schema(older)) == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_that_accepts_less_is_not(name: str) -> None:
    newer, older = REFUSED[name]
    assert schema(newer).cannot_read(schema(older)) != []


SMALL = st.sampled_from(
    [
        S,
        INT,
        N,
        {"type": "null"},
        {},
        True,
        {**S, "maxLength": 2},
        {**INT, "minimum": 3},
        {"enum": ["a", 4]},
        {"const": 4},
    ]
)
ANY = st.recursive(
    SMALL,
    lambda inner: st.one_of(
        st.builds(obj, st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
        st.builds(closed, st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
        st.builds(lambda p: obj(p, required=["a"]), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
        st.builds(arr, inner),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.sampled_from([None, "a", "abc", 1, 4, 4.5]),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=400)
@given(ANY, ANY, VALUES)
def test_what_is_called_compatible_refuses_nothing_that_was_accepted(newer: Any, older: Any, value: Any) -> None:
    if jsonschema_rs.is_valid(older, value) and schema(newer).cannot_read(schema(older)) == []:
        assert jsonschema_rs.is_valid(newer, value)


@given(ANY)
def test_a_schema_is_compatible_with_itself(document: Any) -> None:
    assert schema(document).cannot_read(schema(document)) == []


def test_a_refusal_names_the_place_and_why() -> None:
    older = obj({"address": obj({"zip": {**S, "maxLength": 10}})})
    newer = obj({"address": obj({"zip": {**S, "maxLength": 5}})}, required=["address"])
    assert schema(newer).cannot_read(schema(older)) == [
        "#/properties/address/properties/zip/maxLength: was lowered from 10 to 5",
        "#/required: address is required now and has no default",
    ]


# What a schema may ask for, with a value that fits and one that does not.
CONSTRAINTS: list[tuple[Any, Any, Any, str]] = [
    (S, "a", 1, '1 is not of type "string"'),
    (INT, 1, 1.5, '1.5 is not of type "integer"'),
    (N, 1.5, "1", '"1" is not of type "number"'),
    ({"type": "boolean"}, True, 0, '0 is not of type "boolean"'),
    ({"type": "null"}, None, 0, '0 is not of type "null"'),
    ({"type": "array"}, [], {}, '{} is not of type "array"'),
    ({"type": "object"}, {}, [], '[] is not of type "object"'),
    ({"minimum": 2}, 2, 1, "1 is less than the minimum of 2"),
    ({"maximum": 2}, 2, 3, "3 is greater than the maximum of 2"),
    ({"minLength": 2}, "ab", "a", '"a" is shorter than 2 characters'),
    ({"maxLength": 2}, "ab", "abc", '"abc" is longer than 2 characters'),
    ({"pattern": "^a+$"}, "aa", "b", '"b" does not match "^a+$"'),
    ({"enum": ["a", 1]}, 1, 2, '2 is not one of "a" or 1'),
    ({"required": ["a"]}, {"a": 1}, {}, '"a" is a required property'),
    (closed({"a": {}}), {"a": 1}, {"b": 1}, "Additional properties are not allowed ('b' was unexpected)"),
    ({"minItems": 1}, [1], [], "[] has less than 1 item"),
    ({"maxItems": 1}, [1], [1, 2], "[1,2] has more than 1 item"),
    ({"uniqueItems": True}, [1, 2], [1, 1], "[1,1] has non-unique elements"),
]


@pytest.mark.parametrize("dialect", ["http://json-schema.org/draft-07/schema#", NEW["$schema"], None])
@pytest.mark.parametrize(("document", "good", "bad", "why"), CONSTRAINTS)
def test_a_value_is_checked_and_the_field_named(document: Any, good: Any, bad: Any, why: str, dialect: Any) -> None:
    placed = {"properties": {"order": {"items": document}}}
    checker = schema({"$schema": dialect, **placed} if dialect else placed)
    assert checker.fault(json.dumps({"order": [good]}).encode(), False) is None
    assert checker.fault(json.dumps({"order": [good, bad]}).encode(), False) == f"field order[1]: {why}"


def test_what_is_no_json_is_told() -> None:
    assert "not JSON" in str(schema(True).fault(b"{", False))
    assert "not JSON" in str(schema(True).fault(b"\xff", False))
    assert schema({}).fault(b"[" * 100_000 + b"]" * 100_000, False) is not None


def test_references_lead_into_the_schema_and_to_its_references_and_nowhere_else() -> None:
    local = schema({"$ref": "#/definitions/a", "definitions": {"a": INT}})
    assert (local.fault(b"1", False), local.fault(b'"1"', False)) == (None, 'the value: "1" is not of type "integer"')
    other = [Dependency("part.json", json.dumps({"definitions": {"a": INT}, **obj({"x": S})}))]
    for name in ("part.json#/definitions/a", "part.json#/properties/x"):
        whole = JsonSchema(json.dumps(obj({"p": {"$ref": name}})), other)
        assert whole.fault(b'{"p": null}', False) is not None
    narrower = JsonSchema(json.dumps(obj({"p": {"$ref": "part.json"}})), other)
    wider = JsonSchema(json.dumps(obj({"p": {"$ref": "part.json"}})), [Dependency("part.json", json.dumps(obj()))])
    assert wider.cannot_read(narrower) == []
    assert narrower.cannot_read(wider) != []
    for text in ('{"$ref": "http://127.0.0.1:9/x.json"}', '{"$ref": "file:///etc/hostname"}', '{"$ref": "x.json"}'):
        with pytest.raises(InvalidSchema, match=r"none of the references|is not present"):
            JsonSchema(text)


BAD = [
    "{",
    "3",
    '{"type": "text"}',
    '{"minimum": "low"}',
    '{"required": "a"}',
    '{"pattern": "("}',
    '{"pattern": "(a)\\\\1"}',
    '{"pattern": "(x{1000}){1000}"}',
    '{"$ref": "#/definitions/nowhere"}',
    '{"not": ' * 100 + "{}" + "}" * 100,
    '{"not": ' * 100_000 + "{}" + "}" * 100_000,
]


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_what_is_no_schema_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InvalidSchema, match=r".{10}"):
        JsonSchema(text)


def test_hostile_schemas_cost_little() -> None:
    assert schema({"pattern": "(a+)+$"}).fault(json.dumps("a" * 50_000 + "!").encode(), False) is not None
    for loop in ({"$ref": "#"}, {"allOf": [{"$ref": "#"}]}):
        assert schema(loop).fault(b"1", False) is None
        assert schema(loop).cannot_read(schema(loop)) == []
    wide: Any = {"anyOf": [S, INT]}
    for _ in range(6):
        wide = {"anyOf": [{"items": wide}, {"items": wide}]}
    newer = schema({"properties": {f"p{number}": wide for number in range(50)}})
    older = schema({"properties": {f"p{number}": {"items": wide} for number in range(50)}})
    with pytest.raises(TooComplex, match="50000 steps"):
        newer.cannot_read(older)


def test_space_makes_no_other_schema_and_order_none_when_normalized() -> None:
    assert JsonSchema('{"type":"string"}').fingerprint == JsonSchema(' { "type" : "string" } ').fingerprint
    one, other = JsonSchema('{"type":"string","title":"A"}'), JsonSchema('{"title":"A","type":"string"}')
    assert one.fingerprint != other.fingerprint
    assert one.normalized == other.normalized

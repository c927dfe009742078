"""Schemas of a few kilobytes that ask for more work than there is time: they are refused, or told to be too complex,
after a number of steps that does not depend on how deep they go. Ordinary schemas are not touched by it.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jsonschema_rs
import pytest

from goqueue.broker.schemas.formats import json_schema
from goqueue.broker.schemas.formats.avro import AvroSchema
from goqueue.broker.schemas.formats.avro_resolution import STEPS_MAX as AVRO_STEPS_MAX
from goqueue.broker.schemas.formats.json_cost import counted, is_costly
from goqueue.broker.schemas.formats.json_evolution import Documents
from goqueue.broker.schemas.formats.json_schema import JsonSchema
from goqueue.broker.schemas.formats.parsed import TURN_BYTES_MAX, TooComplex
from goqueue.broker.schemas.formats.protobuf import ProtobufSchema
from goqueue.model.schemas import InvalidSchema
from tests.steps import count_steps

LEVELS = 40
NEW = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def doubling(keyword: str, last: Any, levels: int = LEVELS, root: dict[str, str] | None = None) -> dict[str, Any]:
    """Each level applies the next one twice to the same value."""
    levels_ = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {**(root or {}), "$ref": "#/$defs/d0", "$defs": {**levels_, f"d{levels}": last}}


def schema(document: Any) -> JsonSchema:
    return JsonSchema(json.dumps(document))


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


NEXT = {"properties": {"a": {"$ref": "#"}}}
FORKS: dict[str, tuple[Any, Any]] = {
    "all of": (doubling("allOf", {"type": "integer"}), 1),
    "any of": (doubling("anyOf", {"type": "integer"}), "x"),
    "one of": (doubling("oneOf", {"type": "integer"}), 1),
    "2020-12": (doubling("allOf", {"type": "integer"}, root=NEW), 1),
    "beside others": (
        {
            **NEW,
            "$ref": "#/$defs/d0",
            "$defs": {
                **{
                    f"d{n}": {"$ref": f"#/$defs/d{n + 1}", "allOf": [{"$ref": f"#/$defs/d{n + 1}"}]}
                    for n in range(LEVELS)
                },
                f"d{LEVELS}": {"type": "integer"},
            },
        },
        1,
    ),
}
LOOPS: dict[str, tuple[Any, Any]] = {
    "round a loop": ({"allOf": [NEXT, NEXT]}, nested(LEVELS)),
    "by pattern and name": (
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"^a": {"$ref": "#"}}},
        nested(LEVELS),
    ),
    "not and not": (
        {"allOf": [{"not": {"not": {"$ref": "#/definitions/n"}}}], "definitions": {"n": {"not": {"allOf": [
            {"not": {"properties": {"a": {"$ref": "#/definitions/n"}}}},
            {"not": {"properties": {"a": {"$ref": "#/definitions/n"}}}},
        ]}}}},
        nested(LEVELS),
    ),
    "items and contains": ({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, json.loads("[" * 40 + "1" + "]" * 40)),
    "dynamic": (
        {**NEW, "$dynamicAnchor": "n", "allOf": [{"properties": {"a": {"$dynamicRef": "#n"}}}] * 2},
        nested(LEVELS),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("document", "value"), FORKS.values(), ids=FORKS.keys())
def test_a_value_that_would_take_for_ever_is_refused_after_so_many_steps(document: Any, value: Any) -> None:
    assert len(json.dumps(document)) < 6000
    one = schema(document)
    payload = json.dumps(value).encode()
    assert "too complex" in str(one.fault(payload, False))
    assert count_steps(lambda: one.fault(payload, False)) < 10 * json_schema.STEPS_MAX
    assert "too complex" in str(one.fault(payload, False))


@pytest.mark.parametrize(("document", "value"), LOOPS.values(), ids=LOOPS.keys())
def test_loops_that_fork_are_checked_in_few_steps(document: Any, value: Any) -> None:
    one = schema(document)
    payload = json.dumps(value).encode()
    assert is_costly(Documents(document, {}))
    assert one.fault(payload, False) is None
    assert count_steps(lambda: one.fault(payload, False)) < 10 * json_schema.STEPS_MAX
    strict = schema({**document, "type": ["object", "array", "integer"]})
    wrong = payload.replace(b"1", b"null")
    assert ("not allowed" in str(strict.fault(wrong, False))) == ("definitions" not in document)
    assert count_steps(lambda: strict.fault(wrong, False)) < 10 * json_schema.STEPS_MAX


LONG_ENUMS: dict[str, tuple[list[Any], Any]] = {
    "fractions": ([number + 0.5 for number in range(4000)], 3999.5),
    "objects": ([{"a": [number]} for number in range(4000)], {"a": [3999]}),
    "lists of fractions": ([[number + 0.5] * 10 for number in range(40)], [39.5] * 10),
    "large integers": ([(1 << 60) + number for number in range(4000)], (1 << 60) + 3999),
    "many kinds": ([each for number in range(2000) for each in (number, str(number))], "1999"),
}


@pytest.mark.parametrize(("literals", "last"), LONG_ENUMS.values(), ids=LONG_ENUMS.keys())
@pytest.mark.parametrize("root", [{}, NEW])
def test_a_long_enum_that_is_gone_through_for_each_place_is_counted(
    literals: list[Any], last: Any, root: dict[str, str]
) -> None:
    one = schema({**root, "items": {"enum": literals}})
    assert one.fault(json.dumps([last]).encode(), False) is None
    assert "not allowed" in str(one.fault(json.dumps(["none of them"]).encode(), False))
    assert "too complex" in str(one.fault(json.dumps([last] * 1000).encode(), False))
    inside = schema({**root, "properties": {"default": {"items": {"enum": literals}}}})
    assert "too complex" in str(inside.fault(json.dumps({"default": [last] * 1000}).encode(), False))


def test_enums_that_are_looked_up_at_once_may_be_long() -> None:
    for literals in ([f"name {number}" for number in range(4000)], list(range(4000)), ["a", "b", None, 1.5]):
        assert not is_costly(Documents({"items": {"enum": literals}}, {}))


def test_more_alternatives_than_can_be_counted_are_refused_when_they_are_registered() -> None:
    wide: list[dict[str, Any]] = [
        {"patternProperties": {f"^x{number}": {} for number in range(65)}},
        {"anyOf": [{"const": number} for number in range(300)]},
        {"enum": [number + 0.5 for number in range(5000)]},
        {"properties": {"a": {"allOf": [{"anyOf": [{"minLength": number}] * 20} for number in range(20)]}}},
    ]
    for document in wide:
        with pytest.raises(TooComplex, match="more"):
            schema(document)
    assert schema({"oneOf": [{"const": number} for number in range(60)]}).fault(b"59", False) is None


def test_a_check_of_a_large_value_lets_other_threads_have_turns() -> None:
    """The library holds the interpreter's lock, but for calls of ours: one for each item."""
    one = schema({"items": {"type": "integer"}})
    small, large = json.dumps([1] * 100).encode(), json.dumps([1] * 10_000).encode()
    assert (len(small) <= one.turn_bytes_max, len(large) <= one.turn_bytes_max) == (True, False)
    assert one.fault(large, False) is None
    assert count_steps(lambda: one.fault(small, False)) < 100
    assert count_steps(lambda: one.fault(large, False)) > 10_000
    assert one.fault(large.replace(b"]", b', "x"]'), False) == 'field [10000]: "x" is not of type "integer"'


def test_what_many_ways_lead_to_is_checked_in_a_moment_only_if_it_is_small() -> None:
    one = schema({"allOf": [{"contains": {"pattern": f"c{number}"}} for number in range(60)]})
    assert one.turn_bytes_max < 1200
    assert schema({"type": "object"}).turn_bytes_max == TURN_BYTES_MAX


def test_of_a_value_with_many_faults_the_first_is_told() -> None:
    one = schema({"items": {"type": "string"}})
    assert str(one.fault(json.dumps([1] * 5).encode(), False)).count("is not of type") == 3
    assert str(one.fault(json.dumps([1] * 2000).encode(), False)) == 'field [0]: 1 is not of type "string"'
    assert "too large to say why" in str(one.fault(json.dumps([1] * 70_000).encode(), False))


def test_schemas_that_fork_a_little_are_checked_all_the_same() -> None:
    one = schema(doubling("allOf", {"type": "integer"}, levels=8))
    assert one.fault(b"1", False) is None
    assert "not allowed" in str(one.fault(b'"x"', False))
    tree = schema({"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"a": {"$ref": "#"}}}]})
    assert tree.fault(json.dumps(nested(30)).encode(), False) is None
    assert tree.fault(json.dumps({"a": {"a": "x"}}).encode(), False) is not None


TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "left": {"$ref": "#"}, "right": {"$ref": "#"}},
    "additionalProperties": False,
}
LIST = {"type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}
DEEP: dict[str, Any] = {"type": "integer"}
for _ in range(20):
    DEEP = {"type": "object", "properties": {"a": DEEP, "b": DEEP}, "additionalProperties": False}
    DEEP["properties"]["b"] = {"type": "string"}
ORDINARY: dict[str, Any] = {
    "a tree": TREE,
    "a list": LIST,
    "deep and closed": DEEP,
    "shared definitions": {
        "properties": {name: {"$ref": "#/definitions/money"} for name in "abcdefgh"},
        "definitions": {"money": {"type": "object", "properties": {"amount": {"type": "number"}}}},
    },
    "choices": {"oneOf": [{"$ref": f"#/definitions/{n}"} for n in range(10)],
                "definitions": {str(n): {"required": [f"k{n}"]} for n in range(10)}},
    "loops in place": {"allOf": [{"$ref": "#"}]},
}  # fmt: skip


@pytest.mark.parametrize("document", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_schemas_are_not_counted(document: Any) -> None:
    assert not is_costly(Documents(document, {}))


@pytest.mark.parametrize("draft", ["draft-07/schema#", "draft/2020-12/schema"])
def test_counting_changes_no_verdict(draft: str) -> None:
    begins = {"$schema": f"http{'s' if '2020' in draft else ''}://json-schema.org/{draft}"}
    values = [
        1,
        "x",
        None,
        {},
        {"left": {}},
        {"left": {"value": "x"}},
        {"next": {"next": None}},
        {"next": 1},
        {"k1": 1},
    ]
    for document in (*ORDINARY.values(), {"$ref": "#/definitions/a", "type": "string", "definitions": {"a": {}}}):
        document = {**begins, **document}  # noqa: PLW2901
        plain = jsonschema_rs.validator_for(document)
        steps = json_schema._Steps()
        counting = jsonschema_rs.validator_for(counted(document), keywords={"gq-count": steps.keyword()})
        assert [counting.is_valid(value) for value in values] == [plain.is_valid(value) for value in values]


def test_what_a_schema_says_of_values_is_no_reference() -> None:
    document = {"const": {"$ref": "#/x"}, "properties": {"$ref": {"type": "string"}}}
    assert counted(document) == document


# -- comparing


def avro_record(name: str, *types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def avro_mesh(records: int, last: str) -> str:
    """Records of which each holds any of those before it, twice."""
    names = [f"R{number}" for number in range(records)]
    rest = [avro_record(name, ["null", *names[:number]], names[:number]) for number, name in enumerate(names) if number]
    return json.dumps([avro_record(names[0], last), *rest])


def avro_doubling(levels: int, last: str = "null") -> str:
    """Each record holds the one before it twice: a value of the last one takes one byte, which names it."""
    rest = [avro_record(f"R{number}", f"R{number - 1}", f"R{number - 1}") for number in range(1, levels + 1)]
    return json.dumps([avro_record("R0", last), *rest])


def steps_or_refusal(happen: Callable[[], object]) -> int:
    def guarded() -> None:
        with suppress(TooComplex):
            happen()

    return count_steps(guarded)


@pytest.mark.parametrize("records", [10, 20, 30])
def test_avro_records_that_hold_each_other_are_compared_in_few_steps(records: int) -> None:
    older, newer = AvroSchema(avro_mesh(records, "int")), AvroSchema(avro_mesh(records, "string"))
    assert len(older.text) < 8192
    assert steps_or_refusal(lambda: newer.cannot_read(older)) < 100 * AVRO_STEPS_MAX
    assert steps_or_refusal(lambda: older.cannot_read(older)) < 100 * AVRO_STEPS_MAX


def test_avro_records_that_double_are_compared_in_few_steps() -> None:
    older, newer = AvroSchema(avro_doubling(14)), AvroSchema(avro_doubling(14, "string"))
    assert older.cannot_read(older) == []
    assert newer.cannot_read(older) != []
    assert count_steps(lambda: newer.cannot_read(older)) < 200_000


def test_avro_records_that_double_for_ever_are_refused() -> None:
    """Other readers of the registry would not come to an end with a value of it."""
    for text in (avro_doubling(LEVELS), avro_doubling(LEVELS, "string")):
        assert count_steps(lambda text=text: refused(text)) < 50_000  # type: ignore[misc]
    holds_itself = avro_record("R", "R", "R", ["null", "R"])
    assert AvroSchema(json.dumps(holds_itself)).fault(b"", True) is not None


def refused(text: str) -> None:
    with pytest.raises(TooComplex, match="100000 fields"):
        AvroSchema(text)


def test_a_mutual_pair_that_fails_late_is_not_taken_for_fine() -> None:
    """A holds B and then what cannot be read: B, which holds A, must not stay fine."""

    def pair(last: str) -> str:
        inner = {"type": "record", "name": "B", "fields": [{"name": "a", "type": ["null", "A"]}]}
        fields = [{"name": "b", "type": inner}, {"name": "x", "type": last}, {"name": "again", "type": ["null", "B"]}]
        return json.dumps([{"type": "record", "name": "A", "fields": fields}, "B"])

    assert len(AvroSchema(pair("string")).cannot_read(AvroSchema(pair("int")))) == 2


def test_an_avro_value_without_bytes_is_refused_after_few_steps() -> None:
    one = AvroSchema(avro_doubling(14))
    last = bytes([2 * 14])
    assert "take no bytes" in str(one.fault(last, True))
    assert count_steps(lambda: one.fault(last, True)) < 200_000
    assert AvroSchema(avro_doubling(8)).fault(b"\x10", True) is None


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "not"])
def test_json_schemas_that_double_are_compared_in_few_steps(keyword: str) -> None:
    if keyword == "not":
        older, newer = ({"not": {"not": doubling("allOf", {"type": kind})}} for kind in ("integer", "string"))
        for each in (older, newer):
            each["$defs"] = each["not"]["not"]["$defs"]
    else:
        older, newer = (doubling(keyword, {"type": kind}) for kind in ("integer", "string"))
    assert steps_or_refusal(lambda: schema(newer).cannot_read(schema(older))) < 2_000_000
    assert schema(older).cannot_read(schema(older)) == []


def test_protobuf_messages_that_double_are_compared_and_checked_in_few_steps() -> None:
    lines = [f"message M{n} {{ optional M{n + 1} a = 1; optional M{n + 1} b = 2; }}" for n in range(LEVELS)]
    one = ProtobufSchema("\n".join([*lines, f"message M{LEVELS} {{ optional int32 x = 1; }}"]))
    other = ProtobufSchema("\n".join([*lines, f"message M{LEVELS} {{ optional string x = 1; }}"]))
    assert len(other.cannot_read(one)) == 1
    assert count_steps(lambda: other.cannot_read(one)) < 50_000
    assert one.fault(b"\x0a\x00\x12\x00", False) is None


def test_nothing_is_fetched_from_elsewhere() -> None:
    for address in ("http://127.0.0.1:9/schema.json", "file:///etc/passwd", "https://example.invalid/x"):
        with pytest.raises(InvalidSchema, match="none of the references"):
            schema({"$ref": address})


def test_patterns_are_matched_in_linear_time() -> None:
    one = schema({"pattern": "^(a|a)*$", "patternProperties": {"(x+x+)+y": True}})
    assert one.fault(json.dumps("a" * 5000 + "!").encode(), False) is not None
    assert one.fault(json.dumps({"x" * 5000: 1}).encode(), False) is None

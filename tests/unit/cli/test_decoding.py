"""Values that `goqueue consume --decode` unpacks come from strangers."""

import json
from typing import Any

import pytest

from goqueue.cli.run.decoding import _avro

EMPTY: Any = {"type": "record", "name": "Empty", "fields": [{"name": "a", "type": "null"}]}


def record(kind: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": "a", "type": kind}]})


@pytest.mark.parametrize(
    "items",
    ["null", {"type": "null"}, EMPTY, {"type": "fixed", "name": "None0", "size": 0}],
    ids=str,
)
def test_an_array_that_a_few_bytes_can_make_endless_is_not_decoded(items: Any) -> None:
    array = {"type": "array", "items": items}
    for kind in (array, ["string", array], {"type": "map", "values": array}, {"type": "array", "items": array}):
        assert _avro(record(kind), {}) is None


def test_the_same_in_a_schema_that_is_referred_to() -> None:
    array = json.dumps({"type": "record", "name": "Many", "fields": [{"name": "a", "type": "Nulls"}]})
    nulls = json.dumps(
        {"type": "record", "name": "Nulls", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}
    )
    assert _avro(record("Many"), {"nulls": nulls, "many": array}) is None


def test_other_arrays_are_decoded() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    for items, payload, expected in (
        ("int", b"\x04\x02\x04\x00", [1, 2]),
        (["null", "string"], b"\x02\x00\x00", [None]),
        (node, b"\x02\x02\x00\x00", [{"next": {"next": None}}]),
    ):
        decode = _avro(record({"type": "array", "items": items}), {})
        assert decode is not None
        assert decode(payload) == {"a": expected}

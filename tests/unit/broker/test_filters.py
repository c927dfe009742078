from typing import Any

import pytest

from goqueue.model.errors import InvalidFilter
from goqueue.model.lanes import Lane
from goqueue.records.batch import check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import PlainRecord, decode
from goqueue.records.filters import RecordFilter
from goqueue.records.native import Headers

NOW_MS = 1_700_000_000_000
RECORD = PlainRecord(
    offset=7,
    timestamp=NOW_MS,
    key=b"order-1",
    value=b'{"state": "open"}',
    headers=[
        ("type", b"refund"),
        ("empty", b""),
        ("none", None),
        ("type", b"partial"),
        ("gq-priority", b"high"),
        ("gq-dlq-reason", b"attempts"),
    ],
)

MATCHING: list[dict[str, Any]] = [
    {},
    {"key": b"order-1"},
    {"contains": b"open"},
    {"contains": b""},
    {"contains": RECORD.value},
    {"headers": {"type": b"refund"}},
    {"headers": {"type": b"partial"}},
    {"headers": {"type": b"refund", "empty": b""}},
    {"lanes": frozenset({1})},
    {"lanes": frozenset({1, 4})},
    {"reason": "attempts"},
    {"from_ms": NOW_MS},
    {"to_ms": NOW_MS + 1},
    {"from_ms": NOW_MS, "to_ms": NOW_MS + 1},
]
OTHER: list[dict[str, Any]] = [
    {"key": b"order-2"},
    {"key": b"order"},
    {"key": b""},
    {"contains": b"closed"},
    {"headers": {"type": b"refun"}},
    {"headers": {"Type": b"refund"}},
    {"headers": {"none": b""}},
    {"headers": {"missing": b""}},
    {"headers": {"type": b"refund", "missing": b""}},
    {"lanes": frozenset({0, 2, 3, 4})},
    {"lanes": frozenset()},
    {"reason": "expired"},
    {"reason": ""},
    {"from_ms": NOW_MS + 1},
    {"to_ms": NOW_MS},
]


@pytest.mark.parametrize("conditions", MATCHING)
def test_a_record_that_meets_the_condition_is_taken(conditions: dict[str, Any]) -> None:
    assert RecordFilter(**conditions).matches(RECORD)


@pytest.mark.parametrize("conditions", OTHER)
def test_a_record_that_does_not_is_left(conditions: dict[str, Any]) -> None:
    assert not RecordFilter(**conditions).matches(RECORD)


def test_all_conditions_must_hold() -> None:
    all_of_them = {
        "key": b"order-1",
        "contains": b"open",
        "headers": {"type": b"refund"},
        "lanes": frozenset({1}),
        "reason": "attempts",
        "from_ms": NOW_MS,
        "to_ms": NOW_MS + 1,
    }
    assert RecordFilter(**all_of_them).matches(RECORD)  # type: ignore[arg-type]
    for one in OTHER:
        assert not RecordFilter(**{**all_of_them, **one}).matches(RECORD)


def test_nothing_is_not_the_same_as_empty() -> None:
    bare = RECORD._replace(key=None, value=None, headers=[])
    for conditions in ({"key": b""}, {"contains": b""}, {"reason": ""}, {"headers": {"none": b""}}):
        assert not RecordFilter(**conditions).matches(bare)
    assert RecordFilter().matches(bare)


@pytest.mark.parametrize("conditions", [{"from_ms": 0}, {"to_ms": NOW_MS}, {"from_ms": 0, "to_ms": NOW_MS}])
def test_a_record_without_time_lies_in_no_span(conditions: dict[str, int]) -> None:
    without_time = RECORD._replace(timestamp=-1)
    assert not RecordFilter(**conditions).matches(without_time)  # type: ignore[arg-type]
    assert RecordFilter(key=b"order-1").matches(without_time)


@pytest.mark.parametrize(
    ("headers", "batch_lane", "lane"),
    [
        ([], None, Lane.NORMAL),
        ([("gq-priority", b"critical")], None, Lane.CRITICAL),
        ([("gq-priority", b"nonsense")], None, Lane.NORMAL),
        ([], Lane.LOW, Lane.LOW),
        ([("gq-priority", b"high")], Lane.CRITICAL, Lane.CRITICAL),
    ],
)
def test_the_batch_knows_the_lane_or_the_headers_do(headers: Headers, batch_lane: int | None, lane: int) -> None:
    record = RECORD._replace(headers=headers)
    taken = [each for each in Lane if RecordFilter(lanes=frozenset({each})).matches(record, batch_lane)]
    assert taken == [lane]


def test_records_of_a_batch_are_filtered() -> None:
    rows: list[NewRecord] = [(NOW_MS + number, b"key-%d" % (number % 2), b"%d" % number, []) for number in range(6)]
    records = decode(check_batch(memoryview(build_batch(rows))))
    taken = RecordFilter(key=b"key-1", from_ms=NOW_MS + 2)
    assert [record.offset for record in records if taken.matches(record)] == [3, 5]


def test_only_a_filter_without_conditions_is_empty() -> None:
    assert RecordFilter().is_empty
    assert RecordFilter.parse({}, NOW_MS).is_empty
    assert not any(RecordFilter(**conditions).is_empty for conditions in MATCHING[1:] + OTHER)


@pytest.mark.parametrize(
    ("written", "conditions"),
    [
        ({"key": "örder"}, {"key": "örder".encode()}),
        ({"key": ""}, {"key": b""}),
        ({"contains": "x=y"}, {"contains": b"x=y"}),
        ({"header.type": "refund"}, {"headers": {"type": b"refund"}}),
        ({"header.a": "1", "header.b.c": "2=3"}, {"headers": {"a": b"1", "b.c": b"2=3"}}),
        ({"lane": "high"}, {"lanes": frozenset({1})}),
        ({"lane": "Critical, 4,low"}, {"lanes": frozenset({0, 3, 4})}),
        ({"reason": "attempts"}, {"reason": "attempts"}),
        ({"from": "-10m", "to": "now"}, {"from_ms": NOW_MS - 600_000, "to_ms": NOW_MS}),
        ({"from": "2023-11-14T22:13:20Z"}, {"from_ms": NOW_MS}),
        ({"to": "1700000000000"}, {"to_ms": NOW_MS}),
    ],
)
def test_a_filter_is_read_from_text(written: dict[str, str], conditions: dict[str, Any]) -> None:
    assert RecordFilter.parse(written, NOW_MS) == RecordFilter(**conditions)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"keys": "a"}, "unknown field 'keys', possible are key, header.NAME, contains, lane, reason, from, to"),
        ({"Key": "a"}, "unknown field 'Key'"),
        ({"": "a"}, "unknown field ''"),
        ({"header": "a=b"}, "unknown field 'header'"),
        ({"header.": "b"}, r"unknown field 'header\.'"),
        ({"from_ms": "5"}, "unknown field 'from_ms'"),
        ({"lane": "urgent"}, "lane 'urgent' does not exist, possible are critical, high"),
        ({"lane": ""}, "lane '' does not exist"),
        ({"lane": "high,5,low,6"}, "lane '5', '6' does not exist"),
        ({"from": "yesterday"}, "from: 'yesterday' is no time: possible are RFC 3339"),
        ({"to": "10m"}, "to: '10m' is no time"),
        ({"from": "now", "to": "-10m"}, r"from \(now\) must lie before to \(-10m\)"),
        ({"from": "now", "to": "now"}, "must lie before"),
        ({"x": "1", "lane": "y", "to": "z"}, "unknown field 'x'.*; lane 'y'.*; to: 'z'"),
    ],
)
def test_a_filter_that_cannot_be_read_says_all_that_is_wrong(written: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidFilter, match=message):
        RecordFilter.parse(written, NOW_MS)

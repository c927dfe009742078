"""Rows as Arrow brings them become the very bytes that our producer would send."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from goqueue.client.message import MIXED, NORMAL, add_wishes
from goqueue.client.routes import Route
from goqueue.records.batch import Codec, check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import decode
from goqueue.records.partitioners import Partitioner, partition_for
from goqueue.spark.errors import SparkError
from goqueue.spark.sink.columns import check_schema, rows_of
from goqueue.spark.sink.encode import BATCH_ROWS_MAX, encode
from goqueue.spark.sink.route import Router, Target, cut
from goqueue.spark.sink.varints import TABLE_NUMBERS, varint, varints

NOW_MS = 1_700_000_000_000
MIB = 1024 * 1024
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES = {
    "topic": pa.string(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS,
    "partition": pa.int32(),
    "priority": pa.string(),
    "delay": pa.int64(),
    "deliver_at": pa.timestamp("us", "UTC"),
    "ttl": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
}

octets = st.none() | st.binary(max_size=40) | st.integers(100, 20_000).map(bytes)
names = st.text(max_size=8).filter(lambda name: not name.startswith("gq-"))
moments = st.integers(0, 2**42).map(lambda us: datetime.fromtimestamp(us / 1000, UTC))
rows: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["orders", "bills"]),
        "key": octets,
        "value": octets,
        "headers": st.none() | st.lists(st.fixed_dictionaries({"key": names, "value": octets}), max_size=3),
        "partition": st.none() | st.integers(0, 2),
        "priority": st.sampled_from([None, "critical", "HIGH", "normal", "low", "4", "2"]),
        "ttl": st.sampled_from([None, "5m", "1h"]),
        "timestamp": st.none() | moments,
    }
)
delays: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from([None, 0, 60_000]).map(lambda ms: {"delay": ms}), moments.map(lambda at: {"deliver_at": at})
)
tables = st.lists(st.tuples(rows, delays).map(lambda both: both[0] | both[1]), min_size=1, max_size=30)
columns = st.sets(st.sampled_from(sorted(TYPES.keys() - {"topic", "value"})))


def batch_of(table: list[dict[str, Any]], wanted: set[str]) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array([row.get(name) for row in table], TYPES[name]) for name in sorted(wanted)})


def in_ms(at: datetime | None) -> int | None:
    return None if at is None else (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def as_sent(row: dict[str, Any]) -> tuple[NewRecord, int]:
    """What the producer makes of it, and its lane."""
    given_headers = [(each["key"], each["value"]) for each in row.get("headers") or []]
    wishes = (row.get("priority"), row.get("delay"), in_ms(row.get("deliver_at")), row.get("ttl"))
    pairs, lane = add_wishes(given_headers, NOW_MS, *wishes)
    time_ms = in_ms(row.get("timestamp"))
    return (NOW_MS if time_ms is None else time_ms, row.get("key"), row.get("value"), pairs), lane


@settings(max_examples=60, deadline=None)
@given(table=tables, wanted=columns, codec=st.sampled_from(list(Codec)), batch_bytes=st.sampled_from([1, 500, MIB]))
def test_rows_become_what_our_producer_would_send(
    table: list[dict[str, Any]], wanted: set[str], codec: Codec, batch_bytes: int
) -> None:
    wanted |= {"topic", "value"}
    given = [{name: row.get(name) for name in wanted} for row in table]
    routed = Router(None, lambda _: Target(3, Partitioner.MURMUR3)).route(rows_of(batch_of(given, wanted)))
    batches = cut(routed, batch_bytes)
    made = encode(routed.rows, [count for _, count in batches], NOW_MS, codec)
    assert sum(count for _, count in batches) == len(table)
    routes = {name: Route(name, 3, Partitioner.MURMUR3) for name in ("orders", "bills")}
    expected: dict[tuple[str, int], list[tuple[NewRecord, int]]] = {}
    loose = []
    for row in given:
        if row.get("partition") is None and row.get("key") is None:
            loose.append(as_sent(row)[0])  # any place is right
        else:
            place = routes[str(row["topic"])].choose(row.get("key"), row.get("partition")).place
            expected.setdefault(place, []).append(as_sent(row))
    for (place, count), encoded in zip(batches, made, strict=True):
        batch = check_batch(memoryview(encoded.data))
        assert (batch.record_count, encoded.length, batch.codec, batch.is_transactional) == (count, count, codec, True)
        records = [(one.timestamp, one.key, one.value, one.headers) for one in decode(batch)]
        sent = []
        for record in records:
            if expected.get(place) and expected[place][0][0] == record:
                sent.append(expected[place].pop(0))
            else:
                loose.remove(record)
                sent.append((record, lane_of(record)))
        lanes = {lane for _, lane in sent}
        ours = build_batch(
            records,
            codec=codec,
            producer_id=0,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
            lane=lanes.pop() if len(lanes) == 1 else None,
        )
        assert batch.max_timestamp == max(record[0] for record in records)
        if "timestamp" not in wanted:  # ours counts from the first time, this from the lowest
            assert bytes(encoded.data[61:]) == bytes(ours[61:])
        assert batch.attributes == check_batch(memoryview(ours)).attributes
    assert not loose
    assert not any(expected.values())


def lane_of(record: NewRecord) -> int:
    named = dict(record[3]).get("gq-priority")
    return NORMAL if named is None else [b"critical", b"high", b"normal", b"low", b"background"].index(named)


def test_headers_with_wishes_of_their_own_are_believed() -> None:
    headers = [[{"key": "gq-priority", "value": b"low"}], []]
    found = rows_of(pa.record_batch({"value": [b"a", b"b"], "headers": pa.array(headers, HEADERS)}))
    batch = check_batch(memoryview(encode(found, [2], NOW_MS, Codec.NONE)[0].data))
    assert batch.attributes & 0x0700 == 0, "no lane for all of them"
    pairs, lane = add_wishes([("gq-priority", b"low")], NOW_MS, None, None, None, None)
    assert [one.headers for one in decode(batch)] == [pairs, []]
    assert lane == MIXED


def test_rows_without_key_and_partition_are_spread_evenly_and_in_turns() -> None:
    router = Router("orders", lambda _: Target(3, Partitioner.MURMUR3))
    got = [0, 0, 0]
    for size in (1, 1, 1, 7, 30_000):
        for (_, number), count in router.route(rows_of(pa.record_batch({"value": [b""] * size}))).places:
            got[number] += count
    assert max(got) - min(got) <= 2
    assert sum(got) == 30_010


@pytest.mark.parametrize("kind", list(Partitioner))
def test_rows_go_where_their_topic_puts_their_keys(kind: Partitioner) -> None:
    keys = [b"customer-%d" % number for number in range(30)]
    batch = pa.record_batch({"key": keys, "value": [b"x"] * 30})
    routed = Router("orders", lambda _: Target(3, kind)).route(rows_of(batch))
    assert routed.rows.key is not None
    left: list[bytes] = routed.rows.key.to_pylist()
    found: dict[bytes, int] = {}
    for (_, partition), count in routed.places:
        found |= dict.fromkeys(left[:count], partition)
        left = left[count:]
    if kind is Partitioner.ROUND_ROBIN:
        assert [count for _, count in routed.places] == [10, 10, 10]
    else:
        assert found == {key: partition_for(key, 3, kind) for key in keys}


def test_no_batch_is_larger_than_it_may_be() -> None:
    values = [bytes(size) for size in (10, 2000, 10, 10)] + [b""] * 40_000
    routed = Router("orders", lambda _: Target(1, Partitioner.MURMUR3)).route(
        rows_of(pa.record_batch({"value": values}))
    )
    sizes = [count for _, count in cut(routed, 1000)]
    assert sizes[:3] == [1, 1, 15]
    assert sum(sizes) == len(values)
    assert max(count for _, count in cut(routed, 100 * MIB)) == BATCH_ROWS_MAX


def test_numbers_of_every_size() -> None:
    numbers = [-1, 0, 63, 64, TABLE_NUMBERS - 1, TABLE_NUMBERS, 2**31, 2**40]
    assert varints(pa.array(numbers, pa.int64())).to_pylist() == [varint(number) for number in numbers]
    assert [varint(number).hex() for number in (-1, 0, 1, 63, 64)] == ["01", "00", "02", "7e", "8001"]


BYTES, TEXT, LONG = BinaryType(), StringType(), LongType()
VALUE = {"value": TEXT}


def schema_of(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"value": LONG}, "column 'value' is bigint, but must be binary or string"),
        (VALUE | {"offsets": LONG}, "there is no column 'offsets' in a message; those are key, value, headers,"),
        (VALUE | {"headers": MapType(TEXT, BYTES)}, "'headers' is map<string,binary>, but must be array<struct"),
        (VALUE | {"headers": ArrayType(schema_of(key=LONG, value=BYTES))}, "column 'headers' is array<struct<key:"),
        (VALUE | {"deliver_at": DateType()}, "column 'deliver_at' is date, but must be timestamp"),
        (VALUE | {"ttl": DoubleType()}, "column 'ttl' is double"),
        ({"key": TEXT}, "column 'value' is missing"),
        (VALUE | {"Value": TEXT}, "column 'value' is there 2 times"),
    ],
)
def test_columns_that_make_no_message_are_named(schema: dict[str, DataType], expected: str) -> None:
    with pytest.raises(SparkError) as told:
        check_schema(schema_of(**schema), has_topic=True)
    assert expected in str(told.value)


def test_a_topic_must_come_from_somewhere() -> None:
    for schema in (schema_of(value=TEXT), schema_of(value=TEXT, topic=NullType())):
        with pytest.raises(SparkError, match="no topic is given"):
            check_schema(schema, has_topic=False)
    headers = ArrayType(schema_of(key=TEXT, value=BYTES))
    check_schema(schema_of(VALUE=TEXT, topic=TEXT, key=NullType(), headers=headers), has_topic=False)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (
            {"priority": [None, "urgent"]},
            "column 'priority' holds 'urgent', but must be string or int: critical, high,",
        ),
        ({"priority": pa.array([2, 7], pa.int8())}, "column 'priority' holds '7', but must be string or int"),
        ({"delay": [5, -5]}, "column 'delay' holds -5, which is below 0"),
        ({"ttl": ["5m", "soon"]}, "column 'ttl' holds 'soon', which is no duration: possible are milliseconds"),
        (
            {"ttl": [0, 2**62]},
            "column 'ttl' holds 4611686018427387904, which is more than there is until the year 9999",
        ),
        ({"delay": [None, timedelta(seconds=-1)]}, "column 'delay' holds -1000, which is below 0"),
        ({"deliver_at": [None, datetime(1969, 1, 1, tzinfo=UTC)]}, "'deliver_at' holds -31536000000, which is below 0"),
        ({"delay": [1, 2], "deliver_at": [None, 0]}, "holds 1970-01-01T00:00:00Z beside 'delay': say either"),
        (
            {"headers": pa.array([[{"key": "a", "value": b""}], [{"key": None, "value": b""}]], HEADERS)},
            "column 'headers' holds a header without a name",
        ),
    ],
)
def test_a_value_that_cannot_be_is_told_with_its_column_and_the_topic_of_its_row(
    column: dict[str, Any], expected: str
) -> None:
    values = {"value": [b"a", b"b"], "topic": ["orders", "bills"]}
    with pytest.raises(SparkError) as told:
        rows_of(pa.record_batch(values | column))
    assert expected in str(told.value)
    assert str(told.value).endswith("; the row is for topic 'bills'")
    with pytest.raises(SparkError, match="; the row is for topic 'audit'"):
        rows_of(pa.record_batch(values | column), "audit")


def test_a_partition_that_is_not_there_is_told_with_its_topic() -> None:
    router = Router(None, lambda _: Target(3, Partitioner.MURMUR3))
    batch = pa.record_batch({"value": [b"a", b"b"], "topic": ["orders", "bills"], "partition": [2, 3]})
    with pytest.raises(SparkError, match="column 'partition' holds 3, but topic 'bills' has only 0 to 2"):
        router.route(rows_of(batch))

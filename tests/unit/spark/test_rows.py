from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import Batch, Codec, check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import unpack
from goqueue.spark.options import Options, Part
from goqueue.spark.read.columns import COLUMNS, schema_of
from goqueue.spark.read.rows import Home, Rows
from goqueue.spark.read.uniform import runs_of
from goqueue.telemetry.trace_ids import make_trace_id

HOME = Home("orders", b"0123456789abcdef", 3)
ALL = ",".join(column.name for column in COLUMNS)
MOMENT_MS = 1_700_000_000_123
TRACE = "0af7651916cd43dd8448eb211c80319c"


def arrow_schema(columns: str = ALL) -> pa.Schema:
    return to_arrow_schema(schema_of(Options({"columns": columns}, Part.BATCH)), timezone="UTC")


def batch_of(records: list[NewRecord], **fields: Any) -> Batch:
    return check_batch(memoryview(build_batch(records, **fields)))


def rows_of(batch: Batch, start: int = 0, end: int = 2**62, columns: str = ALL) -> list[dict[str, Any]]:
    rows = Rows(arrow_schema(columns), HOME)
    rows.add(batch, start, end)
    taken = rows.take()
    assert taken.schema.equals(arrow_schema(columns))
    taken.validate(full=True)
    return taken.to_pylist()  # type: ignore[no-any-return]


def test_a_record_with_everything() -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("gq-priority", b"HIGH"),
        ("traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode()),
        ("a", None),
        ("a", b"2"),
    ]
    batch = batch_of([(MOMENT_MS, b"k", b"v", headers)], base_offset=41)
    assert rows_of(batch) == [
        {
            "key": b"k",
            "value": b"v",
            "topic": "orders",
            "partition": 3,
            "offset": 41,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
            "timestampType": 0,
            "headers": [{"key": name, "value": value} for name, value in headers],
            "priority": "high",
            "trace_id": TRACE,
            "delivery_count": 0,
        }
    ]


def test_a_record_with_nothing() -> None:
    batch = batch_of([(0, None, None, [])], base_offset=41, append_time=MOMENT_MS, lane=0)
    (row,) = rows_of(batch)
    assert (row["key"], row["value"], row["headers"]) == (None, None, [])
    assert (row["priority"], row["trace_id"]) == ("critical", make_trace_id(HOME.topic_id, 3, 41))
    assert (row["timestampType"], row["timestamp"].microsecond) == (1, 123000)


values = st.none() | st.binary(max_size=300)
records = st.lists(st.tuples(st.integers(0, 2**41), values, values), min_size=1, max_size=200)


@given(records=records, codec=st.sampled_from(Codec), cuts=st.tuples(st.integers(0, 220), st.integers(0, 220)))
def test_what_went_in_comes_out(
    records: list[tuple[int, bytes | None, bytes | None]], codec: Codec, cuts: tuple[int, int]
) -> None:
    start, end = 1000 + min(cuts), 1000 + max(cuts)
    batch = batch_of([(*record, []) for record in records], codec=codec, base_offset=1000)
    rows = Rows(arrow_schema("key,offset,value,timestamp"), HOME)
    rows.add(batch, start, end)
    wanted = [(offset, *record) for offset, record in enumerate(records, 1000) if start <= offset < end]
    assert rows.count == len(wanted)
    if not wanted:
        return
    taken = rows.take()
    found = zip(*(taken[name].to_pylist() for name in ("offset", "key", "value")))
    assert [(offset, key, value) for offset, _, key, value in wanted] == list(found)
    assert taken["timestamp"].cast(pa.int64()).to_pylist() == [1000 * moment for _, moment, _, _ in wanted]


@given(
    count=st.sampled_from([255, 256, 1000, 9000]),
    key=st.none() | st.binary(max_size=70),
    value=st.none() | st.binary(max_size=200),
    step_ms=st.sampled_from([0, 1, -3, 40]),
    odd=st.none() | st.tuples(st.integers(0, 8999), st.sampled_from(["value", "header", "time"])),
    append_time=st.none() | st.just(MOMENT_MS),
)
@settings(max_examples=40)
def test_records_that_are_alike_come_out_as_they_went_in(
    count: int,
    key: bytes | None,
    value: bytes | None,
    step_ms: int,
    odd: tuple[int, str] | None,
    append_time: int | None,
) -> None:
    records: list[NewRecord] = [(MOMENT_MS + number * step_ms, key, value, []) for number in range(count)]
    if odd is not None and odd[0] < count:
        moment, *_ = records[odd[0]]
        headers: list[tuple[str, bytes | None]] = [("gq-priority", b"low")] if odd[1] == "header" else []
        longer = (value or b"") + b"!" if odd[1] == "value" else value
        records[odd[0]] = (moment + 10_000 * (odd[1] == "time"), key, longer, headers)
    batch = batch_of(records, base_offset=500, append_time=append_time)
    rows = Rows(arrow_schema(), HOME)
    rows.add(batch, 0, 2**60)
    taken = rows.take()
    taken.validate(full=True)
    assert taken.schema.equals(arrow_schema())
    assert taken["key"].to_pylist() == [key] * count
    assert taken["value"].to_pylist() == [record[2] for record in records]
    assert taken["offset"].to_pylist() == list(range(500, 500 + count))
    assert taken["timestamp"].cast(pa.int64()).to_pylist() == [
        1000 * (moment if append_time is None else append_time) for moment, *_ in records
    ]
    assert taken["headers"].to_pylist() == [
        [{"key": name, "value": each} for name, each in record[3]] for record in records
    ]
    assert taken["priority"].to_pylist() == ["low" if record[3] else "normal" for record in records]
    assert taken["trace_id"][count - 1].as_py() == make_trace_id(HOME.topic_id, 3, 500 + count - 1)


def test_what_is_uniform_is_seen() -> None:
    alike = batch_of([(MOMENT_MS + number // 9, b"key", bytes(100), []) for number in range(9000)])
    runs = runs_of(bytes(unpack(alike)), 9000)
    assert runs is not None
    assert [(run.first, run.count) for run in runs] == [(0, 64), (64, 512), (576, 7616), (8192, 808)]
    varied = batch_of([(MOMENT_MS, None, bytes(100 + number % 2), []) for number in range(9000)])
    assert runs_of(bytes(unpack(varied)), 9000) is None
    cut = bytes(unpack(alike))[:-1]
    assert runs_of(cut, 9000) is None


def test_columns_are_collected_over_batches_and_begin_anew() -> None:
    rows = Rows(arrow_schema("offset,value"), HOME)
    for base in (0, 2, 10):
        rows.add(batch_of([(0, None, b"%d" % at, []) for at in (base, base + 1)], base_offset=base), 0, 100)
    assert rows.take().to_pydict() == {
        "offset": [0, 1, 2, 3, 10, 11],
        "value": [b"0", b"1", b"2", b"3", b"10", b"11"],
    }
    assert rows.count == 0
    rows.add(batch_of([(0, None, b"x", [])], base_offset=12), 0, 100)
    assert rows.take().to_pydict() == {"offset": [12], "value": [b"x"]}


def test_a_moment_that_no_calendar_has_is_null() -> None:
    batch = batch_of([(2**62, None, b"x", []), (MOMENT_MS, None, b"y", [])])
    assert [row["timestamp"] and row["timestamp"].microsecond for row in rows_of(batch)] == [None, 123000]


def test_damage_is_told() -> None:
    batch = batch_of([(0, None, bytes(100), [])] * 50)
    broken = batch._replace(data=memoryview(bytes(batch.data[:61]) + bytes(len(batch.data) - 61)))
    with pytest.raises(CorruptBatch):
        rows_of(broken)

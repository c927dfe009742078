"""A micro-batch of a topic becomes a commit of its table: as driver and tasks do it, with no Spark between them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from goqueue.model.table_options import Part
from goqueue.spark.errors import SparkError
from goqueue.spark.formats.registry import Registry, SchemaText
from goqueue.spark.iceberg import table as tables
from goqueue.spark.iceberg.catalogs import Catalogs, own_catalog
from goqueue.spark.iceberg.columns import OWN
from goqueue.spark.iceberg.table import TopicTable
from goqueue.spark.where import Where
from tests.unit.spark.avro_values import avro, record, written
from tests.unit.spark.test_iceberg_table import messages, settings

SERVER = Where("http://127.0.0.1:1")
"""Nobody is there: what is known is not asked for."""
FRAME = b"\0\0\0\0\1"
ORDER = record(("id", "int"))
GARBAGE = FRAME + b"\xff\xff\xff\xff\xff\xff"


class Rows:
    """What `write` asks of a DataFrame."""

    schema = StructType([])

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.batches = batches

    def mapInArrow(self, function: Any, _schema: Any) -> "Rows":  # noqa: N802  Spark's name
        return Rows(list(function(iter(self.batches))))

    def repartition(self, *_: Any) -> "Rows":
        return self

    def collect(self) -> list[dict[str, bytes]]:
        return [{"told": each} for batch in self.batches for each in batch.column("told").to_pylist()]


def topic_table(lake: Path, **changes: Any) -> TopicTable:
    return TopicTable(settings(**changes), Catalogs(lake), SERVER)


def rows_of(values: Sequence[bytes | None], first: int = 0, keys: Sequence[bytes | None] = ()) -> pa.RecordBatch:
    batch = messages(range(first, first + len(values)))
    changed = {"value": list(values)} | ({"key": list(keys)} if keys else {})
    for name, column in changed.items():
        batch = batch.set_column(batch.schema.names.index(name), name, pa.array(column, pa.binary()))
    return batch


def write(topic: TopicTable, batch: pa.RecordBatch, number: int, query: str = "q") -> None:
    topic.write(Rows([batch]), query, number)  # type: ignore[arg-type]


def found(topic: TopicTable) -> list[dict[str, Any]]:
    """The columns of the values, in the order of offsets."""
    rows = topic.load(topic.decoding())[0].scan().to_arrow().sort_by("_offset").to_pylist()
    return [{name: value for name, value in row.items() if name not in OWN.names} for row in rows]


def letters(topic: TopicTable) -> list[tuple[int, bytes | None, str]]:
    rows = topic.dead_letters().scan().to_arrow().sort_by("_offset").to_pylist()
    return [(row["_offset"], row["_value"], row["_reason"]) for row in rows]


@pytest.fixture
def latest(monkeypatch: pytest.MonkeyPatch) -> dict[str, SchemaText]:
    """What the registry has, under `schema`."""
    has: dict[str, SchemaText] = {"schema": avro(ORDER)}
    monkeypatch.setattr(Registry, "latest", lambda *_: has["schema"])
    return has


def typed(lake: Path, **changes: Any) -> TopicTable:
    return topic_table(lake, is_typed=True, **({"partition": ()} | changes))


# -- how far a table is


def test_a_batch_with_a_number_that_was_there_before_loses_no_row(tmp_path: Path) -> None:
    """Checkpoints are restored from a backup, or lost in a part: numbers come again, and stand for other offsets."""
    topic = topic_table(tmp_path)
    for number in range(5):
        write(topic, messages(range(number * 10, number * 10 + 10)), number)
    write(topic, messages(range(20, 80)), 2)
    rows = topic.load(None)[0].scan().to_arrow()
    assert sorted(rows.column("_offset").to_pylist()) == list(range(80))
    assert topic.counts.rows == 80
    assert topic.counts.commits == 6


def test_a_commit_whose_answer_was_lost_is_there_once_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, commit, calls = topic_table(tmp_path), tables.commit, []

    def lost(*given: Any) -> None:
        commit(*given)
        calls.append(given)
        raise ConnectionError("the catalog went away")

    monkeypatch.setattr(tables, "commit", lost)
    write(topic, messages(range(10)), 0)
    assert len(calls) == 1
    assert topic.counts.rows == 10
    assert topic.load(None)[0].scan().to_arrow().num_rows == 10


def test_a_table_that_is_dropped_under_its_query_is_written_from_the_start(tmp_path: Path) -> None:
    topic = topic_table(tmp_path)
    topic.open()
    write(topic, messages(range(10)), 0)
    own_catalog(tmp_path).drop_table(("goqueue", "shop_orders"))
    with pytest.raises(SparkError, match=r"goqueue.shop_orders was made anew: it is written from the start"):
        write(topic, messages(range(10, 20)), 1)
    topic.open()
    assert topic.positions == {}, "where a query of the new one begins"
    write(topic, messages(range(20)), 0)
    assert topic.load(None)[0].scan().to_arrow().num_rows == 20


def test_a_table_that_is_put_back_under_its_query_is_written_from_where_it_is(tmp_path: Path) -> None:
    topic = topic_table(tmp_path)
    topic.open()
    write(topic, messages(range(10)), 0)
    older = topic.load(None)[0].properties["goqueue.state"]
    write(topic, messages(range(10, 20)), 1)
    with topic.load(None)[0].transaction() as transaction:
        transaction.set_properties({"goqueue.state": older})
    topic.load(None)  # as the tidying does
    with pytest.raises(SparkError, match=r"goqueue.shop_orders was put back to an older state: it is written from"):
        write(topic, messages(range(20, 30)), 2)
    topic.open()
    assert topic.reached == {0: 10}, "where its next query begins"
    write(topic, messages(range(10, 30)), 0)
    assert topic.reached == {0: 30}


def test_dead_letters_under_a_number_that_was_there_before_are_added_too(tmp_path: Path, latest: Any) -> None:
    topic = typed(tmp_path)
    write(topic, rows_of([GARBAGE, FRAME + written(ORDER, {"id": 1})]), 7)
    write(topic, rows_of([b"\0\0\0\0\1"], 2), 7)
    assert [offset for offset, *_ in letters(topic)] == [0, 2]
    topic.open()
    assert [offset for offset, *_ in letters(topic)] == [0, 2], "once"
    assert found(topic) == [{"id": 1}]


def test_dead_letters_that_were_thrown_away_stop_nobody(tmp_path: Path, latest: Any) -> None:
    topic = typed(tmp_path)
    write(topic, rows_of([GARBAGE]), 0)
    for task in topic.dead_letters().scan().plan_files():
        Path(task.file.file_path.removeprefix("file://")).unlink()
    own_catalog(tmp_path).drop_table(("goqueue", "shop_orders_dead_letters"))
    topic.open()
    write(topic, rows_of([GARBAGE], 1), 1)
    assert [offset for offset, *_ in letters(topic)] == [1]


def test_the_table_of_another_topic_gets_no_dead_letters(tmp_path: Path, latest: Any) -> None:
    other = topic_table(tmp_path, topic="shop.orders_dead_letters", topic_id="id-2")
    write(other, messages(range(3)), 0)
    with pytest.raises(SparkError, match=r"goqueue.shop_orders_dead_letters has the rows of topic shop.orders_dead_le"):
        write(typed(tmp_path), rows_of([GARBAGE]), 0)
    other.open()
    assert other.positions == {0: 3}
    (by_day, by_key) = other.load(None)[0].spec().fields
    assert (by_day.name, by_key.name) == ("timestamp_day", "key_bucket"), "its option counts, whatever it is called"


# -- upsert


def test_a_table_that_was_made_for_append_is_not_used_for_upsert(tmp_path: Path) -> None:
    """Rows of a key lie in the partitions of their days, or several of them in one: old ones would stay for ever."""
    by_key = {"partition": (Part("bucket[2]", "_key"),)}
    write(topic_table(tmp_path / "a"), messages(range(10)), 0)
    with pytest.raises(SparkError, match=r"divided by _timestamp, and table.mode=upsert needs one .* by _key alone"):
        topic_table(tmp_path / "a", mode="upsert", **by_key).open()
    write(topic_table(tmp_path / "b", **by_key), messages(range(10)), 0)
    with pytest.raises(SparkError, match="has a row for each message, not for each key: rename or drop it"):
        topic_table(tmp_path / "b", mode="upsert", **by_key).open()
    empty = topic_table(tmp_path / "c", **by_key)
    empty.open()
    replacing = topic_table(tmp_path / "c", mode="upsert", **by_key)
    write(replacing, messages(range(1, 5)), 0)
    write(topic_table(tmp_path / "c", **by_key), messages(range(5, 8)), 1)
    with pytest.raises(SparkError, match="has a row for each message"):
        replacing.open()


def test_several_versions_of_a_key_in_one_batch_leave_the_last_one(tmp_path: Path) -> None:
    topic = topic_table(tmp_path, mode="upsert", partition=(Part("bucket[2]", "_key"),))
    keys = [b"a", b"b", b"a", b"c", b"c", b"b", b"", None, None]
    write(topic, rows_of([b"1", b"2", None, b"4", b"5", b"6", b"empty", b"keyless", None], keys=keys), 0)
    assert [row["value"] for row in found(topic)] == [b"5", b"6", b"empty"]
    assert [letter[:2] for letter in letters(topic)] == [(7, b"keyless"), (8, None)]
    write(topic, rows_of([None, b"again", None, b"back"], 9, [b"c", b"a", b"", b"c"]), 1)
    assert [row["value"] for row in found(topic)] == [b"6", b"again", b"back"]
    assert topic.counts.bad == 2


# -- partitions


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double", [1.0, float("nan"), 0.0, -0.0, float("nan"), float("inf")]),
        ("float", [1.5, float("nan"), -0.0, 0.0]),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, [Decimal("1.10"), Decimal("-3.00")]),
        ("string", ["x" * 300, "", "a/b", "..", "\N{EURO SIGN}" * 100, "x" * 300]),
        ("bytes", [b"\xff" * 400, b"", b"/"]),
        ("boolean", [True, False]),
    ],
)
def test_each_row_is_in_one_partition_whatever_its_value(
    tmp_path: Path, latest: Any, kind: Any, values: list[Any]
) -> None:
    schema = record(("a", ["null", kind]))
    latest["schema"] = avro(schema)
    topic = typed(tmp_path, partition=(Part("identity", "a"),))
    every = [*values, None]
    write(topic, rows_of([FRAME + written(schema, {"a": value}) for value in every]), 0)
    assert [repr(row["a"]) for row in found(topic)] == [repr(value) for value in every]
    assert letters(topic) == []


def test_a_column_is_never_called_as_a_part_of_the_partition(tmp_path: Path, latest: Any) -> None:
    by_day = {"partition": (Part("day", "_timestamp"),)}
    clash = record(("timestamp_day", "int"))
    topic = typed(tmp_path / "later", **by_day)
    write(topic, rows_of([FRAME + written(ORDER, {"id": 1})]), 0)
    latest["schema"] = avro(clash)
    write(topic, rows_of([FRAME + written(clash, {"timestamp_day": 2})], 1), 1)
    assert found(topic)[1] == {"id": None, "timestamp_day_2": 2}
    first = typed(tmp_path / "first", **by_day)
    write(first, rows_of([FRAME + written(clash, {"timestamp_day": 3})]), 0)
    assert found(first) == [{"timestamp_day": 3}]


@pytest.mark.parametrize("parts", [(), (Part("day", "_timestamp"),), (Part("hour", "_timestamp"),)])
def test_a_time_that_is_in_no_calendar_is_null(tmp_path: Path, parts: Any) -> None:
    """Producers give what they want: one that counts from another year must not stop the table."""
    moments_ms = [0, -62_135_596_800_001, 253_402_300_800_000, 1_700_000_000_000_000, -1]
    batch = messages(range(5))
    times = pa.array([each * 1000 for each in moments_ms], pa.int64()).cast(pa.timestamp("us", "UTC"))
    topic = topic_table(tmp_path, partition=parts)
    write(topic, batch.set_column(batch.schema.names.index("timestamp"), "timestamp", times), 0)
    rows = topic.load(None)[0].scan().to_arrow().sort_by("_offset")
    moments = [each and each.timestamp() for each in rows.column("_timestamp").to_pylist()]
    assert moments == [0, None, None, None, -0.001]


# -- values


def test_a_null_list_of_records_is_not_an_empty_one(tmp_path: Path, latest: Any) -> None:
    """Neither in the file, which other programs read, nor when small files are put together."""
    inner = record(("n", "int"))
    schema = record(
        ("l", ["null", {"type": "array", "items": inner}]),
        ("m", ["null", {"type": "map", "values": "Row2"}]),
    )
    inner["name"] = "Row2"
    latest["schema"] = avro(schema)
    topic = typed(tmp_path)
    values = [{"l": None, "m": None}, {"l": [], "m": {}}, {"l": [{"n": 1}], "m": {"k": {"n": 2}}}]
    write(topic, rows_of([FRAME + written(schema, value) for value in values]), 0)
    wanted = [{"l": None, "m": None}, {"l": [], "m": []}, {"l": [{"n": 1}], "m": [("k", {"n": 2})]}]
    assert found(topic) == wanted
    (task,) = topic.load(None)[0].scan().plan_files()
    in_file = pq.read_table(task.file.file_path.removeprefix("file://")).select(["l", "m"])
    assert in_file.to_pylist() == wanted


def test_a_field_that_can_hold_nothing_is_no_column(tmp_path: Path, latest: Any) -> None:
    empty = {"type": "record", "name": "Empty", "fields": []}
    inner = {**record(("x", "int"), ("n", "null")), "name": "In"}
    schema = record(
        ("id", "int"),
        ("beat", ["null", empty]),
        ("never", "null"),
        ("beats", {"type": "array", "items": "Empty"}),
        ("in", inner),
    )
    latest["schema"] = avro(schema)
    topic = typed(tmp_path)
    value = {"id": 1, "beat": {}, "never": None, "beats": [{}], "in": {"x": 2, "n": None}}
    write(topic, rows_of([FRAME + written(schema, value)]), 0)
    assert found(topic) == [{"id": 1, "in": {"x": 2}}]
    alone = record(("beat", ["null", empty]))
    latest["schema"] = avro(alone)
    topic = typed(tmp_path / "alone")
    write(topic, rows_of([FRAME + written(alone, {"beat": {}})]), 0)
    assert found(topic) == [{}]


def test_a_value_that_nobody_has_thought_of_costs_its_row_only(tmp_path: Path, latest: Any) -> None:
    document = {"properties": {"n": {"type": "number"}, "at": {"type": "string", "format": "date-time"}}}
    latest["schema"] = SchemaText(1, "JSON", json.dumps({"type": "object", **document}))
    topic = typed(tmp_path)
    bad = [b'{"n":1%s}' % (b"0" * 400), b'{"at":"0001-01-01T00:00:00+14:00"}', b'{"at":"9999-12-31T23:59:59-01:00"}']
    other_ids = [b"\0\xff\xff\xff\xff{}", b"\0\x80\0\0\0{}"]
    good = b'{"n":2,"at":"2026-11-18T01:00:00+01:00"}'
    write(topic, rows_of([*(FRAME + each for each in bad), *other_ids, FRAME + good, None]), 0)
    there = {"n": 2.0, "at": datetime(2026, 11, 18, tzinfo=UTC)}
    assert found(topic) == [there, {"n": None, "at": None}]
    assert [offset for offset, *_ in letters(topic)] == [0, 1, 2, 3, 4]
    assert "there is no schema 4294967295 in the registry" in letters(topic)[3][2]


# -- columns


def test_a_column_stays_with_its_field(tmp_path: Path, latest: Any) -> None:
    """code becomes a text while there is a field code_2, and a field code_2 comes when code has a second column."""
    first, second = record(("code", "int"), ("code_2", "string")), record(("code", "string"), ("code_2", "string"))
    topic = typed(tmp_path / "both")
    changes = ((first, {"code": 1, "code_2": "b"}), (second, {"code": "c", "code_2": "d"}))
    for number, (schema, value) in enumerate(changes):
        latest["schema"] = avro(schema)
        write(topic, rows_of([FRAME + written(schema, value)], number), number)
    assert found(topic)[1] == {"code": None, "code_2": "d", "code_3": "c"}
    alone, text = record(("code", "int")), record(("code", "string"))
    topic = typed(tmp_path / "later")
    steps = ((alone, {"code": 1}), (text, {"code": "c"}), (second, {"code": "e", "code_2": "f"}))
    for number, (schema, value) in enumerate(steps):
        latest["schema"] = avro(schema)
        write(topic, rows_of([FRAME + written(schema, value)], number), number)
    assert [(row["code"], row["code_2"], row["code_2_2"]) for row in found(topic)] == [
        (1, None, None), (None, "c", None), (None, "e", "f"),
    ]  # fmt: skip


def test_a_topic_may_stop_to_have_a_schema(tmp_path: Path, latest: Any) -> None:
    schema = record(("value", "string"))
    latest["schema"] = avro(schema)
    write(typed(tmp_path), rows_of([FRAME + written(schema, {"value": "a"})]), 0)
    raw = topic_table(tmp_path, partition=())
    write(raw, rows_of([b"\1\2"], 1), 1)
    assert found(raw) == [{"value": "a", "value_2": None}, {"value": None, "value_2": b"\1\2"}]


def test_a_text_that_becomes_bytes_gets_a_column(tmp_path: Path, latest: Any) -> None:
    topic = typed(tmp_path)
    for number, (kind, value) in enumerate((("string", "a"), ("bytes", b"\xff"), ("string", "b"))):
        schema = record(("a", kind))
        latest["schema"] = avro(schema)
        write(topic, rows_of([FRAME + written(schema, {"a": value})], number), number)
    assert found(topic) == [{"a": "a", "a_2": None}, {"a": None, "a_2": b"\xff"}, {"a": "b", "a_2": None}]
    assert letters(topic) == []


def test_a_batch_without_a_good_row_writes_no_file_of_rows(tmp_path: Path, latest: Any) -> None:
    topic = typed(tmp_path)
    write(topic, rows_of([GARBAGE]), 0)
    assert not list(topic.load(topic.decoding())[0].scan().plan_files())
    assert (topic.counts.bad, topic.counts.files) == (1, 0)


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b"])
def test_a_directory_whose_name_is_no_address_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SparkError, match=r"cannot be a lake: #, [?] and %20 mean something else"):
        Catalogs(tmp_path / name).open()
    assert not list(tmp_path.iterdir())

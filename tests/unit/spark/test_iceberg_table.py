"""Tables of Iceberg without Spark around them: columns, partitions, files, and commits that exclude each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from goqueue.model.table_options import Part
from goqueue.spark.errors import SparkError
from goqueue.spark.iceberg.catalogs import Catalogs
from goqueue.spark.iceberg.columns import OWN, fits, iceberg_schema, named, spec_of
from goqueue.spark.iceberg.files import as_bytes, from_bytes, target_of
from goqueue.spark.iceberg.lag import Behind
from goqueue.spark.iceberg.rows import Plan, Told, write_rows
from goqueue.spark.iceberg.settings import TableSettings, settings_of
from goqueue.spark.iceberg.state import State, read_state, written
from goqueue.spark.iceberg.table import Counts, Files, Grounds, TopicTable, commit, gathered
from goqueue.spark.iceberg.upsert import last_of_each_key, placed, upsert_rows
from goqueue.spark.where import Where
from goqueue.wire.rest.topics import PartitionOffsets, TopicDetails

DAY_US = 24 * 60 * 60 * 1_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def settings(**changes: Any) -> TableSettings:
    parts = (Part("day", "_timestamp"), Part("bucket[4]", "_key"))
    made = TableSettings("shop.orders", "id-1", "append", False, None, parts, 1000, -1, "")
    return made._replace(**changes)


def table(lake: Path, **changes: Any) -> TopicTable:
    return TopicTable(settings(**changes), Catalogs(lake), Where("http://nobody"))


def messages(offsets: Sequence[int], headers: Sequence[Any] = ()) -> pa.RecordBatch:
    count = len(offsets)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"key %d" % (each % 7) if each % 5 else None for each in offsets], pa.binary()),
            "value": pa.array([b"value %d" % each for each in offsets], pa.binary()),
            "topic": pa.array(["shop.orders"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array([each * DAY_US // 100 for each in offsets], pa.timestamp("us", tz="UTC")),
            "headers": pa.array(headers or [[]] * count, HEADERS),
            "priority": pa.array(["normal"] * count),
        }
    )


def write(topic: TopicTable, batch: pa.RecordBatch) -> tuple[Any, Files]:
    """As a task and the driver do it, up to the commit."""
    loaded, state = topic.load(None)
    transaction = loaded.transaction()
    plan = Plan(target_of(loaded, transaction.table_metadata), None, state.positions)
    results = [row for each in write_rows(iter([batch]), plan) for row in each.column("told").to_pylist()]
    told = [msgspec.msgpack.decode(each, type=Told, strict=False) for each in results]
    data = [from_bytes(each.data, 0) for each in told if each.data]
    ends = {number: met[0] for each in told for number, met in each.seen.items()}
    grounds = Grounds(transaction.table_metadata.schema(), state.positions, None)
    return transaction, Files(data, (), ends, Counts(), [], grounds)


def offsets_in(topic: TopicTable) -> list[int]:
    return sorted(topic.load(None)[0].scan().to_arrow().column("_offset").to_pylist())


def test_rows_are_divided_by_the_partition_and_come_back_as_they_were(tmp_path: Path) -> None:
    topic = table(tmp_path)
    delay = [[{"key": "gq-delay-ms", "value": b"1500"}] if each == 3 else [] for each in range(250)]
    transaction, files = write(topic, messages(range(250), delay))
    days = {(each // 100) for each in range(250)}
    assert {file.partition[0] for file in files.data} == days
    assert {file.partition[1] for file in files.data} <= {None, 0, 1, 2, 3}
    assert [from_bytes(as_bytes(file), 0) for file in files.data] == files.data
    commit(transaction, files, topic.load(None)[1].after("q", 0, files.ends, ()))
    rows = topic.load(None)[0].scan().to_arrow().sort_by("_offset")
    assert rows.column("value").to_pylist() == [b"value %d" % each for each in range(250)]
    assert rows.column("_key").to_pylist() == messages(range(250)).column("key").to_pylist()
    delivered = {row["_offset"]: row["_deliver_at"] for row in rows.to_pylist() if row["_deliver_at"]}
    assert {offset: at.timestamp() for offset, at in delivered.items()} == {3: 3 * 864 + 1.5}
    assert topic.positions == {0: 250}


def test_of_two_that_commit_the_same_batch_one_is_refused(tmp_path: Path) -> None:
    """PyIceberg would have put the second one on top of the first: the rows twice."""
    first, second = table(tmp_path), table(tmp_path)
    one, its_files = write(first, messages(range(100)))
    other, same_files = write(second, messages(range(100)))
    after = first.load(None)[1].after("q", 0, {0: 100}, ())
    commit(one, its_files, after)
    with pytest.raises(CommitFailedException):
        commit(other, same_files, after)
    assert offsets_in(second) == list(range(100))
    # Rows that the table has are left out, also for a query that knows nothing of the first.
    transaction, files = write(second, messages(range(50, 150)))
    assert files.ends == {0: 150}
    commit(transaction, files, second.load(None)[1].after("another", 0, files.ends, ()))
    assert offsets_in(second) == list(range(150))
    assert write(second, messages(range(150)))[1].ends == {}


def test_a_commit_without_rows_is_refused_too_when_another_was_faster(tmp_path: Path) -> None:
    topic = table(tmp_path)
    one, files = write(topic, messages(range(10)))
    empty = topic.load(None)[0].transaction()
    commit(one, files, topic.load(None)[1].after("q", 0, {0: 10}, ()))
    with pytest.raises(CommitFailedException):
        commit(empty, files._replace(data=[]), topic.load(None)[1].after("q", 0, {0: 10}, ()))


def test_a_table_of_another_topic_is_refused(tmp_path: Path) -> None:
    table(tmp_path).open()
    for changes in ({"topic_id": "id-2"}, {"topic": "shop-orders"}):
        with pytest.raises(SparkError, match="rename or drop it"):
            table(tmp_path, **changes).open()
    Catalogs(tmp_path).open().create_table(("goqueue", "foreign"), schema=OWN)
    with pytest.raises(SparkError, match="was not made by this service"):
        table(tmp_path, topic="foreign").open()
    with pytest.raises(SparkError, match="catalog 'missing' cannot be used"):
        table(tmp_path, catalog="missing").open()


def test_a_state_is_read_as_it_was_written() -> None:
    state = State(topic="a", topic_id="b").after("q", 3, {1: 5, 0: 7}, ("x.parquet",))
    assert read_state(written(state)) == state
    assert state.positions == {0: 7, 1: 5}
    assert read_state({}) is None


def test_a_field_that_no_column_can_hold_gets_one_of_its_own() -> None:
    there = iceberg_schema(pa.schema([*OWN, ("a", pa.int32()), ("s", pa.struct([("x", pa.int32())]))]))

    def names(*fields: tuple[str, Any]) -> dict[str, str]:
        return {one.field: one.column for one in named(there, pa.schema(list(fields)))}

    assert names(("a", pa.int64()), ("b", pa.string())) == {"a": "a", "b": "b"}
    assert names(("a", pa.string()), ("s", pa.int64())) == {"a": "a_2", "s": "s_2"}
    assert names(("A", pa.int32()), ("_KEY", pa.binary())) == {"A": "a", "_KEY": "_KEY_2"}
    assert names(("s", pa.struct([("x", pa.int64()), ("y", pa.string())]))) == {"s": "s"}
    assert names(("s", pa.struct([("x", pa.string())]))) == {"s": "s_2"}
    assert names(("nothing", pa.null())) == {}
    with pytest.raises(SparkError, match="twice"):
        names(("b", pa.string()), ("B", pa.string()))


def test_a_partition_of_what_the_table_does_not_have_is_refused() -> None:
    schema = iceberg_schema(OWN)
    assert not fits(schema.find_field("_key").field_type, schema.find_field("_offset").field_type)
    with pytest.raises(SparkError, match="names region, which the table does not have"):
        spec_of([Part("identity", "region")], schema, "orders")
    with pytest.raises(SparkError, match="there is no day of _key"):
        spec_of([Part("day", "_key")], schema, "orders")


def test_the_last_row_of_each_key_counts_and_a_tombstone_is_none() -> None:
    rows = pa.RecordBatch.from_pydict(
        {
            "_key": pa.array([b"a", b"b", b"a", b"c"], pa.binary()),
            "_offset": pa.array([1, 2, 5, 6], pa.int64()),
            "value": pa.array([b"1", b"2", b"3", b"4"], pa.binary()),
        }
    )
    gone = pa.RecordBatch.from_pydict(
        {"key": pa.array([b"b", b"a", b"d"], pa.binary()), "offset": pa.array([3, 4, 7], pa.int64())}
    )
    left, keys = last_of_each_key([rows], [gone])
    assert left is not None
    assert sorted(left.column("value").to_pylist()) == [b"3", b"4"]
    assert sorted(keys.to_pylist()) == [b"a", b"b", b"c", b"d"]
    assert last_of_each_key([], [])[0] is None


def details(options: dict[str, str], ends: Sequence[int] = ()) -> TopicDetails:
    offsets = {str(number): PartitionOffsets(0, end - 1, end) for number, end in enumerate(ends)}
    return TopicDetails("shop.orders", "id-1", len(ends), 0, 0, offsets, options)


def test_options_say_how_a_table_is_kept() -> None:
    assert settings_of(details({"retention.ms": "5"})) is None
    made = settings_of(details({"table": "iceberg"}))
    assert made is not None
    assert (made.name, made.partition, made.is_typed) == ("shop_orders", (Part("day", "_timestamp"),), False)
    said = {"table": "iceberg", "table.mode": "upsert", "table.schema": "registry", "schema.subject": "{topic}-v"}
    made = settings_of(details(said))
    assert made is not None
    assert (made.partition, made.is_typed, made.subject) == ((Part("bucket[16]", "_key"),), True, "shop.orders-v")
    made = settings_of(details({"table": "iceberg", "table.partition": "none"}))
    assert made is not None
    assert made.partition == ()


def test_lag_is_how_long_the_oldest_message_is_missing() -> None:
    behind = Behind()
    assert behind.look(details({}, [10, 0]), {0: 10}, 0.0) == (0, 0.0)
    assert behind.look(details({}, [12, 0]), {0: 10}, 5.0) == (2, 0.0)
    assert behind.look(details({}, [15, 1]), {0: 10}, 8.0) == (6, 3.0)
    assert behind.look(details({}, [15, 1]), {0: 12}, 9.0) == (4, 1.0)
    assert behind.look(details({}, [15, 1]), {0: 15, 1: 1}, 10.0) == (0, 0.0)


def upsert(topic: TopicTable, offsets: Sequence[int], gone: Sequence[int] = ()) -> None:
    """As the tasks and the driver do it; values of `gone` are null."""
    loaded, state = topic.load(None)
    there = [as_bytes(task.file) for task in loaded.scan().plan_files()]
    transaction = loaded.transaction()
    dead = topic.dead_letters()
    plan = Plan(
        target_of(loaded, transaction.table_metadata),
        target_of(dead, dead.metadata),
        state.positions,
        files=there,
    )
    batch = messages(offsets)
    values = [None if each in gone else b"value %d" % each for each in offsets]
    at = batch.schema.names.index("value")
    batch = batch.set_column(at, "value", pa.array(values, pa.binary()))
    results = [
        row
        for each in upsert_rows(placed(iter([batch]), plan), plan)
        for row in each.column("told").to_pylist()
    ]  # fmt: skip
    told = [msgspec.msgpack.decode(each, type=Told, strict=False) for each in results]
    files = gathered(told, plan, Grounds(transaction.table_metadata.schema(), state.positions, None), 0)
    commit(transaction, files, state.after("q", state.batch + 1, files.ends, files.dead))


def test_rows_of_a_key_are_replaced_in_the_files_that_have_them(tmp_path: Path) -> None:
    topic = table(tmp_path, mode="upsert", partition=(Part("bucket[2]", "_key"),))
    upsert(topic, range(1, 50))
    before = {task.file.file_path for task in topic.load(None)[0].scan().plan_files()}
    upsert(topic, range(50, 60), gone=[53, 59])
    rows = topic.load(None)[0].scan().to_arrow().to_pylist()
    last = {b"key %d" % (each % 7): each for each in range(60) if each % 5}
    wanted = {key: b"value %d" % each for key, each in last.items() if each not in (53, 59)}
    assert {row["_key"]: row["value"] for row in rows} == wanted
    assert len(rows) == len(wanted)
    after = {task.file.file_path for task in topic.load(None)[0].scan().plan_files()}
    assert not before & after
    state = topic.load(None)[1]
    assert len(state.dead) == 1, "those without a key"

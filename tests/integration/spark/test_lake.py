"""Topics as tables of Iceberg, kept by the service, and read back by DuckDB and Polars."""

import json
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from pyspark.sql import SparkSession

from goqueue.client.sync import Admin, Producer
from goqueue.spark.iceberg.catalogs import own_catalog
from goqueue.spark.iceberg.pages import served
from goqueue.spark.iceberg.tidy import ORPHAN_AGE_S, expire, forget, remove_orphans
from goqueue.spark.jobs import backfill, reconcile, restore
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.registry import message_class, produce, registry, value_of
from tests.integration.spark.jobs import Jobs, publish
from tests.integration.spark.serving import complete, rounds, serving

GARBAGE = b"\0\0\0\0\1\xff\xff"
STRING, INT64 = 9, 3


def table_of(lake: Path, topic: str) -> Any:
    return own_catalog(lake).load_table(("goqueue", topic.replace("-", "_")))


def query(lake: Path, topic: str, sql: str) -> list[tuple[Any, ...]]:
    """By DuckDB, through PyIceberg's Arrow reader."""
    rows = table_of(lake, topic).scan().to_arrow_batch_reader()
    with duckdb.connect() as database:
        database.register("t", rows)
        return database.execute(sql).fetchall()


def order(*fields: tuple[str, Any, Any]) -> str:
    described = [{"name": name, "type": kind, "default": default} for name, kind, default in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": described})


def test_topics_become_tables_and_a_new_schema_new_columns_while_the_stream_runs(
    spark: SparkSession,
    own_node: Node,
    make_topic: CreateTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node, lake, fresh = own_node, tmp_path / "lake", {"table": "iceberg", "table.freshness.ms": "100"}
    raw = make_topic(3, **fresh)
    placed = publish(node, raw, [b"value %d" % number for number in range(2000)])
    with serving(spark, node, lake) as service, registry(node) as client:
        rounds(service, complete(service, raw))
        found = query(lake, raw, "SELECT value, _partition, _offset, _key, _headers[1]['key'], _priority FROM t")
        assert sorted((value, (partition, offset)) for value, partition, offset, *_ in found) == sorted(placed.items())
        assert {row[3:] for row in found} == {(b"key %d" % number, "number", "normal") for number in range(7)}
        monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # there is another, in a package of its own
        assert polars.scan_iceberg(table_of(lake, raw)).select("_offset").collect().height == 2000

        # A topic that is made while the service runs. It cannot be a table before it has a schema.
        typed = make_topic(1, **fresh, **{"table.schema": "registry"})
        rounds(service, lambda: typed in service.kept and service.kept[typed].state == "failing")
        assert f"has no subject {typed}-value or {typed} yet" in service.kept[typed].error
        old = AvroSerializer(client, order(("id", "string", ""), ("amount", "int", 0), ("code", "int", 0)))
        first = [old({"id": f"{number}", "amount": number, "code": 7}, value_of(typed)) for number in range(100)]
        produce(node, typed, *first, GARBAGE, None)
        rounds(service, complete(service, typed))
        assert service.kept[typed].restarts >= 1
        assert query(lake, typed, "SELECT count(*), sum(amount), max(code) FROM t") == [(101, 4950, 7)]

        # int becomes long, one field is new, and one becomes a text: Iceberg has no rule for that.
        with Admin(node.url) as admin:
            admin.set_compatibility("NONE", f"{typed}-value")
        new = order(("id", "string", ""), ("amount", "long", 0), ("code", "string", ""), ("city", "string", "Ulm"))
        second = AvroSerializer(client, new)
        values = [
            second({"id": f"n{number}", "amount": 2**40, "code": "x", "city": "Bonn"}, value_of(typed))
            for number in range(10)
        ]
        produce(node, typed, *values)
        rounds(service, complete(service, typed))
        assert service.kept[typed].restarts == 1, "the stream went on"
        found = query(lake, typed, "SELECT id, amount, code, code_2, city FROM t WHERE _offset IN (1, 105) ORDER BY id")
        assert found == [("1", 1, 7, None, None), ("n3", 2**40, None, "x", "Bonn")]
        assert len(query(lake, typed, "SELECT DISTINCT _partition, _offset FROM t")) == 111
        letters = query(lake, f"{typed}_dead_letters", "SELECT _offset, _value, _reason FROM t")
        assert [letter[:2] for letter in letters] == [(100, GARBAGE)]
        assert "schema" in letters[0][2]
        check_pages(service, typed)


def test_a_topic_that_ends_with_the_marker_of_a_transaction_has_no_lag(
    spark: SparkSession, own_node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic = make_topic(1, **{"table": "iceberg", "table.freshness.ms": "100"})
    producer = KafkaProducer({"bootstrap.servers": own_node.address, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(5):
        producer.produce(topic, b"%d" % number)
    producer.commit_transaction()
    with serving(spark, own_node, tmp_path / "lake") as service:
        rounds(service, complete(service, topic))
        assert service.kept[topic].table.positions == {0: 5}, "its rows know nothing of the marker"
    assert sorted(query(tmp_path / "lake", topic, "SELECT value FROM t")) == [(b"%d" % number,) for number in range(5)]


def test_a_catalog_that_is_restored_from_a_backup_costs_no_message(
    spark: SparkSession, own_node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    """The checkpoints are not: they are behind what the restored table lacks."""
    node, lake = own_node, tmp_path / "lake"
    topic = make_topic(2, **{"table": "iceberg", "table.freshness.ms": "100"})
    sent: dict[bytes, tuple[int, int]] = {}
    backups: list[bytes] = []
    for part in range(3):
        with serving(spark, node, lake) as service:
            sent |= publish(node, topic, [b"%d of %d" % (number, part) for number in range(50)])
            rounds(service, complete(service, topic))
        backups.append((lake / "catalog.db").read_bytes())
    (lake / "catalog.db").write_bytes(backups[0])
    assert query(lake, topic, "SELECT count(*) FROM t") == [(50,)]
    with serving(spark, node, lake) as service:
        rounds(service, complete(service, topic))
    found = query(lake, topic, "SELECT value, _partition, _offset FROM t")
    assert sorted((value, (partition, offset)) for value, partition, offset in found) == sorted(sent.items())


def test_a_slice_of_a_table_and_the_tail_go_into_a_topic_once(
    spark: SparkSession,
    own_node: Node,
    make_topic: CreateTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    node, lake, jobs = own_node, tmp_path / "lake", Jobs(own_node, capsys)
    fresh = {"table": "iceberg", "table.freshness.ms": "100"}
    topic, again = make_topic(2, **fresh), make_topic(1)
    typed = make_topic(1, **fresh, **{"table.schema": "registry"})
    upsert = make_topic(1, **fresh, **{"table.mode": "upsert"})
    began_ms = time.time_ns() // 1_000_000 - 3_600_000
    producer = KafkaProducer({"bootstrap.servers": node.address})

    def send(numbers: range) -> None:
        """A message for each, at its second."""
        for number in numbers:
            value, key, moment = b"%d" % number, b"key %d" % (number % 7), began_ms + number * 1000
            producer.produce(topic, value, key, number % 2, timestamp=moment, headers=[("number", value)])
        producer.flush()

    with serving(spark, node, lake) as service, registry(node) as client:
        write = AvroSerializer(client, order(("value", "bytes", ""), ("id", "int", 0)))
        produce(node, typed, write({"value": b"x", "id": 1}, value_of(typed)))
        publish(node, upsert, [b"a row"])
        for part in range(4):
            send(range(part * 25, part * 25 + 25))
            rounds(service, complete(service, topic, typed, upsert))
    send(range(100, 130))
    start, stop = (f"{moment.isoformat()}Z" for moment in (at(began_ms + 20_000), at(began_ms + 120_000)))
    words = (topic, "--lake", str(lake), "--into", again, "--from", start, "--to", stop, "--keep-timestamps")
    kill_after_a_slice(monkeypatch, jobs, *words, "--batch", "30")
    before = files_of(lake, topic)
    service.kept[topic].table.tidy(spark, 2)
    assert files_of(lake, topic) != before, "those that it began with were put together"
    assert jobs(backfill, *words, "--batch", "30")["written"] <= 100
    nothing = jobs(backfill, *words, "--batch", "30")
    assert (nothing["written"], nothing["why"]) == (0, "no message of that time is new")
    rows = spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address).option("includeHeaders", "true")
    back = rows.load(again).selectExpr("value", "key", "headers", "unix_millis(timestamp) AS at").collect()
    found = sorted((int(row.value), bytes(row.key), bytes(row.headers[0].value), row.at) for row in back)
    wanted = [(n, b"key %d" % (n % 7), b"%d" % n, began_ms + n * 1000) for n in range(20, 120)]
    assert found == wanted
    for other, why in ((typed, "typed columns (table.schema=registry)"), (upsert, "the last row of each key")):
        assert why in jobs(backfill, other, "--lake", str(lake), "--into", again, code=2)["error"]


def files_of(lake: Path, topic: str) -> set[str]:
    return {task.file.file_path for task in table_of(lake, topic).scan().plan_files()}


def at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC).replace(tzinfo=None)


def kill_after_a_slice(monkeypatch: pytest.MonkeyPatch, jobs: Jobs, *words: str) -> None:
    """The second slice is in the topic, and nobody has noted that."""

    def killed(state: restore.State, slices: int) -> None:
        if slices == 2:
            raise KeyboardInterrupt
        noted(state, slices)

    noted = restore.State.note
    with monkeypatch.context() as patched:
        patched.setattr(restore.State, "note", killed)
        with pytest.raises(KeyboardInterrupt):
            jobs(backfill, *words)


def check_pages(service: Any, topic: str) -> None:
    with served(service, "127.0.0.1", 0) as address:

        def get(path: str) -> str:
            with urllib.request.urlopen(f"http://{address}{path}") as answer:
                return str(answer.read().decode())

        metrics = get("/metrics")
        for line in ("lag_messages{%s} 0.0", "rows_total{%s} 111.0", "bad_rows_total{%s} 1.0", "running{%s} 1.0"):
            assert f"goqueue_table_{line}" % f'topic="{topic}"' in metrics
        assert json.loads(get("/healthz"))["status"] == "ok"
        (told,) = (table for table in json.loads(get("/status"))["tables"] if table["topic"] == topic)
        assert (told["state"], told["lag"], told["rows"], told["bad_rows"]) == ("running", 0, 111, 1)


def test_json_schema_and_protobuf_become_columns(
    spark: SparkSession, own_node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    node, lake = own_node, tmp_path / "lake"
    options = {"table": "iceberg", "table.freshness.ms": "100", "table.schema": "registry", "table.partition": "id"}
    documents, messages = make_topic(1, **options), make_topic(1, **options)
    schema = {
        "type": "object",
        "title": "Order",
        "properties": {"id": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
    }
    made = message_class("Order", {"id": STRING, "amount": INT64})
    with registry(node) as client:
        write = JSONSerializer(json.dumps(schema), client)
        produce(node, documents, *(write({"id": f"{n % 3}", "lines": [n]}, value_of(documents)) for n in range(30)))
        pack = ProtobufSerializer(made, client)
        produce(node, messages, *(pack(made(id=f"{n % 3}", amount=n), value_of(messages)) for n in range(30)))
    with serving(spark, node, lake) as service:
        rounds(service, complete(service, documents, messages))
    assert query(lake, documents, "SELECT id, sum(lines[1]) FROM t GROUP BY id ORDER BY id") == [
        ("0", 135), ("1", 145), ("2", 155)
    ]  # fmt: skip
    assert query(lake, messages, "SELECT count(*), sum(amount) FROM t WHERE id = '1'") == [(10, 145)]
    assert len({task.file.partition[0] for task in table_of(lake, messages).scan().plan_files()}) == 3


def test_an_upsert_table_has_the_last_row_of_each_key_and_is_tidied(
    spark: SparkSession,
    own_node: Node,
    make_topic: CreateTopic,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    node, lake = own_node, tmp_path / "lake"
    fresh = {"table": "iceberg", "table.freshness.ms": "100"}
    topic = make_topic(2, **fresh, **{"table.mode": "upsert", "table.partition": "bucket(2,_key)"})
    every = make_topic(2, **fresh, **{"table.retention.ms": "-1"})
    wanted: dict[bytes, bytes] = {}
    with serving(spark, node, lake) as service:
        for number in range(4):
            changes = {b"key %d" % key: b"%d of %d" % (number, key) for key in range(number * 50, number * 50 + 100)}
            gone = [b"key %d" % key for key in range(number * 50, number * 50 + 10)]
            with Producer(node.address) as producer:
                producer.send_many(topic, [{"key": key, "value": b"older"} for key in changes])
                producer.send_many(topic, [{"key": key, "value": value} for key, value in changes.items()])
                producer.send_many(topic, [{"key": key, "value": None} for key in gone])
            publish(node, every, [b"%d" % each for each in range(100)])
            wanted = {key: value for key, value in (wanted | changes).items() if key not in gone}
            rounds(service, complete(service, topic, every))
            assert dict(query(lake, topic, "SELECT _key, value FROM t")) == wanted
            assert query(lake, topic, "SELECT count(*) FROM t") == [(len(wanted),)]
        produce(node, topic, b"a value without a key")
        rounds(service, complete(service, topic))
        (letter,) = query(lake, f"{topic}_dead_letters", "SELECT _value, _reason FROM t")
        assert (letter[0], "no key" in letter[1]) == (b"a value without a key", True)

        check_jobs(spark, Jobs(node, capsys), node, lake, (topic, every, make_topic(2), make_topic(1)))

        # Small files become few, and what is left over goes when it is old enough.
        rows = sorted(query(lake, every, "SELECT value, _partition, _offset FROM t"))
        before = table_of(lake, every)
        assert len(list(before.scan().plan_files())) >= 8
        service.kept[every].table.tidy(spark)
        after = table_of(lake, every)
        assert len(list(after.scan().plan_files())) == 1
        assert sorted(query(lake, every, "SELECT value, _partition, _offset FROM t")) == rows
        assert after.properties["goqueue.state"] == before.properties["goqueue.state"]
        assert expire(after, kept=1) == len(before.metadata.snapshots)
        assert remove_orphans(after, time.time()) == 0, "they are too young"
        assert remove_orphans(after, time.time() + 2 * ORPHAN_AGE_S) >= 8
        assert sorted(query(lake, every, "SELECT value, _partition, _offset FROM t")) == rows
        forget(after.refresh(), 1, time.time() + 3600)
        assert query(lake, every, "SELECT count(*) FROM t") == [(0,)]
        publish(node, every, [b"one more"])
        rounds(service, complete(service, every))
        assert query(lake, every, "SELECT value FROM t") == [(b"one more",)]


def check_jobs(spark: SparkSession, jobs: Jobs, node: Node, lake: Path, topics: tuple[str, str, str, str]) -> None:
    """The table is an archive to other jobs: it has all, and can be written back, dead letters too."""
    topic, every, again, letters = topics
    assert jobs(reconcile, f"topic:{every}", f"lake:{lake}", "--topic", every)["is_right"]
    kept = ("--into", again, "--keep-partitions", "--keep-timestamps")
    assert jobs(restore, every, "--lake", str(lake), *kept)["records"] == 400
    columns = ["key", "value", "partition", "timestamp"]
    source = spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address)
    first, second = (source.load(name).select(*columns).collect() for name in (every, again))
    assert sorted(map(str, second)) == sorted(map(str, first))
    jobs(restore, f"{topic}_dead_letters", "--lake", str(lake), "--into", letters)
    assert [bytes(row.value) for row in source.load(letters).collect()] == [b"a value without a key"]

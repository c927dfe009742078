"""Each table on real data, as a DataFrame and in SQL."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.functions import spark_partition_id

from goqueue.client.sync import Admin, Producer
from goqueue.spark.connect import http_server
from goqueue.spark.options import Options, Part
from goqueue.spark.tables.reader import TableReader
from goqueue.spark.tables.schemas import SCHEMAS
from tests.integration.process import Node, wait_until
from tests.integration.spark.pages import run_examples

NAMES = list(SCHEMAS)


@pytest.fixture(scope="module")
def busy(node: Node) -> Iterator[Admin]:
    """A topic in which something of everything has happened."""
    with Admin(node.url) as admin, Producer(node.address) as producer:
        admin.create_topic("orders", 2, lease_ms=600_000)
        for number in range(6):
            producer.send("orders", f"{number}".encode(), partition=0)
        producer.send("orders", b"\xff\x00", key=b"k", headers={"h": b"\xfe"}, partition=1)
        producer.send("orders", b"later", delay="1h", partition=1)
        admin.schedule("nightly", "orders", "report", cron="0 3 * * *")
        first, second, *_ = admin.receive("orders", "packers", limit=6, partition=0, consumer="anna")
        (odd,) = admin.receive("orders", "packers", limit=6, partition=1, consumer="anna")
        admin.settle([first.receipt_handle])
        admin.settle([second.receipt_handle, odd.receipt_handle], "reject", reason="no such fruit")
        wait_until(lambda: len(list(admin.dead_letters("orders"))) == 2, "the dead letters")
        yield admin


@pytest.fixture(scope="module")
def tables(spark: SparkSession, node: Node, busy: Admin) -> dict[str, DataFrame]:
    asked = spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address)
    found = {name: asked.option("table", name).load() for name in NAMES if name != "traces"}
    # Other tests have left very many journeys on this node.
    found["traces"] = asked.option("table", "traces").option("topic", "orders").load()
    for name, table in found.items():
        table.createOrReplaceTempView(f"gq_{name}")
    return found


def rows(spark: SparkSession, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(sql).collect()]


def test_dead_letters_come_as_they_were_with_what_became_of_them(tables: dict[str, DataFrame]) -> None:
    placed = tables["dlq"].withColumn("task", spark_partition_id())
    letters = placed.where("topic = 'orders'").orderBy("partition").collect()
    assert letters[0].task != letters[1].task
    assert [(row.partition, row.reason, row.error, row.group, row.attempts) for row in letters] == [
        (0, "rejected", "no such fruit", "packers", 1),
        (1, "rejected", "no such fruit", "packers", 1),
    ]
    text, odd = letters
    assert (bytes(text.value), text.key, text.original_offset) == (b"1", None, 1)
    assert (bytes(odd.value), bytes(odd.key), bytes(odd.headers["h"])) == (b"\xff\x00", b"k", b"\xfe")
    age = datetime.now(UTC) - odd.died_at.astimezone(UTC)
    assert timedelta(0) <= age < timedelta(hours=1)


def test_what_is_held_and_how_far_groups_are(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    assert tables["leases"].where("`group` = 'packers'").drop("leased_at", "lease_until").collect() == [
        ("packers", "orders", 0, 2, 5, 4, "anna", 1)
    ]
    held = "SELECT cast(lease_until - leased_at AS string) FROM gq_leases WHERE `group` = 'packers'"
    assert rows(spark, held) == [("INTERVAL '0 00:10:00' DAY TO SECOND",)]
    lag = "SELECT partition, settled_offset, end_offset, lag, leased['normal'] FROM gq_lag WHERE `group` = 'packers'"
    assert sorted(rows(spark, lag)) == [(0, 2, 6, 4, 4), (1, 2, 2, 0, 0)]
    groups = "SELECT type, state, members, topics FROM gq_groups WHERE `group` = 'packers'"
    assert rows(spark, groups) == [("share", "Empty", 0, ["orders"])]


def test_topics_schedules_and_journeys(spark: SparkSession, tables: dict[str, DataFrame], node: Node) -> None:
    (topic,) = tables["topics"].where("topic = 'orders'").collect()
    assert (topic.partitions, topic.options) == (2, {"lease.ms": "600000"})
    assert [tuple(each) for each in topic.offsets] == [(0, 0, 6), (1, 0, 2)]
    waiting = (
        "SELECT kind, name, cron, state, deliver_at > now() FROM gq_schedules WHERE topic = 'orders' ORDER BY kind"
    )
    assert rows(spark, waiting) == [
        ("delayed", None, None, "pending", True),
        ("recurring", "nightly", "0 3 * * *", "pending", True),
    ]
    spans = """
        SELECT status, array_join(transform(spans, span -> span.event), ' '), array_max(spans.consumer)
        FROM gq_traces WHERE topic = 'orders' AND partition = 0 AND offset IN (0, 1, 2) ORDER BY offset
    """
    done, dead, held = rows(spark, spans)
    assert (done[0], done[2], dead[0], held[0]) == ("completed", "anna", "error", "pending")
    assert done[1].endswith("acked")
    limited = spark.read.format("goqueue").option("goqueue.server", node.url).option("limit", "3")
    assert limited.option("table", "traces").option("topic", "orders").load().count() == 3


def test_all_journeys_of_a_partition_are_there(spark: SparkSession, node: Node) -> None:
    many = 2500
    with Admin(node.url) as admin, Producer(node.address) as producer:
        admin.create_topic("travels", 2)
        producer.send_many("travels", [{"value": b"v", "partition": 1}] * many)
    journeys = spark.read.format("goqueue").option("goqueue.server", node.url).option("table", "traces")
    travels = journeys.option("topic", "travels").load()
    assert [row.offset for row in travels.where("partition = 1").orderBy("offset").collect()] == list(range(many))
    assert {row.event for row in travels.selectExpr("inline(spans)").collect()} == {
        "publish.received",
        "publish.persisted",
    }
    asked = spark.read.format("goqueue").option("goqueue.server", node.url).option("table", "steps")
    steps = asked.option("topic", "travels").load().where("event = 'publish.received'")
    assert steps.selectExpr("sum(last_offset - first_offset + 1)", "max(every)").first() == (many, 1)


def test_the_examples_of_the_page_run(
    spark: SparkSession,
    node: Node,
    busy: Admin,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_examples("spark-tables.md", node, {}, {'"topic", "parcels"': '"topic", "orders"'}) == 2
    shown = capsys.readouterr().out
    assert "no such fruit" in shown
    assert "behind" in shown
    assert spark.table("lag").where("`group` = 'packers'").count() == 2


def test_a_table_without_splits_is_empty(own_node: Node) -> None:
    """Spark makes one of its own then."""
    with Admin(own_node.url) as admin:
        admin.create_topic("orders")
    for name in ("dlq", "steps", "traces"):
        reader = TableReader(Options({"table": name, "goqueue.server": own_node.url}, Part.TABLE))
        assert [row for split in reader.partitions() for row in reader.read(split)] == []
        assert list(reader.read(InputPartition(None))) == []


def test_what_cannot_be_read_is_told_in_one_line(spark: SparkSession, node: Node) -> None:
    server = {"goqueue.server": node.url}
    wrong = {
        "there is no topic 'nothing'": {**server, "table": "lag", "topic": "nothing"},
        "the table topics is not by groups": {**server, "table": "topics", "group": "g"},
        "does not answer": {"goqueue.server": "http://127.0.0.1:1", "table": "lag"},
        "needs goqueue.server, or kafka.bootstrap.servers": {"table": "lag"},
    }
    for words, options in wrong.items():
        with pytest.raises(PySparkException) as told:
            spark.read.format("goqueue").options(**options).load().count()
        assert words in str(told.value)
        assert "Traceback" not in str(told.value)


def test_the_http_address_is_found_from_the_broker(node: Node) -> None:
    found = http_server(Options({"kafka.bootstrap.servers": node.address, "table": "lag"}, Part.TABLE))
    assert str(found) == node.url
    given = Options({"goqueue.server": "elsewhere:80", "kafka.bootstrap.servers": "nowhere:1"}, Part.QUEUE)
    assert str(http_server(given)) == "elsewhere:80"

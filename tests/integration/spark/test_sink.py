"""The sink on a real Spark and a real node: what goes in comes out, once, and what fails is never seen."""

import re
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from goqueue.records.partitioners import Partitioner, partition_for
from goqueue.spark.read.columns import COLUMNS
from tests.integration.clients import Record
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node, wait_until
from tests.integration.topics import create_topic, end_offsets

PARTITIONS = 3
PAGE = Path(__file__).parents[3] / "docs" / "spark-sink.md"
ADDRESS = "127.0.0.1:9092"


def to(node: Node, rows: DataFrame, topic: str | None = None, **options: Any) -> DataFrameWriter:
    writer = rows.write.format("goqueue").mode("append").option("kafka.bootstrap.servers", node.address)
    if topic is not None:
        writer = writer.option("topic", topic)
    return writer.options(**options)


def committed(node: Node, topic: str) -> list[Record]:
    """What a reader of committed records sees."""
    ends = end_offsets(node, topic, PARTITIONS, committed_only=True)
    return Confluent.read(node.address, {(topic, number): end for number, end in ends.items()}, committed_only=True)


def wait_decided(node: Node, topic: str) -> None:
    """Until nothing holds readers back."""
    wait_until(lambda: end_offsets(node, topic, committed_only=True) == end_offsets(node, topic), "a decision")


def test_all_columns_come_out_as_they_went_in(spark: SparkSession, node: Node, make_topic: CreateTopic) -> None:
    orders, bills = make_topic(PARTITIONS), make_topic(PARTITIONS)
    rows = [
        (orders, "k1", b"one", [("h", b"v"), ("none", None)], None, "high", timedelta(0), None),
        (orders, None, None, [], 2, None, None, "1h"),
        (bills, "k2", b"", None, None, "normal", None, None),
    ]
    schema = (
        "topic string, key string, value binary, headers array<struct<key: string, value: binary>>, partition int,"
        " priority string, delay interval day to second, ttl string"
    )
    to(node, spark.createDataFrame(rows, schema)).save()
    one, two = sorted(committed(node, orders), key=lambda record: record.value is None)
    assert (one.partition, one.key, one.value) == (partition_for(b"k1", PARTITIONS), b"k1", b"one")
    assert one.headers == (("h", b"v"), ("none", None), ("gq-priority", b"high"), ("gq-delay-ms", b"0"))
    assert (two.partition, two.key, two.value) == (2, None, None)
    (expiry,) = two.headers
    assert expiry[0] == "gq-expires-at"
    assert abs(int(expiry[1] or b"") - two.timestamp_ms - 3_600_000) < 1000
    (three,) = committed(node, bills)
    assert (three.partition, three.key, three.value, three.headers) == (
        partition_for(b"k2", PARTITIONS),
        b"k2",
        b"",
        (),
    )


def test_many_rows_arrive_once_and_a_task_that_fails_takes_all_with_it(
    spark: SparkSession, node: Node, make_topic: CreateTopic
) -> None:
    topic = make_topic(PARTITIONS, partitioner="crc32")
    many = spark.range(0, 50_000, 1, 4).select(
        F.col("id").cast("string").alias("value"), F.col("id").cast("string").alias("key")
    )
    bad = F.when(F.col("value") == "49999", F.raise_error(F.lit("boom"))).otherwise(F.col("value"))
    with pytest.raises(PySparkException, match="boom"):
        to(node, many.select("key", bad.alias("value")), topic).save()
    wait_decided(node, topic)
    assert sum(end_offsets(node, topic).values()) > 0, "the other tasks had written"
    assert committed(node, topic) == []
    options = {"kafka.compression.type": "zstd", "txnAppId": topic, "txnVersion": 7}
    for _ in range(2):  # the second is known to be the same
        to(node, many, topic, **options).save()
    found = committed(node, topic)
    assert Counter(record.value for record in found) == Counter(b"%d" % number for number in range(50_000))
    assert all(
        record.key == record.value
        and record.partition == partition_for(record.key or b"", PARTITIONS, Partitioner.CRC32)
        for record in found
    )


def test_the_examples_of_the_page_run(
    spark: SparkSession, own_node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for topic in ("baskets", "ticks", "audit"):
        create_topic(own_node.address, topic, PARTITIONS)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        assert ADDRESS in example
        code = example.replace(ADDRESS, own_node.address).replace('"checkpoints/', f'"{tmp_path}/checkpoints/')
        exec(compile(code, str(PAGE), "exec"), {"spark": spark})
    assert {(one.key, one.value) for one in committed(own_node, "baskets")} == {
        (b"customer-7", b"three apples"),
        (b"customer-8", b"a pear"),
    }
    ticks = committed(own_node, "ticks")
    assert len(ticks) > 0
    assert Counter(one.value for one in ticks) == Counter(b"%d" % number for number in range(len(ticks)))
    assert {one.headers for one in ticks} == {(("gq-priority", b"low"),)}
    assert sorted(one.value or b"" for one in committed(own_node, "audit")) == [b"0", b"1", b"2"]


def test_rows_are_written_back_as_they_were_read(spark: SparkSession, node: Node, make_topic: CreateTopic) -> None:
    """With all columns that a read has, into a topic that was not there before."""
    first, second = make_topic(PARTITIONS), f"made-by-spark-{uuid.uuid4().hex[:8]}"
    sent = "SELECT CAST(id AS STRING) AS key, CAST(id AS STRING) AS value, 1700000000000 + id * 86400000 AS timestamp"
    to(node, spark.sql(f"{sent}, if(id % 3 = 0, 'high', NULL) AS priority FROM range(500)"), first).save()
    options = {
        "kafka.bootstrap.servers": node.address,
        "subscribe": first,
        "columns": ",".join(c.name for c in COLUMNS),
    }
    rows = spark.read.format("goqueue").options(**options).load()
    to(node, rows.withColumn("partition", F.lit(0)), second).save()
    found = Confluent.read(node.address, {(second, 0): end_offsets(node, second, 1)[0]}, committed_only=True)
    assert sorted((one.key, one.timestamp_ms) for one in found) == sorted(
        (b"%d" % number, 1_700_000_000_000 + number * 86_400_000) for number in range(500)
    )
    assert sorted((one.key, one.timestamp_ms) for one in committed(node, first)) == sorted(
        (one.key, one.timestamp_ms) for one in found
    )


def test_a_topic_that_the_broker_does_not_make_is_told(spark: SparkSession, tmp_path: Path) -> None:
    strict = Node(tmp_path, "--auto-create-topics", "off").start()
    fine = spark.sql("SELECT 'x' AS value")
    try:
        refused(to(strict, fine, "no-such-topic"), "there is no topic 'no-such-topic', and the broker does not make it")
        refused(to(strict, fine.selectExpr("value", "'nowhere' AS topic")), "column 'topic' holds 'nowhere': there is")
    finally:
        strict.clean_up()


def test_a_thread_of_the_user_writes_and_starts_streams(
    spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    first, second = make_topic(PARTITIONS), make_topic(PARTITIONS)
    at = {"kafka.bootstrap.servers": node.address}

    def work() -> None:
        to(node, spark.sql("SELECT CAST(id AS STRING) AS value FROM range(20)"), first).save()
        stream = spark.readStream.format("goqueue").options(**at, startingOffsets="earliest").load(first)
        writer = stream.select("value").writeStream.format("goqueue").options(**at, topic=second)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()
    assert sorted(int(one.value or b"") for one in committed(node, second)) == list(range(20))


BAD = {
    "SELECT 1 AS value": "column 'value' is int, but must be binary or string",
    "SELECT 'x' AS value, 1 AS offsets": "there is no column 'offsets' in a message; those are key, value, headers,",
    "SELECT 'x' AS value, -1L AS timestamp": "column 'timestamp' holds -1, which is below 0; the row is for topic",
    "SELECT 'x' AS key": "column 'value' is missing",
    "SELECT 'x' AS value, 1 AS `VALUE`": "column 'value' is there 2 times",
    "SELECT 'x' AS value, 99 AS partition": "column 'partition' holds 99, but topic '{topic}' has only 0 to 2",
    "SELECT 'x' AS value, 'urgent' AS priority": "column 'priority' holds 'urgent', but must be string or int:",
    "SELECT 'x' AS value, -5 AS delay": "column 'delay' holds -5, which is below 0; the row is for topic '{topic}'",
    "SELECT 'x' AS value, 1L AS delay, 1L AS deliver_at": "beside 'delay': say either; the row is for topic '{topic}'",
}


def test_bad_input_is_told_in_one_line(spark: SparkSession, node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(PARTITIONS)
    fine = spark.sql("SELECT 'x' AS value")
    for statement, expected in BAD.items():
        refused(to(node, spark.sql(statement), topic), expected.format(topic=topic))
    refused(to(node, fine), "no topic is given")
    refused(to(node, spark.sql("SELECT 'x' AS value, NULL AS topic")), "no topic is given")
    refused(to(node, fine, "no such topic"), "no such topic")
    refused(to(node, fine, topic).mode("overwrite"), 'a topic cannot be overwritten: use .mode("append")')
    refused(
        to(node, fine, topic, partitioner="md5"), "partitioner: 'md5' is none of murmur2, murmur3, crc32, round_robin"
    )
    refused(to(node, fine, topic, txnVersion=3), "txnAppId and txnVersion belong together")
    refused(
        to(node, fine, topic, **{"kafka.transaction.timeout.ms": "16m"}),
        "timeout.ms: '16m' is not above 0 and up to 15m",
    )
    refused(
        to(node, fine, topic, **{"kafka.transaction.timeout.ms": "1"}), "kafka.transaction.timeout.ms (1 ms), raise it"
    )
    refused(to(node, spark.sql("SELECT 'x' AS value, CAST(NULL AS string) AS topic")), "column 'topic' holds NULL")
    refused(to(node, spark.sql("SELECT 'x' AS value, 'no/where' AS topic")), "column 'topic' holds 'no/where': ")
    large = spark.sql("SELECT repeat('x', 2000000) AS value")
    refused(to(node, large, topic, **{"kafka.compression.type": "none"}), f"a batch for topic '{topic}' is too large: ")
    assert committed(node, topic) == []


def refused(writer: DataFrameWriter, expected: str) -> None:
    with pytest.raises(PySparkException) as told:
        writer.save()
    said = str(told.value)
    assert expected in said
    assert "Traceback" not in said, said

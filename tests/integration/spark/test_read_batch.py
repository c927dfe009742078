"""`spark.read`: exactly what is in the topics, beside what a Kafka client sees of them."""

import zlib
from pathlib import Path

import confluent_kafka as ck
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node
from tests.integration.spark.reading import START_MS, publish

MILLION = 1_000_000
PARTITIONS = 4


def load(spark: SparkSession, node: Node, topic: str, **options: str) -> DataFrame:
    return spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address).options(**options).load(topic)


def test_a_million_messages_are_read_exactly(spark: SparkSession, node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(partitions=PARTITIONS, durability="os")
    each = MILLION // PARTITIONS
    for partition in range(PARTITIONS):
        publish(
            node,
            topic,
            (b"%d-%d" % (partition, offset) for offset in range(each)),
            partition,
            {"compression.type": ("none", "lz4", "zstd", "gzip")[partition], "linger.ms": 20},
        )
    frame = load(spark, node, topic, minPartitions="6")
    text = f.col("value").cast("string")
    found = frame.groupBy("partition").agg(
        f.count("*"),
        f.countDistinct("offset"),
        f.sum("offset"),
        f.sum(f.crc32("value")),
        f.sum((text != f.concat_ws("-", "partition", "offset")).cast("int")),
        f.sum((f.unix_millis("timestamp") != f.lit(START_MS) + f.col("offset")).cast("int")),
    )
    assert sorted(tuple(row) for row in found.collect()) == [
        (
            partition,
            each,
            each,
            each * (each - 1) // 2,
            sum(zlib.crc32(b"%d-%d" % (partition, offset)) for offset in range(each)),
            0,
            0,
        )
        for partition in range(PARTITIONS)
    ]


def test_rows_are_what_a_kafka_consumer_sees(spark: SparkSession, node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(partitions=2)
    producer = ck.Producer({"bootstrap.servers": node.address})
    for number in range(400):
        headers: list[tuple[str, str | bytes | None]] = [("n", b"%d" % number), ("empty", None)]
        producer.produce(
            topic,
            None if number % 7 == 0 else b"value %d" % number,
            None if number % 5 == 0 else b"key",
            partition=number % 2,
            timestamp=START_MS + number * 37,
            headers=headers[: number % 3],
        )
    assert producer.flush(DEADLINE_S) == 0
    consumer = ck.Consumer({"bootstrap.servers": node.address, "group.id": topic, "log_level": 0})
    consumer.assign([ck.TopicPartition(topic, partition, 0) for partition in range(2)])
    seen: list[ck.Message] = []
    while len(seen) < 400:
        seen += consumer.consume(400, 1)
    consumer.close()
    rows = load(spark, node, topic, includeHeaders="true").collect()
    assert sorted(
        (
            row.partition,
            row.offset,
            row.topic,
            row.key and bytes(row.key),
            row.value and bytes(row.value),
            (row.timestampType + 1, round(row.timestamp.timestamp() * 1000)),
            [(header.key, header.value and bytes(header.value)) for header in row.headers],
        )
        for row in rows
    ) == sorted(
        (one.partition(), one.offset(), one.topic(), one.key(), one.value(), one.timestamp(), one.headers() or [])
        for one in seen
    )
    chosen = spark.read.format("goqueue").schema("offset long, value binary, priority string")
    frame = chosen.option("kafka.bootstrap.servers", node.address).load(topic)
    assert frame.columns == ["offset", "value", "priority"]
    assert frame.where("priority = 'normal'").count() == 400
    frame.createOrReplaceTempView("orders")
    assert spark.sql("select max(offset) from orders").first() == (199,)


def test_trouble_is_one_line_on_the_driver(
    spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=1)
    publish(node, topic, [b"x"])

    def said(frame: DataFrame) -> str:
        with pytest.raises(PySparkException) as told:
            frame.count()
        text = str(told.value)
        assert "Traceback" not in text
        return text.partition("SparkError: ")[2].partition("\n")[0]

    assert said(load(spark, node, "no-such")) == "there is no topic no-such"
    assert said(load(spark, node, topic, startingOffsets=f'{{"{topic}": {{"0": 9}}}}')) == (
        f"startingOffsets: offset 9 of partition 0 of topic {topic} is not there: it has 0 up to 1"
    )
    wrong = spark.read.format("goqueue").schema("value string").option("kafka.bootstrap.servers", node.address)
    assert said(wrong.load(topic)) == "column value is binary, not string: cast it after the read"
    nobody = spark.read.format("goqueue").option("kafka.bootstrap.servers", "127.0.0.1:1").load(topic)
    assert said(nobody).startswith("no broker answers at kafka.bootstrap.servers='127.0.0.1:1': cannot connect to")
    with pytest.raises(AnalysisException, match="there is no column 'valeu'; did you mean value"):
        load(spark, node, topic, columns="valeu")
    query = (
        spark.readStream.format("goqueue")
        .option("kafka.bootstrap.servers", node.address)
        .load("no-such")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    with pytest.raises(PySparkException) as told:
        query.awaitTermination()
    assert "SparkError: there is no topic no-such\n" in str(told.value)
    assert "Traceback" not in str(told.value)

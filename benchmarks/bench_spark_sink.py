"""Spark's way into a topic: rows/s of the sink beside Spark's own `noop` sink and beside our plain producer.

The rows are 100-byte values made by `spark.range`, with and without keys, on two cores. Each has three turns, in turns
with the others, and its best counts. The baseline is the same query into `noop`, the ratio what is left of it.
"""

import time

from pyspark.sql import DataFrame, SparkSession

from benchmarks.bench_client import publish_ours
from benchmarks.harness import QUIET, TURNS, Row, node, rate_rows
from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.librdkafka import own_topic
from goqueue.cli.bench.load import Load
from goqueue.spark import session

ROWS, PLAIN_ROWS = 2_000_000, 200_000
VALUE_BYTES = 100
PARTITIONS = TASKS = 4
CASES = {"values": ["value"], "keys and values": ["key", "value"]}


def run() -> list[Row]:
    spark = session("bench", "local[2]", {"spark.driver.memory": "1g"})
    rows: list[Row] = []
    try:
        with node() as broker:
            plain = max(_plain(broker) for _ in range(TURNS))
            for case, columns in CASES.items():
                frame = _rows(spark).select(*columns)
                rates = [(_noop(frame), _sink(broker, frame)) for _ in range(TURNS)]
                noop, sink = (max(each) for each in zip(*rates))
                told = {"noop": noop, "goqueue sink": sink, "goqueue.client": plain}
                rows += rate_rows(f"{case}, {VALUE_BYTES} bytes", told, "rows/s", "noop")
    finally:
        spark.stop()
    return rows


def _rows(spark: SparkSession) -> DataFrame:
    numbers = spark.range(0, ROWS, 1, TASKS)
    return numbers.selectExpr("cast(id AS string) AS key", f"lpad(cast(id AS string), {VALUE_BYTES}, '0') AS value")


def _noop(frame: DataFrame) -> float:
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return ROWS / (time.perf_counter() - started)


def _sink(broker: Broker, frame: DataFrame) -> float:
    with own_topic(broker, Load(ROWS, VALUE_BYTES, partitions=PARTITIONS, durability="os"), QUIET) as topic:
        writer = frame.write.format("goqueue").mode("append").option("kafka.bootstrap.servers", broker.address)
        started = time.perf_counter()
        writer.save(topic.name)
        rate = ROWS / (time.perf_counter() - started)
        topic.check_stored(ROWS + TASKS * PARTITIONS)  # every task leaves a marker in every partition
    return rate


def _plain(broker: Broker) -> float:
    load = Load(PLAIN_ROWS, VALUE_BYTES, partitions=PARTITIONS, durability="os")
    with own_topic(broker, load, QUIET) as topic:
        rate = publish_ours(broker.address, topic.name, PLAIN_ROWS)
        topic.check_stored(PLAIN_ROWS)
    return rate

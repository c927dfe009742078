"""A stream that reads and writes a cluster of three nodes goes on when one of them is killed: every row, and once."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from tests.integration.dev_cluster import DevCluster
from tests.integration.spark.test_read_stream import end_of, wait_for
from tests.integration.test_cluster import DEADLINE_S, PARTITIONS, Topic

BEFORE, AFTER = 200, 200
"""Messages of each partition."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = DevCluster(tmp_path_factory.mktemp("cluster"), 3).start()
    yield running
    running.clean_up()


def publish(topic: Topic, first: int, count: int) -> list[bytes]:
    """In every partition."""
    producer = Producer({"bootstrap.servers": topic.servers, "acks": "all", "log_level": 0, "enable.idempotence": True})
    sent = [b"%d-%d" % (partition, number) for partition in range(PARTITIONS) for number in range(first, first + count)]
    for value in sent:
        producer.produce(topic.name, value, partition=int(value.partition(b"-")[0]))
    assert producer.flush(DEADLINE_S) == 0
    return sent


def committed(topic: Topic) -> list[bytes]:
    """All that a reader of committed records sees."""
    settings = {"group.id": "check", "enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": topic.servers, "auto.offset.reset": "earliest", **settings})
    consumer.assign([TopicPartition(topic.name, number, 0) for number in range(PARTITIONS)])
    found: list[bytes] = []
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(1000, 1.0):
            if message.error() is None:
                found.append(message.value() or b"")
            else:
                ended.add(message.partition())
    consumer.close()
    return found


def test_a_stream_between_topics_of_a_cluster_survives_the_leader_of_both(
    spark: SparkSession, cluster: DevCluster, tmp_path: Path
) -> None:
    source, sink = Topic(cluster, "stream-source"), Topic(cluster, "stream-sink")
    sent = publish(source, 0, BEFORE)
    options = {"kafka.bootstrap.servers": source.servers, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "300"}
    frame = spark.readStream.format("goqueue").options(**options).load(source.name)
    writer = frame.select("key", "value", "partition").writeStream.format("goqueue").option("topic", sink.name)
    writer = writer.option("kafka.bootstrap.servers", sink.servers).option("checkpointLocation", str(tmp_path / "c"))
    query = writer.start()
    try:
        wait_for(lambda: query.exception() is not None or bool(end_of(query)), "its first batch")
        leader, _ = source.placements()[0]
        os.kill(cluster.pid_of(leader), signal.SIGKILL)
        sent += publish(source, BEFORE, AFTER)
        whole = {source.name: {str(number): BEFORE + AFTER for number in range(PARTITIONS)}}
        wait_for(lambda: end_of(query) == whole, "all rows")
    finally:
        query.stop()
    assert Counter(committed(sink)) == Counter(sent)

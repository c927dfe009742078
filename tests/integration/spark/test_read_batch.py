"""`spark.read`: exactly what is in the topics, beside what a Kafka client sees of them."""

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from goqueue.spark import GoQueueDataSource
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node


def test_rows_are_the_messages_of_the_topic(spark: SparkSession, node: Node, make_topic: CreateTopic) -> None:
    spark.dataSource.register(GoQueueDataSource)
    topic = make_topic(partitions=2)
    producer = Producer({"bootstrap.servers": node.address})
    for number in range(1000):
        producer.produce(
            topic, b"value %d" % number, b"key", partition=number % 2, timestamp=1_700_000_000_000 + number
        )
    assert producer.flush(DEADLINE_S) == 0
    frame = spark.read.format("goqueue").option("kafka.bootstrap.servers", node.address).load(topic)
    rows = sorted(frame.collect(), key=lambda row: (row.offset, row.partition))
    assert [(bytes(row.value), bytes(row.key), row.topic, row.partition, row.offset) for row in rows] == [
        (b"value %d" % number, b"key", topic, number % 2, number // 2) for number in range(1000)
    ]
    assert [round(row.timestamp.timestamp() * 1000) for row in rows] == [
        1_700_000_000_000 + number for number in range(1000)
    ]

"""`spark.readStream`: nothing lost and nothing twice, whatever is killed."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Late, Node
from tests.integration.spark.killing import kill_all_of
from tests.integration.spark.reading import offsets, publish
from tests.integration.topics import admin_client, create_topic, group_offsets

SPARK_DEADLINE_S = 600.0
"""Far away: to start a cluster takes a slow machine minutes."""


def wait_for(is_done: Callable[[], bool], what: str) -> None:
    pause, give_up = threading.Event(), time.monotonic() + SPARK_DEADLINE_S
    while not is_done():
        if time.monotonic() > give_up:
            raise Late(what)
        pause.wait(0.1)


def values(topic: str, count: int, first: int = 0) -> list[bytes]:
    return [b"%s %d" % (topic.encode(), number) for number in range(first, first + count)]


class Archive:
    """A query from topics to files, which can be started again."""

    def __init__(self, spark: SparkSession, node: Node, directory: Path, **options: str) -> None:
        self.spark, self.node = spark, node
        self.sink, self.checkpoint = directory / "sink", directory / "checkpoint"
        self.options = {"kafka.bootstrap.servers": node.address, "startingOffsets": "earliest", **options}

    def start(self, *, is_up_to_now: bool = False) -> StreamingQuery:
        frame = self.spark.readStream.format("goqueue").options(**self.options).load()
        writer = frame.writeStream.format("parquet").option("path", str(self.sink))
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if is_up_to_now else writer).start()

    def rows(self) -> list[tuple[str, int, int, bytes]]:
        frame = self.spark.read.parquet(str(self.sink))
        return sorted((row.topic, row.partition, row.offset, bytes(row.value)) for row in frame.collect())


def end_of(query: StreamingQuery) -> object:
    assert query.exception() is None
    progress = query.lastProgress
    return progress and offsets(json.loads(progress.json)["sources"][0]["endOffset"])


def test_a_query_goes_on_over_restarts_of_everything(spark: SparkSession, own_node: Node, tmp_path: Path) -> None:
    one, two = "orders-1", "orders-2"
    create_topic(own_node.address, one, 1)
    publish(own_node, one, values(one, 1000))
    archive = Archive(
        spark,
        own_node,
        tmp_path,
        **{"subscribePattern": "orders-.*", "maxOffsetsPerTrigger": "400", "kafka.group.id": "archive"},
    )
    query = archive.start(is_up_to_now=True)
    query.awaitTermination()
    assert [progress["numInputRows"] for progress in query.recentProgress] == [400, 400, 200]
    assert group_offsets(own_node, "archive") == {0: 1000}

    query = archive.start()
    publish(own_node, one, values(one, 500, 1000))
    wait_for(lambda: end_of(query) == {one: {"0": 1500}}, "what came while it ran")
    own_node.kill()
    own_node.start()
    publish(own_node, one, values(one, 500, 1500))
    admin_client(own_node.address).create_partitions([NewPartitions(one, 2)])[one].result(DEADLINE_S)
    publish(own_node, one, values(one, 300), partition=1)
    create_topic(own_node.address, two, 1)
    publish(own_node, two, values(two, 100))
    end = {one: {"0": 2000, "1": 300}, two: {"0": 100}}
    wait_for(lambda: end_of(query) == end, "what came after the broker's restart, with a new partition and topic")
    query.stop()

    publish(own_node, two, values(two, 50, 100))
    query = archive.start(is_up_to_now=True)
    query.awaitTermination()
    assert archive.rows() == sorted(
        (topic, partition, offset, value)
        for topic, partition, count in ((one, 0, 2000), (one, 1, 300), (two, 0, 150))
        for offset, value in enumerate(values(topic, count))
    )


def test_a_driver_that_is_killed_loses_nothing_and_repeats_nothing(
    spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    """It runs on a cluster with an executor of its own, which is killed with it; this session goes on where it was."""
    topic = make_topic(partitions=2)
    for partition in range(2):
        publish(node, topic, values(topic, 100_000), partition)
    archive = Archive(spark, node, tmp_path, subscribe=topic)
    script = Path(__file__).with_name("killed_driver.py")
    words = [sys.executable, str(script), node.address, topic, str(archive.sink), str(archive.checkpoint)]
    log = tmp_path / "driver.log"
    with log.open("w") as output:
        driver = subprocess.Popen(words, stdout=output, stderr=output, start_new_session=True)
    try:
        commits = archive.checkpoint / "commits"

        def has_written() -> bool:
            assert driver.poll() is None, log.read_text()
            return commits.exists() and len([each for each in commits.iterdir() if each.name.isdigit()]) >= 3

        wait_for(has_written, "three micro-batches")
    finally:
        kill_all_of(driver.pid)
        driver.wait(DEADLINE_S)
    query = archive.start(is_up_to_now=True)
    query.awaitTermination()
    assert 0 < sum(progress["numInputRows"] for progress in query.recentProgress) < 200_000
    assert archive.rows() == sorted(
        (topic, partition, offset, value)
        for partition in range(2)
        for offset, value in enumerate(values(topic, 100_000))
    )

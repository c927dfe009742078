"""Transactions of many tasks that end together, in a cluster: each writer has its coordinator, and a new one may end
what the one before has begun.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from goqueue.client.cluster import TRANSACTION_KEY, Cluster
from goqueue.client.connection import Limits
from goqueue.client.open_writer import OpenWriter
from goqueue.client.together import LeftOpen, commit_together, family
from goqueue.records.batch import Codec
from goqueue.spark.sink.columns import rows_of
from goqueue.spark.sink.encode import encode
from tests.integration.dev_cluster import DevCluster
from tests.integration.spark.test_cluster_stream import committed
from tests.integration.test_cluster import DEADLINE_S, PARTITIONS, Topic

TASKS = 2
ROWS = 20
"""Of a task, in each partition."""
WRITERS = [f"gq-spark-query-{number}" for number in range(9)]
TIMEOUT_MS = 600_000


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = DevCluster(tmp_path_factory.mktemp("cluster"), 3).start_balanced()
    yield running
    running.clean_up()


def values(writer: str, mark: int, task: int, partition: int) -> list[bytes]:
    return [f"{writer} {mark} {task} {partition} {number}".encode() for number in range(ROWS)]


async def write(cluster: Cluster, topic: str, writer: str, mark: int, task: int) -> LeftOpen:
    """As a task of Spark does."""
    opened = OpenWriter(cluster, f"{family(writer)}{task}-0", TIMEOUT_MS)
    await opened.start()
    for partition in range(PARTITIONS):
        rows = rows_of(pa.record_batch({"value": values(writer, mark, task, partition)}))
        (made,) = encode(rows, [ROWS], time.time_ns() // 1_000_000, Codec.NONE)
        await opened.send(topic, partition, made.data, made.length)
    left = await opened.leave_open()
    await opened.close()
    assert left is not None
    return left


async def written(cluster: Cluster, topic: str, writer: str, mark: int) -> list[LeftOpen]:
    return [await write(cluster, topic, writer, mark, task) for task in range(TASKS)]


async def coordinators(cluster: Cluster, writer: str) -> set[int]:
    """Of the writer and of its tasks."""
    names = [writer, *(f"{family(writer)}{task}-0" for task in range(TASKS))]
    return {await cluster.coordinator(TRANSACTION_KEY, name) for name in names}


async def commit_over_a_dead_coordinator(nodes: DevCluster, topic: Topic) -> None:
    cluster = Cluster(topic.servers, limits=Limits(request_s_max=DEADLINE_S))
    await cluster.start()
    try:
        found = {writer: await coordinators(cluster, writer) for writer in WRITERS}
        assert all(len(each) == 1 for each in found.values()), "all of a writer have one coordinator"
        assert len(set.union(*found.values())) > 1, "and writers have different ones"
        left = {writer: await written(cluster, topic.name, writer, 0) for writer in WRITERS}
        (dead,) = found[WRITERS[0]]
        nodes.kill(dead)
        for writer in WRITERS:
            assert await commit_together(cluster, writer, 0, left[writer])
        for writer in WRITERS:  # a driver that died before it could note the commit
            again = await written(cluster, topic.name, writer, 0)
            assert not await commit_together(cluster, writer, 0, again), "it was known, and dropped"
            assert await commit_together(cluster, writer, 1, await written(cluster, topic.name, writer, 1))
    finally:
        await cluster.close()


def test_what_many_tasks_wrote_is_committed_once_though_its_coordinator_was_killed(nodes: DevCluster) -> None:
    topic = Topic(nodes, "together")
    asyncio.run(commit_over_a_dead_coordinator(nodes, topic))
    assert Counter(committed(topic)) == Counter(
        value
        for writer in WRITERS
        for mark in range(2)
        for task in range(TASKS)
        for partition in range(PARTITIONS)
        for value in values(writer, mark, task, partition)
    )

"""How large records are, about: one small Fetch at the place where a micro-batch begins, because the broker does not
tell how many bytes lie between two offsets. The bytes are those of the log, compressed as they are.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import cast

from goqueue.client.assigned import Place
from goqueue.client.cluster import FETCH, NO_LEADER, Cluster
from goqueue.client.errors import BrokerRefused, ClientError, refusal
from goqueue.client.reading import whole_batches
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

SAMPLE_BYTES = 64 * 1024
"""Of each partition. The broker gives at least a batch."""


async def record_bytes(cluster: Cluster, starts: Mapping[Place, int], is_committed: bool) -> dict[Place, float]:
    """Of each partition from its offset on. Where there is nothing to see, a record counts as one byte."""

    async def attempt() -> dict[Place, float]:
        try:
            return await _sample(cluster, starts, is_committed)
        except ClientError as error:
            if error.retriable:
                await cluster.refresh({topic for topic, _ in starts})
            raise

    return await cluster.retry(attempt)


async def _sample(cluster: Cluster, starts: Mapping[Place, int], is_committed: bool) -> dict[Place, float]:
    found: dict[Place, float] = {}
    by_leader = sorted(starts, key=lambda place: cluster.leader(*place))
    for node_id, places in groupby(by_leader, key=lambda place: cluster.leader(*place)):
        if node_id == NO_LEADER:
            raise BrokerRefused(Code.LEADER_NOT_AVAILABLE, "a partition has no leader now")
        topics = [
            FetchTopic(
                topic,
                partitions=[
                    FetchPartition(partition, fetch_offset=starts[topic, partition], partition_max_bytes=SAMPLE_BYTES)
                ],
            )
            for topic, partition in places
        ]
        request = FetchRequest(isolation_level=int(is_committed), topics=topics)
        connection = await cluster.connection(node_id, FETCH)
        answer = await connection.ask(request, FetchResponse)
        if answer.error_code != Code.NONE:
            raise refusal(answer.error_code)
        for topic in answer.responses:
            for one in topic.partitions:
                found[topic.topic, one.partition_index] = _mean(cast(memoryview, one.records))
    return found


def _mean(records: memoryview) -> float:
    batches = list(whole_batches(records)) if records else []
    offsets = sum(batch.last_offset_delta + 1 for batch in batches)
    return sum(batch.size for batch in batches) / offsets if offsets else 1.0

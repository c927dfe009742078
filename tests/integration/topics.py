"""Topics and their ends."""

from collections.abc import Mapping
from functools import cache

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from goqueue.wire.kafka.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from tests.integration.process import DEADLINE_S, Node
from tests.integration.wire import Wire

LATEST = -1
NO_REBOOTSTRAP = {"metadata.recovery.strategy": "none"}
"""For librdkafka clients that live longer than a node (docs/kafka.md): when it bootstraps anew it forgets the node's
connection, but not that it was some group's coordinator, and asks that one for ever."""


@cache
def admin_client(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address, "log_level": 0, **NO_REBOOTSTRAP})


def create_topic(address: str, name: str, partitions: int = 3, options: Mapping[str, str] | None = None) -> None:
    """Options as Kafka calls them, with underscores for dots."""
    config = {key.replace("_", "."): value for key, value in (options or {}).items()}
    topic = NewTopic(name, partitions, 1, config=config)
    admin_client(address).create_topics([topic])[name].result(DEADLINE_S)


def end_offsets(node: Node, topic: str, partitions: int = 3, *, committed_only: bool = False) -> dict[int, int]:
    """High watermarks, or last stable offsets."""
    wanted = [ListOffsetsPartition(number, timestamp=LATEST) for number in range(partitions)]
    request = ListOffsetsRequest(-1, int(committed_only), [ListOffsetsTopic(topic, wanted)])
    with Wire(node) as wire:
        answer = wire.call(request, 5, ListOffsetsResponse)
    found = answer.topics[0].partitions
    assert [Code(one.error_code) for one in found] == [Code.NONE] * partitions
    return {one.partition_index: one.offset for one in found}


def group_offsets(node: Node, group: str) -> dict[int, int]:
    """All committed offsets of a group that reads one topic."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)])
    with Wire(node) as wire:
        (answer,) = wire.call(request, 8, OffsetFetchResponse).groups
    assert Code(answer.error_code) is Code.NONE
    assert len(answer.topics) <= 1
    return {one.partition_index: one.committed_offset for topic in answer.topics for one in topic.partitions}

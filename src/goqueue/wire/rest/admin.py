"""Work on a node: more partitions, compaction, and who looks after what."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Body, Count, GroupId, PartitionNumber, Query, Reply
from goqueue.wire.rest.topics import PARTITIONS_MAX


class MorePartitions(Body):
    count: Annotated[int, Meta(ge=1, le=PARTITIONS_MAX, description="How many the topic shall have then")]
    replica_assignments: dict[str, list[str | int]] | None = None
    """Of a cluster; on one node every partition is there."""
    dry_run: bool = False


class PartitionsAdded(Reply):
    success: bool
    topic_name: str
    old_partition_count: int
    new_partition_count: int
    partitions_added: list[int]
    dry_run: bool


class ScalingStatus(Reply):
    topic: str
    scaling_in_progress: bool
    partitions: int


class CoordinatorFacts(Reply):
    internal_topic: str
    partition: int
    node: str
    groups: Annotated[int, Meta(ge=0, description="That it looks after")]


class Coordinators(Reply):
    internal_topic: str
    partition_count: Count
    coordinators: list[CoordinatorFacts]


class CoordinatorPath(Query):
    group: GroupId


class RoutingInfo(Reply):
    hash: Annotated[int, Meta(ge=0, description="CRC-32 of the group's name; modulo the number of partitions")]
    partition_count: Count


class GroupCoordinator(Reply):
    group_id: str
    internal_topic: str
    coordinator_partition: int
    coordinator_node: str
    routing_info: RoutingInfo


class Compact(Body):
    partitions: Annotated[list[PartitionNumber], Meta(min_length=1, max_length=PARTITIONS_MAX)] | None = None
    """Absent: all of the topic."""
    dry_run: bool = False


class CompactedPartition(Reply):
    partition: int
    compacted: Annotated[bool, Meta(description="False: there was nothing to do, or it was a dry run")]
    records_before: Annotated[int, Meta(ge=0, description="0 if there was nothing to do, as records_after")]
    records_after: Count
    records_removed: Annotated[int, Meta(ge=0, description="Of a dry run: that would be")]
    dirty_ratio: Annotated[float, Meta(ge=0, le=1, description="Share of the bytes that were not compacted before")]
    error: str | UnsetType = UNSET


class Compacted(Reply):
    success: bool
    topic: str
    dry_run: bool
    results: list[CompactedPartition]

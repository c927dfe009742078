"""Work on a node: more partitions, and who looks after what."""

import asyncio
from collections import Counter
from functools import partial

from msgspec import UNSET, UnsetType

from goqueue.broker.groups.listing import pages
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import ALTERS_TOPIC, DESCRIBES_COORDINATORS, DESCRIBES_GROUP, DESCRIBES_TOPIC
from goqueue.machines.controller_commands import AddPartitions
from goqueue.model.compaction import CompactResult
from goqueue.model.errors import GoQueueError
from goqueue.model.group_hash import group_hash
from goqueue.model.ledgers import LedgerKind
from goqueue.model.placements import NOWHERE
from goqueue.wire.rest.admin import (
    Compact,
    Compacted,
    CompactedPartition,
    CoordinatorFacts,
    CoordinatorPath,
    Coordinators,
    GroupCoordinator,
    MorePartitions,
    PartitionsAdded,
    RoutingInfo,
    ScalingStatus,
)
from goqueue.wire.rest.operations import admin as operations
from goqueue.wire.rest.topics import TopicPath

GROUPS, QUEUE_GROUPS = "@groups", "@deliveries"

admin = Handlers(rests_on=(LedgerKind.DELIVERIES, LedgerKind.GROUPS))


@admin.handles(operations.ADD_PARTITIONS, ALTERS_TOPIC)
async def add_partitions(call: Call, path: TopicPath, body: MorePartitions) -> PartitionsAdded:
    before = call.topic(path.topic).partitions
    command = AddPartitions(path.topic, body.count, check_only=body.dry_run)
    await call.order(partial(call.broker.topics.submit, command))
    return PartitionsAdded(
        success=True,
        topic_name=path.topic,
        old_partition_count=before,
        new_partition_count=body.count,
        partitions_added=list(range(before, body.count)),
        dry_run=body.dry_run,
    )


@admin.handles(operations.SCALING_STATUS, DESCRIBES_TOPIC)
async def scaling_status(call: Call, path: TopicPath) -> ScalingStatus:
    topic = call.topic(path.topic)
    return ScalingStatus(topic=topic.name, scaling_in_progress=False, partitions=topic.partitions)


@admin.handles(operations.COMPACT_TOPIC, ALTERS_TOPIC)
async def compact_topic(call: Call, path: TopicPath, body: Compact) -> Compacted:
    topic = call.topic(path.topic)
    numbers = call.led(topic) if body.partitions is None else sorted(set(body.partitions))
    unknown = [number for number in numbers if number >= topic.partitions]
    if unknown:
        raise HttpError(
            NOT_FOUND, "UNKNOWN_TOPIC_OR_PARTITION", f"there is no partition {unknown[0]} of {topic.name!r}"
        )
    if not topic.options(call.broker.topics.defaults).cleanup_policy.startswith("compact"):
        raise HttpError(
            BAD_REQUEST, "INVALID_CONFIG", f"{topic.name!r} is not compacted: set its cleanup.policy to compact first"
        )
    here = call.broker.topics.led(topic.name, numbers)
    results = [await _compacted(call, topic.name, number, body.dry_run) for number in here]
    return Compacted(
        success=all(each.error is UNSET for each in results),
        topic=topic.name,
        dry_run=body.dry_run,
        results=results,
    )


async def _compacted(call: Call, topic: str, partition: int, is_dry_run: bool) -> CompactedPartition:
    error: str | UnsetType = UNSET
    result = CompactResult(is_done=False, dirty_ratio=0.0)
    try:
        result = await call.broker.compact(topic, partition, is_dry_run)
    except GoQueueError as problem:
        error = str(problem)
    return CompactedPartition(
        partition=partition,
        compacted=result.is_done,
        records_before=result.records_before,
        records_after=result.records_after,
        records_removed=result.records_before - result.records_after,
        dirty_ratio=result.dirty_ratio,
        error=error,
    )


@admin.handles(operations.LIST_COORDINATORS, DESCRIBES_COORDINATORS)
async def list_coordinators(call: Call) -> Coordinators:
    groups = call.broker.groups
    counts: Counter[int] = Counter()
    for names in pages(groups.page):
        counts.update(map(groups.partition_of, names))
        await asyncio.sleep(0)  # others want their turn
    node = _node(call)
    found = [
        CoordinatorFacts(internal_topic=GROUPS, partition=number, node=_leader(call, number), groups=counts[number])
        for number in range(groups.partitions)
    ]
    found += [
        CoordinatorFacts(internal_topic=f"{QUEUE_GROUPS}/{topic}", partition=number, node=node, groups=size)
        for topic, number, size in call.broker.queues.readers_by_partition()
    ]
    return Coordinators(internal_topic=GROUPS, partition_count=groups.partitions, coordinators=found)


def _node(call: Call) -> str:
    return f"node-{call.broker.identity.node_id}"


def _leader(call: Call, number: int) -> str:
    placement = call.broker.topics.image.placement(GROUPS, number)
    return _node(call) if placement is NOWHERE else f"node-{placement.leader}"


@admin.handles(operations.FIND_COORDINATOR, DESCRIBES_GROUP)
async def find_coordinator(call: Call, path: CoordinatorPath) -> GroupCoordinator:
    groups = call.broker.groups
    places = call.broker.queues.places(path.group)
    internal_topic, partition, size = GROUPS, groups.partition_of(path.group), groups.partitions
    if places:
        internal_topic, partition, size = f"{QUEUE_GROUPS}/{places[0].topic}", places[0].partition, len(places)
    return GroupCoordinator(
        group_id=path.group,
        internal_topic=internal_topic,
        coordinator_partition=partition,
        coordinator_node=_node(call),
        routing_info=RoutingInfo(hash=group_hash(path.group), partition_count=size),
    )

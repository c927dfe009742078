"""Work on a node: more partitions, and who looks after what."""

from collections import Counter
from typing import Any

from goqueue.broker.groups import commands, group_hash
from goqueue.broker.topics import AddPartitions
from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Operations
from goqueue.model.errors import GoQueueError
from goqueue.wire.rest.admin import (
    CoordinatorFacts,
    CoordinatorPath,
    Coordinators,
    GroupCoordinator,
    MorePartitions,
    PartitionsAdded,
    RoutingInfo,
    ScalingStatus,
)
from goqueue.wire.rest.topics import TopicPath

GROUPS, QUEUE_GROUPS = "__groups", "__deliveries"

admin = Operations("Administration")


@admin.post("/admin/topics/{topic}/partitions", errors=(404,))
async def add_partitions(call: Call, path: TopicPath, body: MorePartitions) -> PartitionsAdded:
    """Give a topic more partitions. There is no way back.

    Messages that are there stay where they are; those of a key that are published from now on may go to another
    partition than before.
    """
    before = call.topic(path.topic).partitions
    command = AddPartitions(path.topic, body.count, check_only=body.dry_run)
    await call.order(lambda done: call.broker.topics.submit(command, done))
    return PartitionsAdded(
        success=True,
        topic_name=path.topic,
        old_partition_count=before,
        new_partition_count=body.count,
        partitions_added=list(range(before, body.count)),
        dry_run=body.dry_run,
    )


@admin.get("/admin/topics/{topic}/scaling-status", errors=(404,))
async def scaling_status(call: Call, path: TopicPath) -> ScalingStatus:
    """Are partitions being added? On one node they are there when the request for them is answered."""
    topic = call.topic(path.topic)
    return ScalingStatus(topic=topic.name, scaling_in_progress=False, partitions=topic.partitions)


@admin.get("/admin/coordinators")
async def list_coordinators(call: Call) -> Coordinators:
    """Who looks after groups: each belongs to one partition of an internal topic, by its name.

    `__groups` keeps stream groups and members, `__deliveries` what queue groups have settled.
    """
    groups, queues = call.broker.groups, call.broker.queues
    replies: list[Any] = await call.ask(lambda done: groups.submit_to_all(commands.ListGroups(), done))
    for reply in replies:
        if isinstance(reply, GoQueueError):
            raise reply
    counts = {
        GROUPS: Counter(groups.partition_of(each.group_id) for reply in replies for each in reply.groups),
        QUEUE_GROUPS: Counter(map(queues.partition_of, queues.groups())),
    }
    sizes = ((GROUPS, groups.partitions), (QUEUE_GROUPS, queues.partitions))
    return Coordinators(
        internal_topic=GROUPS,
        partition_count=groups.partitions,
        coordinators=[
            CoordinatorFacts(internal_topic=name, partition=number, node=_node(call), groups=counts[name][number])
            for name, size in sizes
            for number in range(size)
        ],
    )


def _node(call: Call) -> str:
    return f"node-{call.broker.identity.node_id}"


@admin.get("/admin/coordinators/groups/{group}")
async def find_coordinator(call: Call, path: CoordinatorPath) -> GroupCoordinator:
    """Who looks after a group, whether it exists already or not."""
    groups, queues = call.broker.groups, call.broker.queues
    is_queue = bool(queues.places(path.group))
    return GroupCoordinator(
        group_id=path.group,
        internal_topic=QUEUE_GROUPS if is_queue else GROUPS,
        coordinator_partition=(queues if is_queue else groups).partition_of(path.group),
        coordinator_node=_node(call),
        routing_info=RoutingInfo(
            hash=group_hash(path.group), partition_count=(queues if is_queue else groups).partitions
        ),
    )

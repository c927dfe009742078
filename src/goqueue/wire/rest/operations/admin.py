"""Operations on partitions and coordinators."""

from goqueue.wire.home import EVERYWHERE, GROUP, HERE, at
from goqueue.wire.rest import admin, topics
from goqueue.wire.rest.operation import Resource

ADMINISTRATION = Resource("Administration")

ADD_PARTITIONS = ADMINISTRATION.add(
    "add_partitions",
    "POST /admin/topics/{topic}/partitions",
    admin.PartitionsAdded,
    """Give a topic more partitions. There is no way back.

    Messages that are there stay where they are; those of a key that are published from now on may go to another
    partition than before.
    """,
    path=topics.TopicPath,
    body=admin.MorePartitions,
    errors=(404,),
    home=HERE,
)

SCALING_STATUS = ADMINISTRATION.add(
    "scaling_status",
    "GET /admin/topics/{topic}/scaling-status",
    admin.ScalingStatus,
    "Are partitions being added? On one node they are there when the request for them is answered.",
    path=topics.TopicPath,
    errors=(404,),
    home=HERE,
)

COMPACT_TOPIC = ADMINISTRATION.add(
    "compact_topic",
    "POST /admin/topics/{topic}/compact",
    admin.Compacted,
    """Compact a topic now: of every key only the last message stays, as its `cleanup.policy` says.

    A node does this by itself when it is worth it. A dry run does the work and throws it away, so its numbers are
    true. A partition that could not be compacted has an `error` in its result.
    """,
    path=topics.TopicPath,
    body=admin.Compact,
    errors=(404,),
    waits=True,
    home=EVERYWHERE,
)

LIST_COORDINATORS = ADMINISTRATION.add(
    "list_coordinators",
    "GET /admin/coordinators",
    admin.Coordinators,
    """Who looks after groups.

    A stream group belongs to one partition of the ledger `@groups`, by its name. What queue groups have settled in a
    partition of a topic is kept beside it, in `@deliveries/{topic}` with the same number.
    """,
    home=EVERYWHERE,
)

FIND_COORDINATOR = ADMINISTRATION.add(
    "find_coordinator",
    "GET /admin/coordinators/groups/{group}",
    admin.GroupCoordinator,
    "Who looks after a group, whether it exists already or not; of a queue group, its first partition.",
    path=admin.CoordinatorPath,
    home=at(GROUP, "path.group"),
)

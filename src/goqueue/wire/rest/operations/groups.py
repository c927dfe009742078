"""Operations on groups, their members, offsets and lag."""

from goqueue.wire.home import EVERYWHERE, GROUP, HERE, IN_PARTS, at
from goqueue.wire.rest import groups, topics
from goqueue.wire.rest.operation import Resource

GROUPS = Resource("Groups")

LIST_GROUPS = GROUPS.add(
    "list_groups",
    "GET /groups",
    groups.Groups,
    "The names of groups, a page at a time, and in `details` what they are.",
    query=groups.GroupsQuery,
    home=EVERYWHERE,
)

DESCRIBE_GROUP = GROUPS.add(
    "describe_group",
    "GET /groups/{group}",
    groups.GroupDetails,
    "Who is in a group, and who has which partitions.",
    path=groups.GroupPath,
    errors=(404,),
    home=EVERYWHERE,
)

DELETE_GROUP = GROUPS.add(
    "delete_group",
    "DELETE /groups/{group}",
    groups.GroupDeleted,
    """Forget all that a group has committed and settled.

    A group with members is left alone, unless `force` is given: then they are turned out first.
    """,
    path=groups.GroupPath,
    query=groups.DeleteGroupQuery,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

GROUP_OPTIONS = GROUPS.add(
    "group_options",
    "GET /groups/{group}/options",
    groups.GroupOptions,
    "What was set for a group and goes before the options of its topics.",
    path=groups.GroupPath,
    home=HERE,
)

CONFIGURE_GROUP = GROUPS.add(
    "configure_group",
    "PATCH /groups/{group}/options",
    groups.GroupOptions,
    "Set options of a group, or take them back. The group need not exist yet.",
    path=groups.GroupPath,
    body=groups.GroupChange,
    home=HERE,
)

MEMBERS = Resource("Members")

JOIN_GROUP = MEMBERS.add(
    "join_group",
    "POST /groups/{group}/join",
    groups.JoinedGroup,
    """Become a member of a group, and get a share of the partitions of its topics.

    The group may have members that are Kafka clients. Show with heartbeats or polls that you live: whoever is silent
    for longer than `session_timeout` is no longer a member, and what it holds is delivered to others.
    """,
    path=groups.GroupPath,
    body=groups.JoinGroup,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

HEARTBEAT = MEMBERS.add(
    "heartbeat",
    "POST /groups/{group}/heartbeat",
    groups.HeartbeatReply,
    """Show that a member lives, and learn which partitions are its own now.

    Partitions that move to another member are given up with this. A generation older than the one before the present
    one is refused: join again.
    """,
    path=groups.GroupPath,
    body=groups.MemberBody,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

LEAVE_GROUP = MEMBERS.add(
    "leave_group",
    "POST /groups/{group}/leave",
    groups.LeftGroup,
    """Leave a group.

    What the member holds is delivered to others at once.
    """,
    path=groups.GroupPath,
    body=groups.MemberBody,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

POLL_GROUP = MEMBERS.add(
    "poll_group",
    "GET /groups/{group}/poll",
    groups.PolledMessages,
    """Get messages from the member's partitions, of all topics that it joined for.

    They are leased: acknowledge each by its receipt, or commit `next_offset` when all are done. What is neither
    acknowledged nor committed in time is delivered again. This counts as a heartbeat, all the time that it waits; if
    there is nothing, the answer is an empty list.
    """,
    path=groups.GroupPath,
    query=groups.PollQuery,
    errors=(404, 409),
    waits=True,
    home=at(GROUP, "path.group"),
)

RECEIVE_MESSAGES = MEMBERS.add(
    "receive_messages",
    "POST /topics/{topic}/receive",
    groups.ReceivedMessages,
    """Read a topic as a queue: lease messages to a group, without being a member of it.

    Any number of consumers may do so at once; each message goes to one of them. Acknowledge each by its receipt; what
    is not settled when its lease ends is delivered again.
    """,
    path=topics.TopicPath,
    body=groups.ReceiveMessages,
    errors=(404, 409),
    waits=True,
    home=IN_PARTS,
)

COOPERATIVE = Resource("Cooperative members")

JOIN_COOPERATIVELY = COOPERATIVE.add(
    "join_cooperatively",
    "POST /groups/{group}/join/cooperative",
    groups.JoinedGroup,
    "Become a member that is asked before partitions are taken from it.",
    path=groups.GroupPath,
    body=groups.JoinGroup,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

LEAVE_COOPERATIVELY = COOPERATIVE.add(
    "leave_cooperatively",
    "POST /groups/{group}/leave/cooperative",
    groups.LeftGroup,
    """Leave a group as a member that is asked first.

    What the member holds is delivered to others at once.
    """,
    path=groups.GroupPath,
    body=groups.MemberBody,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

HEARTBEAT_COOPERATIVELY = COOPERATIVE.add(
    "heartbeat_cooperatively",
    "POST /groups/{group}/heartbeat/cooperative",
    groups.CooperativeHeartbeat,
    """Show that a member lives, and learn what it shall give up.

    Finish what you hold of `partitions_to_revoke` and then POST to `revoke`, before `revocation_deadline`: who does
    not is turned out. Polls tell it as well, and bring nothing more of them.
    """,
    path=groups.GroupPath,
    body=groups.MemberBody,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

REVOKE_PARTITIONS = COOPERATIVE.add(
    "revoke_partitions",
    "POST /groups/{group}/revoke",
    groups.RevokedPartitions,
    "Say that partitions were given up. What the member still holds of them is delivered to others at once.",
    path=groups.GroupPath,
    body=groups.RevokePartitions,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

MEMBER_ASSIGNMENT = COOPERATIVE.add(
    "member_assignment",
    "GET /groups/{group}/assignment",
    groups.MemberAssignment,
    "Which partitions a member has. This is no heartbeat.",
    path=groups.GroupPath,
    query=groups.AssignmentQuery,
    errors=(404,),
    home=at(GROUP, "path.group"),
)

DESCRIBE_COOPERATIVELY = COOPERATIVE.add(
    "describe_cooperatively",
    "GET /groups/{group}/cooperative",
    groups.CooperativeDetails,
    "A group with all assignments, and how its rebalances went.",
    path=groups.GroupPath,
    errors=(404,),
    home=at(GROUP, "path.group"),
)

REBALANCE_STATS = COOPERATIVE.add(
    "rebalance_stats",
    "GET /groups/{group}/rebalance/stats",
    groups.RebalanceStats,
    "How the rebalances of one group went. Only consumer groups have any that the broker sees.",
    path=groups.GroupPath,
    errors=(404,),
    home=at(GROUP, "path.group"),
)

ALL_REBALANCE_STATS = COOPERATIVE.add(
    "all_rebalance_stats",
    "GET /rebalance/stats",
    groups.RebalanceStats,
    "How the rebalances of all consumer groups went.",
    home=EVERYWHERE,
)

OFFSETS = Resource("Offsets")

COMMIT_OFFSETS = OFFSETS.add(
    "commit_offsets",
    "POST /groups/{group}/offsets",
    groups.CommittedOffsets,
    """Say that all messages before these offsets are done.

    This counts for the group however it reads: what is leased below them is settled, too. All of them are committed or
    none. To go back, reset.
    """,
    path=groups.GroupPath,
    body=groups.CommitOffsets,
    errors=(403, 404, 409),
    home=at(GROUP, "path.group"),
)

GROUP_OFFSETS = OFFSETS.add(
    "group_offsets",
    "GET /groups/{group}/offsets",
    groups.GroupOffsets,
    """Where a group goes on reading, by topic and partition.

    That is what it committed; or, where it has only acknowledged messages one by one, the first that is not settled.
    """,
    path=groups.GroupPath,
    query=groups.OffsetsQuery,
    home=EVERYWHERE,
)

RESET_OFFSETS = OFFSETS.add(
    "reset_offsets",
    "POST /groups/{group}/offsets/reset",
    groups.OffsetsReset,
    """Let a group go on from elsewhere: one end of a topic, an offset, or a time.

    All from there on is delivered again, nothing before it. With `dry_run` you see what would happen.
    """,
    path=groups.GroupPath,
    body=groups.ResetOffsets,
    errors=(404, 409),
    home=at(GROUP, "path.group"),
)

LAG = Resource("Lag")

GROUP_LAG = LAG.add(
    "group_lag",
    "GET /groups/{group}/lag",
    groups.GroupLag,
    """How far a group is behind, partition by partition.

    Where it reads as a queue, also what is ready, leased and waiting.
    """,
    path=groups.GroupPath,
    errors=(404,),
    home=EVERYWHERE,
)

ALL_LAGS = LAG.add(
    "all_lags",
    "GET /lag",
    groups.AllLags,
    "How far groups are behind, by name, a page at a time.",
    query=groups.GroupsQuery,
    home=EVERYWHERE,
)

"""Consumer groups: who is in them, what they have committed, how far they are behind."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import (
    INT32_MAX,
    Body,
    Count,
    Duration,
    GroupId,
    Moment,
    Offset,
    PartitionNumber,
    Query,
    Reply,
    TopicName,
)
from goqueue.wire.rest.messages import MessageReply

POLL_MAX = 1000
TOPICS_MAX = 1000
OFFSETS_MAX = 10_000
MemberId = Annotated[
    str, Meta(min_length=1, max_length=512, description="Id of a member, as joining gave it", examples=["app-5f2c"])
]
Generation = Annotated[
    int,
    Meta(ge=0, le=INT32_MAX, description="The generation that the member knows; absent or 0: any", examples=[1]),
]
State = Annotated[str, Meta(description="Empty, Stable, Rebalancing or Dead", examples=["Stable"])]
PartitionKey = Annotated[str, Meta(pattern=r"^[0-9]{1,10}\Z", description="Number of a partition", examples=["0"])]


class GroupPath(Query):
    group: GroupId


class TopicAndPartition(Body):
    topic: TopicName
    partition: PartitionNumber


NextGroup = Annotated[str | None, Meta(description="`cursor` of the next page; null: this was the last")]


class GroupsQuery(Query):
    limit: Annotated[int, Meta(ge=1, le=1000, description="Groups of one page")] = 1000
    cursor: Annotated[str, Meta(description="`next` of the page before: the last name on it")] | None = None


class GroupSummary(Reply):
    id: str
    type: Annotated[str, Meta(description="consumer, classic or share", examples=["consumer"])]
    state: State
    members: Annotated[int, Meta(ge=0, description="How many")]
    generation: Count
    topics: list[str]


class Groups(Reply):
    groups: Annotated[list[str], Meta(description="Their names, sorted")]
    details: list[GroupSummary]
    next: NextGroup


class GroupMember(Reply):
    id: str
    member_id: str
    client_id: str
    host: str
    generation: Count
    assigned_partitions: Annotated[list[int], Meta(description="Numbers only; see partitions")]
    partitions: list[TopicAndPartition]
    last_heartbeat: Annotated[str | None, Meta(description="Null: not known")]
    joined_at: Annotated[str | None, Meta(description="Null: not known")]


class GroupDetails(Reply):
    id: str
    group_id: str
    type: str
    protocol: Annotated[str, Meta(description="consumer, classic or share, again")]
    state: State
    generation: Count
    assignor: str
    leader_id: Annotated[str, Meta(description="The member that has been there longest; the broker assigns")]
    topics: list[str]
    members: list[GroupMember]
    created_at: Annotated[str | None, Meta(description="Null: not known")]


class DeleteGroupQuery(Query):
    force: Annotated[bool, Meta(description="Turn its members out first")] = False


class GroupDeleted(Reply):
    deleted: bool
    group: str


class GroupOptions(Reply):
    group: str
    options: Annotated[dict[str, str], Meta(description="What was set; all others are as the topics say")]


class GroupChange(Body):
    options: dict[Annotated[str, Meta(examples=["lease.ms"])], str | int | None]
    """By name, as docs/queue.md lists them; null takes an option back."""


# -- members


class JoinGroup(Body):
    client_id: Annotated[str, Meta(min_length=1, max_length=255, examples=["app"])]
    topics: Annotated[list[TopicName], Meta(min_length=1, max_length=TOPICS_MAX)]
    member_id: MemberId | None = None
    """Of a member that comes back; absent: a new one."""
    session_timeout: Duration | None = None
    """So long may it be silent, from 1 s to 30 min; absent: 30 s, or what the group's option session.ms says."""
    protocol: Literal["cooperative", "eager"] | None = None


class JoinedGroup(Reply):
    member_id: str
    generation: Count
    leader_id: str
    rebalance_required: Annotated[bool, Meta(description="Others still have to give up what this member shall get")]
    protocol: str
    assigned_partitions: Annotated[list[str], Meta(examples=[["orders-0"]])]
    partitions: Annotated[list[int], Meta(description="Numbers only; see assignment")]
    assignment: list[TopicAndPartition]
    members: list[str]
    session_timeout_ms: Count


class MemberBody(Body):
    member_id: MemberId
    generation: Generation | None = None


class HeartbeatReply(Reply):
    status: Annotated[str, Meta(examples=["ok"])]
    generation: Count
    state: State
    rebalance_required: Annotated[bool, Meta(description="The generation that was named is not the one of now")]
    assigned_partitions: list[str]
    assignment: list[TopicAndPartition]


class LeftGroup(Reply):
    status: Annotated[str, Meta(examples=["left"])]
    left: bool


class PollQuery(Query):
    member_id: MemberId
    generation: Generation = 0
    timeout: Annotated[Duration, Meta(description="Wait so long for messages, 60 s at most")] = "30s"
    limit: Annotated[int, Meta(ge=1, le=POLL_MAX)] | None = None
    max_messages: Annotated[int, Meta(ge=1, le=POLL_MAX, description="As limit; 100 if neither is said")] | None = None
    lease: Annotated[Duration, Meta(description="Absent: as topic and group say")] | None = None


class ReceivedMessage(MessageReply, kw_only=True):
    topic: str
    delivery_count: Annotated[int, Meta(ge=1, description="1: never delivered before")]
    receipt_handle: Annotated[str, Meta(description="What acknowledging it takes")]
    lease_until: Annotated[str, Meta(description="Unless it is settled by then, it is delivered again")]


Offsets = dict[str, dict[str, int]]


class PolledMessages(Reply):
    messages: list[ReceivedMessage]
    next_offset: Annotated[
        Offsets,
        Meta(description="By topic and partition: what to commit when all that this member holds is done"),
    ]
    generation: Count
    partitions_to_revoke: Annotated[list[TopicAndPartition], Meta(description="Of a cooperative member")]


class ReceiveMessages(Body):
    group: GroupId
    max_messages: Annotated[int, Meta(ge=1, le=POLL_MAX)] | None = None
    """Absent: 10."""
    wait: Duration | None = None
    """Wait so long for messages, 60 s at most; absent: do not wait."""
    lease: Duration | None = None
    """Absent: as topic and group say."""
    consumer: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    """Who is asking; how many messages one consumer may hold is limited."""
    partition: PartitionNumber | None = None
    """Absent: all of them."""
    start: Literal["earliest", "latest"] | None = None
    """Where a group begins that was never here; absent: earliest."""


class ReceivedMessages(Reply):
    messages: list[ReceivedMessage]


# -- cooperative members


class CooperativeHeartbeat(Reply):
    rebalance_required: bool
    partitions_to_revoke: list[TopicAndPartition]
    partitions_assigned: list[TopicAndPartition]
    generation: Count
    protocol: str
    state: State
    revocation_deadline: Annotated[str | None, Meta(description="Null: there is nothing to give up")]
    error: None = None


class RevokePartitions(Body):
    member_id: MemberId
    generation: Generation | None = None
    revoked_partitions: Annotated[list[TopicAndPartition], Meta(max_length=OFFSETS_MAX)] | None = None
    """All that heartbeats asked for; absent: that is all of it."""


class RevokedPartitions(Reply):
    status: Annotated[str, Meta(examples=["acknowledged"])]
    pending_count: Annotated[int, Meta(ge=0, description="What is still to be given up; name all of it at once")]
    rebalance_state: State
    generation: Count
    partitions_assigned: list[TopicAndPartition]


class AssignmentQuery(Query):
    member_id: MemberId


class MemberAssignment(Reply):
    member_id: str
    generation: Count
    partitions: list[TopicAndPartition]


class RebalanceStats(Reply):
    """Of consumer groups, since this node leads them."""

    total_rebalances: Count
    successful_rebalances: Annotated[int, Meta(ge=0, description="After which every member had what it should have")]
    failed_rebalances: Annotated[int, Meta(ge=0, description="In which a member did not give up in time")]
    total_partitions_revoked: Count
    total_partitions_assigned: Count
    total_revocation_timeouts: Count
    last_rebalance_duration_ms: int | None
    average_rebalance_duration_ms: float | None
    last_rebalance_at: str | None
    rebalances_by_reason: dict[str, int]


class CooperativeDetails(Reply):
    id: str
    state: State
    generation: Count
    protocol: str
    assignment_strategy: str
    rebalance_state: Annotated[str, Meta(description="As Kafka calls it", examples=["Reconciling"])]
    topics: list[str]
    members: list[str]
    member_assignments: dict[str, list[TopicAndPartition]]
    rebalance_metrics: RebalanceStats


# -- offsets


class OffsetOf(Body):
    topic: TopicName
    partition: PartitionNumber
    offset: Offset


class CommitOffsets(Body):
    offsets: (
        Annotated[dict[TopicName, dict[PartitionKey, Offset]], Meta(min_length=1, examples=[{"orders": {"0": 42}}])]
        | Annotated[list[OffsetOf], Meta(min_length=1, max_length=OFFSETS_MAX)]
    )
    """By topic and partition, or as a list: the next offset that the group shall read."""
    member_id: MemberId | None = None
    """Absent: nobody's; only for groups without members."""
    generation: Generation | None = None


class CommittedOffsets(Reply):
    status: Annotated[str, Meta(examples=["committed"])]
    committed: bool
    group: str
    offsets: Offsets


class OffsetsQuery(Query):
    topic: TopicName | None = None


class GroupOffsets(Reply):
    group_id: str
    topics: Offsets
    offsets: Annotated[Offsets, Meta(description="The same again")]
    generation: Count
    updated_at: Annotated[str | None, Meta(description="When the last of them was committed; null: none was")]


class ResetOffsets(Body):
    topic: TopicName
    partition: PartitionNumber | None = None
    """Absent: all of them."""
    strategy: Literal["earliest", "latest", "timestamp", "offset"] | None = None
    """Absent: told by timestamp or offset."""
    timestamp: Moment | None = None
    offset: Offset | None = None
    dry_run: bool | None = None
    live: bool | None = None
    """Turn members out first; they begin anew when they come back. Else a group with members is left alone."""


class MovedOffset(Reply):
    partition: int
    before: Annotated[int, Meta(ge=-1, description="-1: it was never there")]
    after: int


class OffsetsReset(Reply):
    group: str
    topic: str
    dry_run: bool
    results: list[MovedOffset]


# -- lag


class LagOwner(Reply):
    member_id: str
    client_id: str
    host: str


class QueueLag(Reply):
    """Messages that the group has still to do, where it reads as a queue."""

    ready: dict[str, int]
    leased: dict[str, int]
    waiting: Annotated[int, Meta(ge=0, description="For the end of a delay, or for an earlier message of their key")]
    dying: Annotated[int, Meta(ge=0, description="On their way to the dead letters")]
    replaying: Count
    beyond: Annotated[int, Meta(ge=0, description="Offsets that the group has not looked at yet")]
    oldest_age_ms: Annotated[int | None, Meta(description="Of the first that is not settled; null: all are")]


class PartitionLag(Reply):
    topic: str
    partition: int
    committed_offset: Annotated[int | None, Meta(description="Null: the group has committed none")]
    settled_offset: Annotated[int | None, Meta(description="Below it all is settled; null: it is not read as a queue")]
    end_offset: Annotated[int | None, Meta(description="Null: the partition is out of service")]
    lag: Annotated[int | None, Meta(description="Offsets between what is done and the end")]
    owner: LagOwner | None
    queue: QueueLag | UnsetType = UNSET


class GroupLag(Reply):
    group: str
    type: str
    state: State
    total_lag: Count
    partitions: list[PartitionLag]


class AllLags(Reply):
    groups: list[GroupLag]
    total_lag: Annotated[Count, Meta(description="Of the groups of this page")]
    next: NextGroup

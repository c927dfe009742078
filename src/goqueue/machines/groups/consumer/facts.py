"""What a consumer group (KIP-848) can be told, what it answers and what it remembers.

All of a member is one fact: it is small, and so no order of facts, compacted or not, can show half a member.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from goqueue.machines.groups.assignors import UNIFORM
from goqueue.machines.groups.commands import CONSUMER, GroupCommand, GroupProtocol, Sized, ledger_key
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code
from goqueue.model.topics import Topic

CONSUMER_MEMBER = "consumer_member"
"""The kind of the facts about its members."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
RELEASE_EPOCH = -2
"""A static member goes and means to come back: its partitions wait for its instance id."""
UNCHANGED = -1


class TopicPartitions(msgspec.Struct, frozen=True, array_like=True):
    topic_id: bytes
    partitions: tuple[int, ...]


Assignment = tuple[TopicPartitions, ...]
"""Invariant: topic ids rise, and so do the partitions of each; so equal assignments are equal values."""


def packed(partitions: Iterable[tuple[bytes, int]]) -> Assignment:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return tuple(TopicPartitions(topic_id, tuple(numbers)) for topic_id, numbers in by_topic.items())


def unpacked(assignment: Iterable[TopicPartitions]) -> set[tuple[bytes, int]]:
    return {(each.topic_id, partition) for each in assignment for partition in each.partitions}


class ConsumerGroupOptions(Sized, frozen=True, kw_only=True):
    session_ms: int = 30_000
    heartbeat_ms: int = 3_000
    settling_heartbeat_ms: int = 200
    """For members on their way to their target: who waits for a partition hears soon that it is free. Not much shorter:
    librdkafka gives up on an answer that takes longer than this, and a sync may take a tenth of a second."""
    heartbeats_per_second_max: int = 1_000
    """Of one group: a large one is asked to beat more slowly."""
    regex_chars_max: int = 1_000
    default_assignor: str = UNIFORM
    session_ms_min: int = 6_000
    """What members of the classic protocol may ask for, from here to `session_ms_max`."""
    session_ms_max: int = 30 * 60_000


CONSUMER_GROUPS = ConsumerGroupOptions(heartbeat_ms=400)
"""Members hear of a revocation with their next heartbeat, and who waits for the partition with its own: a rebalance
takes at most this and `settling_heartbeat_ms` together."""


# -- commands


class ConsumerHeartbeat(GroupCommand["ConsumerHeartbeatReply"], frozen=True):
    """None, or -1 for the timeout, stands for "as I said before"."""

    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    """Empty: no longer any."""
    server_assignor: str | None = None
    owned: tuple[TopicPartitions, ...] | None = None
    client_id: str = ""
    client_host: str = ""
    session_ms: int = UNCHANGED
    """How long it may be silent; 0: as long as the options say. No Kafka client can ask for this or what follows."""
    heartbeat_ms: int = 0
    """The pause that its group asks of members that have what they shall have; 0: as the options say."""
    is_cooperative: bool | None = None
    """It wants to be asked before anything is taken from it, even while it is served; see `broker.members`."""
    has_leases: bool = False
    """It leases the records of its partitions."""
    classic_protocols: tuple[GroupProtocol, ...] | None = None
    """It said so in the classic protocol; None: in the new one."""

    @property
    def is_full(self) -> bool:
        """All is said again: the member does not know what of it has been heard, or what it was answered."""
        subscribes = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return self.rebalance_timeout_ms != UNCHANGED and subscribes and self.owned is not None


class DescribeConsumerGroup(GroupCommand["ConsumerGroupDescription"], frozen=True):
    pass


class FindConsumerMember(GroupCommand["FoundConsumerMember"], frozen=True):
    member_id: str


# -- what members are


class MemberState(StrEnum):
    UNREVOKED = "pending_revoke"
    """It was told to give up partitions and has not said that it did."""
    UNRELEASED = "pending_assign"
    """It waits for partitions that others have not given up."""
    STABLE = "complete"


class ConsumerMember(msgspec.Struct, frozen=True):
    """Invariant: `assigned` and `revoking` have nothing in common; `revoking` is empty unless UNREVOKED.
    Invariant: no partition is in `assigned` or `revoking` of two members of a group.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = UNCHANGED
    topic_names: tuple[str, ...] = ()
    topic_regex: str | None = None
    server_assignor: str | None = None
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    """What a member says whose last answer was lost."""
    state: MemberState = MemberState.STABLE
    assigned: Assignment = ()
    revoking: Assignment = ()
    target: Assignment = ()
    session_ms: int = 0
    """0: as the options say."""
    is_cooperative: bool = False
    joined_at_ms: int = 0
    """0: before we wrote it down."""
    classic_protocols: tuple[GroupProtocol, ...] = ()
    """What it offers, if it speaks the classic protocol. Its generation is its epoch."""

    @property
    def is_settled(self) -> bool:
        return self.assigned == self.target and not self.revoking


class ConsumerGroupCounts(msgspec.Struct, frozen=True):
    """Since this broker leads the group."""

    rebalances: int = 0
    partitions_moved: int = 0
    """Partitions that came to a member which did not have them."""
    revocation_timeouts: int = 0
    rebalance_ms_last: int | None = None
    """From the reason to the moment when the last partition had arrived."""
    rebalance_at_ms: int | None = None
    """When the last one began."""
    settled: int = 0
    """Times when all members had what they should have after a rebalance, or several on top of each other."""
    settled_ms: int = 0
    """How long all these took together."""
    partitions_revoked: int = 0
    """Partitions that a member was asked to give up."""
    by_reason: dict[str, int] = msgspec.field(default_factory=dict)
    """How many rebalances began for each reason: joined, left, silent, slow to revoke, subscription, assignor or
    topics changed."""


# -- replies


class ConsumerHeartbeatReply(msgspec.Struct, frozen=True):
    code: Code = Code.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    """None: unchanged."""
    member: ConsumerMember | None = None
    """What it is after this; None if it was refused or has left."""


class FoundConsumerMember(msgspec.Struct, frozen=True):
    code: Code = Code.NONE
    message: str = ""
    member: ConsumerMember | None = None
    is_stable: bool = False
    """All members have what they shall have, and this one knows of it."""
    session_ms: int = 0
    revocation_due_ms: int | None = None
    """Until then it must have given up what it shall give up."""


class ConsumerGroupDescription(msgspec.Struct, frozen=True):
    group_id: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[ConsumerMember, ...]
    created_at_ms: int = 0
    """0: before we wrote it down."""
    heard_ms: dict[str, int | None] = msgspec.field(default_factory=dict)
    """When each member was last heard."""
    counts: ConsumerGroupCounts = msgspec.field(default_factory=ConsumerGroupCounts)


# -- facts


class ConsumerGroupKept(Fact, frozen=True, tag="ConsumerGroupKept"):
    group_id: str
    epoch: int = 0
    target_epoch: int = 0
    """The epoch that the members' targets were made for. Behind `epoch`: new targets are due."""
    assignor: str = UNIFORM
    topics: dict[str, tuple[bytes, int]] = msgspec.field(default_factory=dict)
    """The topics that members subscribe to: id and number of partitions at this epoch."""
    empty_since_ms: int = 0
    """When the last member went; 0 while there are members."""
    created_at_ms: int = 0
    has_leases: bool = False
    """A member has leased records: what the group has settled is kept for longer than what it has committed."""

    def key(self) -> bytes:
        return ledger_key(CONSUMER, self.group_id)


class ConsumerGroupGone(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str

    def key(self) -> bytes:
        return ledger_key(CONSUMER, self.group_id)


class ConsumerMemberKept(Fact, frozen=True, tag="ConsumerMemberKept"):
    group_id: str
    member: ConsumerMember

    def key(self) -> bytes:
        return ledger_key(CONSUMER_MEMBER, self.group_id, self.member.member_id)


class ConsumerMemberGone(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str
    member_id: str

    def key(self) -> bytes:
        return ledger_key(CONSUMER_MEMBER, self.group_id, self.member_id)


class ConsumerHeard(Fact, frozen=True):
    """A member is alive. Comes last among the facts of a decision, so that it sees what has become of the group."""

    durable: ClassVar[bool] = False
    group_id: str
    member_id: str
    at_ms: int
    session_due_ms: int


class ConsumerRevocationDue(Fact, frozen=True):
    durable: ClassVar[bool] = False
    group_id: str
    member_id: str
    due_ms: int


class ConsumerTopicsKnown(Fact, frozen=True):
    durable: ClassVar[bool] = False
    group_id: str
    topics: Mapping[str, Topic]


class ConsumerGroupMeasured(Fact, frozen=True):
    durable: ClassVar[bool] = False
    group_id: str
    at_ms: int
    rebalances: int = 0
    partitions_moved: int = 0
    revocation_timeouts: int = 0
    partitions_revoked: int = 0
    reason: str = ""
    """Of the rebalance, if there is one."""


StoredConsumerFact = ConsumerGroupKept | ConsumerMemberKept
"""What comes back from the ledger; the rest are tombstones, or never stored."""


def refusal(code: Code, message: str) -> ConsumerHeartbeatReply:
    return ConsumerHeartbeatReply(code=code, message=message)


def changed(member: ConsumerMember, **fields: Any) -> ConsumerMember:
    return msgspec.structs.replace(member, **fields)

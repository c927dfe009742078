"""What groups can be told and what they answer: plain data, so that every door speaks to one machine in one language.

Which version of a protocol a client speaks is the door's business; a command carries what follows from it, by name.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from goqueue.machines.machine import Command, R_co
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.topics import Topic

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
DAY_MS = 24 * 60 * MINUTE_MS
NO_OFFSET = -1
NO_EPOCH = -1
NO_GENERATION = -1
"""Said by those who commit without being a member."""

CLASSIC = "classic"
"""The type of a group whose members choose an assignor among themselves and whose leader assigns."""
CONSUMER = "consumer"
"""The type of a group to whose members the broker assigns partitions (KIP-848)."""
SHARE = "share"
"""The type of a group whose members are given records, not partitions (KIP-932)."""


MEMBER_BYTES_MAX = 1024 * 1024


class Sized(msgspec.Struct, frozen=True):
    """How many members a group may have."""

    size_max: int = 10_000
    """With those about to join."""
    limit_of: Callable[[str], int | None] | None = None
    """Of a group, by the quota of its tenant; None: it has none."""

    def size_of(self, group_id: str) -> int:
        limit = None if self.limit_of is None else self.limit_of(group_id)
        return self.size_max if limit is None else min(self.size_max, limit)


class GroupOptions(Sized, frozen=True, kw_only=True):
    session_ms_min: int = 6 * SECOND_MS
    session_ms_max: int = 30 * MINUTE_MS
    initial_rebalance_delay_ms: int = 0
    """How long the first members of an empty group wait for others: spares a rebalance each, costs a slow start."""
    new_member_join_ms: int = 5 * MINUTE_MS
    """A member that does not know its id yet cannot send heartbeats: so long may its first join last."""
    member_bytes_max: int = MEMBER_BYTES_MAX
    """What one member may tell of itself: its subscription, once for each assignor that it offers."""
    bytes_max: int = 16 * MEMBER_BYTES_MAX
    """All members of a group together."""
    all_bytes_max: int = 64 * MEMBER_BYTES_MAX
    """All groups of one coordinator together, of which a node has four."""
    metadata_chars_max: int = 4096
    offset_retention_ms: int = 7 * DAY_MS
    expiry_interval_ms: int = 10 * MINUTE_MS


class GroupProtocol(msgspec.Struct, frozen=True):
    """An assignor that a member offers, with what it has to tell the leader."""

    name: str
    metadata: bytes


class GroupCommand(Command[R_co], frozen=True):
    """Of one group."""

    group_id: str


class JoinGroup(GroupCommand["JoinReply"], frozen=True):
    member_id: str
    """Empty: new here."""
    new_member_id: str
    """The id to take if a new one is needed: machines have no dice."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """Negative: as long as the session."""
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    knows_member_id_required: bool = True
    """The client can be told its id first and join with it, so that a repeated request makes no second member."""
    knows_skip_assignment: bool = False
    """A static leader that comes back can be told that it leads without assigning anew."""


class JoinedMember(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinReply(msgspec.Struct, frozen=True):
    code: Code
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    """For the leader only."""
    skip_assignment: bool = False


class SyncGroup(GroupCommand["SyncReply"], frozen=True):
    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()
    """(member id, assignment), from the leader."""


class SyncReply(msgspec.Struct, frozen=True):
    code: Code
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Heartbeat(GroupCommand["CodeReply"], frozen=True):
    generation: int
    member_id: str
    instance_id: str | None = None


class LeavingMember(msgspec.Struct, frozen=True):
    member_id: str
    """May be empty if there is an instance id: an operator removes a static member."""
    instance_id: str | None = None


class LeaveGroup(GroupCommand["LeaveReply"], frozen=True):
    members: tuple[LeavingMember, ...]


class LeaveReply(msgspec.Struct, frozen=True):
    code: Code
    codes: tuple[Code, ...] = ()
    """One per member of the command, in its order."""


class OffsetToCommit(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    exists: bool = True
    """There is such a partition. Whether it has such an offset nobody asks, as in Kafka: a reader that finds none there
    begins where it is configured to."""
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: bytes | None = None


class CommitOffsets(GroupCommand["CommitReply"], frozen=True):
    offsets: tuple[OffsetToCommit, ...]
    generation: int = NO_GENERATION
    """Of the classic group, or the member's epoch."""
    member_id: str = ""
    instance_id: str | None = None
    knows_group_not_found: bool = False
    """The client understands GROUP_ID_NOT_FOUND here; others are told ILLEGAL_GENERATION."""


class CommitTransactionOffsets(GroupCommand["CommitReply"], frozen=True):
    """Offsets that count once their transaction has committed."""

    producer_id: int
    producer_epoch: int
    offsets: tuple[OffsetToCommit, ...]
    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None
    knows_group_not_found: bool = False


class ResetOffsets(GroupCommand["CommitReply"], frozen=True):
    """An operator sets offsets; only of a group without members."""

    offsets: tuple[OffsetToCommit, ...]


class CommitReply(msgspec.Struct, frozen=True):
    codes: tuple[Code, ...]
    """One per offset of the command, in its order."""


class EndTransactionOffsets(Command["CodeReply"], frozen=True):
    """Comes after the decision of the transaction is durable, and may come again."""

    producer_id: int
    producer_epoch: int
    """Of the decision: what was sent under this epoch or an older one is over."""
    committed: bool
    written_epoch: int
    """The epoch under which the transaction's offsets were sent; in version 2 the decision has the next one."""
    coordinator: int = -1
    """The shard of transactions that decided it; -1: a node of an earlier version says nothing of it."""
    coordinator_epoch: int = -1
    """Of that shard's leader: one that was deposed is refused."""


class FetchOffsets(GroupCommand["FetchOffsetsReply"], frozen=True):
    partitions: tuple[TopicPartition, ...] | None
    """None: all that have one."""
    require_stable: bool = False
    member_id: str | None = None
    member_epoch: int = NO_EPOCH


class FetchedOffset(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: bytes | None = None
    code: Code = Code.NONE
    committed_at_ms: int = 0


class FetchOffsetsReply(msgspec.Struct, frozen=True):
    code: Code
    offsets: tuple[FetchedOffset, ...] = ()


class DeleteOffsets(GroupCommand["DeleteOffsetsReply"], frozen=True):
    partitions: tuple[TopicPartition, ...]


class DeleteOffsetsReply(msgspec.Struct, frozen=True):
    code: Code
    codes: tuple[Code, ...] = ()
    """One per partition of the command, in its order; empty if the whole command is refused."""


class DeleteGroup(GroupCommand["CodeReply"], frozen=True):
    pass


class TopicDeleted(Command["CodeReply"], frozen=True):
    topic: str
    topic_id: bytes | None = None
    """If given, offsets committed to another topic of that name stay."""


class KnownTopics(msgspec.Struct):
    """The topics as all groups of one machine know them."""

    topics: Mapping[str, Topic] | None = None
    """None: not told yet, after a restart."""


class TopicsChanged(Command["CodeReply"], frozen=True):
    """All topics there are now. A group that assigns them and does not know any yet asks its members for patience."""

    topics: Mapping[str, Topic]
    names: frozenset[str] | None = None
    """Those that are new, changed or gone; None: any may be."""


class DescribeGroup(GroupCommand["DescribedGroup"], frozen=True):
    pass


class DescribedMember(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


class DescribedGroup(msgspec.Struct, frozen=True):
    code: Code
    group_id: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    generation: int = NO_GENERATION
    leader: str = ""
    members: tuple[DescribedMember, ...] = ()


class ListGroups(Command["ListReply"], frozen=True):
    names: Sequence[str]
    """A page of them: all at once would hold up everybody else. Those that there are not are left out."""
    with_topics: bool = False
    """That is a look at every member."""


class ListedGroup(msgspec.Struct, frozen=True):
    group_id: str
    protocol_type: str
    state: str
    type: str
    members: int = 0
    generation: int = 0
    topics: tuple[str, ...] | None = None
    """None: not asked for, or cannot be told."""


class ListReply(msgspec.Struct, frozen=True):
    groups: tuple[ListedGroup, ...]


class CodeReply(msgspec.Struct, frozen=True):
    """The answer to Heartbeat, DeleteGroup, EndTransactionOffsets and TopicDeleted."""

    code: Code


def ledger_key(*parts: str | int) -> bytes:
    """Where a fact about groups lies in the ledger: its kind, the group, what tells it from others of that kind."""
    return msgspec.json.encode(parts)


def key_parts(key: bytes) -> list[str | int]:
    return msgspec.json.decode(key, type=list[str | int])

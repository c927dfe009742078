"""Fetch. v4: isolation levels; v7: sessions; v9: leader epochs; v11: racks; v12: flexible, diverging epochs;
v13: topic ids instead of names; v15: the replica moves into a tag; v16: endpoints of new leaders; v18: the follower's
high watermark.

The tags of ours are for nodes that copy partitions from each other. Clients neither send nor get them."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.messages.common import LeaderIdAndEpoch, NodeEndpoint
from goqueue.wire.kafka.notation import (
    INT32_MAX,
    INT64_MAX,
    NO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    RecordsToSend,
    String,
    Uuid,
)


class ReplicaState(Message):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Message):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, "9+ ignorable"] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, "12+"] = -1
    log_start_offset: Annotated[Int64, "5+ ignorable"] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, "17+ tag 0 ignorable"] = NO_UUID
    high_watermark: Annotated[Int64, "18+ tag 1 ignorable"] = INT64_MAX
    gq_tombstones_told: Annotated[Int64, "18+ tag 10000 ignorable"] = 0
    """The leader said, when this copy began anew, that tombstones are gone below it."""


class FetchTopic(Message):
    topic: Annotated[String, "4-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = NO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Message):
    topic: Annotated[String, "7-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = NO_UUID
    partitions: list[Int32] = []


class FetchRequest(Message):
    cluster_id: Annotated[String | None, "12+ tag 0 ignorable"] = None
    replica_id: Annotated[Int32, "4-14"] = -1
    replica_state: Annotated[ReplicaState | None, "15+ tag 1"] = None
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = INT32_MAX
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, "7+ ignorable"] = 0
    session_epoch: Annotated[Int32, "7+ ignorable"] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], "7+"] = []
    rack_id: Annotated[String, "11+ ignorable"] = ""
    gq_heard: Annotated[Int32, "18+ tag 10000 ignorable"] = -1
    """The session epoch of the last answer that came: this fetch was sent after that was."""
    gq_catches_up: Annotated[Bool, "18+ tag 10001 ignorable"] = False
    """It is for copies that are far behind: one of two sessions between two nodes."""
    gq_leaves: Annotated[Bool, "18+ tag 10002 ignorable"] = False
    """Its node stops soon: leaders are not to wait for its copies any more."""


class EpochEndOffset(Message):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class SnapshotId(Message):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Message):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class FetchedPartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, "5+ ignorable"] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, "12+ tag 0"] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, "12+ tag 1"] = None
    snapshot_id: Annotated[SnapshotId | None, "12+ tag 2"] = None
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: Annotated[Int32, "11+"] = -1
    records: RecordsToSend | None = b""
    gq_companions: Annotated[Int8, "18+ tag 10000 ignorable"] = 0
    """Which logs belong to this partition at its leader: a bit for each kind."""
    gq_compacted_to: Annotated[Int64, "18+ tag 10001 ignorable"] = 0
    """Below it offsets may have gaps."""
    gq_tombstones_gone_to: Annotated[Int64, "18+ tag 10002 ignorable"] = 0
    """Below it tombstones were dropped: a copy that has less may hold what they deleted."""
    gq_whole: Annotated[Bool, "18+ tag 10003 ignorable"] = False
    """The copy holds all that an in-sync replica must."""


class FetchedTopic(Message):
    topic: Annotated[String, "4-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = NO_UUID
    partitions: list[FetchedPartition] = []


class FetchResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, "7+ ignorable"] = 0
    session_id: Annotated[Int32, "7+"] = 0
    responses: list[FetchedTopic] = []
    node_endpoints: Annotated[list[NodeEndpoint], "16+ tag 0"] = []

"""The group protocol of KIP-932: members by ShareGroupHeartbeat, records by ShareFetch and ShareAcknowledge, which may
each carry acknowledgements. v2 of these two: leases are renewed, and a limit on records may be exact.

An assignment that is null has not changed. Of the records in a response, a client delivers those it has acquired."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from msgspec import field

from goqueue.wire.kafka.messages.common import LeaderIdAndEpoch, NodeEndpoint
from goqueue.wire.kafka.notation import (
    INT32_MAX,
    INT32_MIN,
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

NO_DELAY = -2
"""Kafka's own: a release is ready at once, a renewal lasts as long as a lease."""


class ShareGroupHeartbeatRequest(Message):
    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    rack_id: String | None = None
    subscribed_topic_names: list[String] | None = None


class ShareHeartbeatTopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[Int32] = []


class ShareHeartbeatAssignment(Message):
    topic_partitions: list[ShareHeartbeatTopicPartitions] = []


class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: ShareHeartbeatAssignment | None = None


class ShareGroupDescribeRequest(Message):
    group_ids: list[String] = []
    include_authorized_operations: Bool = False


class DescribedShareTopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    topic_name: String = ""
    partitions: list[Int32] = []


class DescribedShareAssignment(Message):
    topic_partitions: list[DescribedShareTopicPartitions] = []


class DescribedShareGroupMember(Message):
    member_id: String = ""
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    assignment: DescribedShareAssignment = field(default_factory=DescribedShareAssignment)


class DescribedShareGroup(Message):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[DescribedShareGroupMember] = []
    authorized_operations: Int32 = INT32_MIN


class ShareGroupDescribeResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: list[DescribedShareGroup] = []


class AcknowledgementBatch(Message):
    first_offset: Int64 = 0
    last_offset: Int64 = 0
    acknowledge_types: list[Int8] = []
    """One for all, or one for each offset."""
    gq_delay_ms: Annotated[Int32, "tag 10000"] = NO_DELAY
    """Ours, as `gq_reason`; who does not know a tag skips it. Of a release: when it is ready again, -1 for a backoff
    that grows with every attempt. Of a renewal: how long from now."""
    gq_reason: Annotated[String | None, "tag 10001"] = None
    """Of a release or a rejection: what its dead letter shall say."""


class SharePartition(Message):
    """Of a ShareFetch or a ShareAcknowledge, which say the same of a partition."""

    partition_index: Int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class ShareTopic(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[SharePartition] = []


class ForgottenShareTopic(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[Int32] = []


class ShareFetchRequest(Message):
    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = INT32_MAX
    max_records: Int32 = 0
    batch_size: Int32 = 0
    share_acquire_mode: Annotated[Int8, "2+ ignorable"] = 0
    is_renew_ack: Annotated[Bool, "2+"] = False
    topics: list[ShareTopic] = []
    forgotten_topics_data: list[ForgottenShareTopic] = []
    gq_start: Annotated[String | None, "tag 10000"] = None
    """Ours: where a group begins that is new here, earliest or latest; Kafka's groups begin at the latest."""
    gq_lease_ms: Annotated[Int32, "tag 10001"] = 0
    """Ours: for how long to lease, if not for as long as topic and group say."""


class AcquiredRecords(Message):
    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_count: Int16 = 0


class ShareFetchedPartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acknowledge_error_code: Int16 = 0
    acknowledge_error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: RecordsToSend = b""
    acquired_records: list[AcquiredRecords] = []


class ShareFetchedTopic(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[ShareFetchedPartition] = []


class ShareFetchResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = 0
    responses: list[ShareFetchedTopic] = []
    node_endpoints: list[NodeEndpoint] = []


class ShareAcknowledgeRequest(Message):
    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    is_renew_ack: Annotated[Bool, "2+"] = False
    topics: list[ShareTopic] = []


class ShareAcknowledgedPartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    gq_verdicts: Annotated[list[Int8], "tag 10000"] = []
    """Ours, if not all was done: what became of each acknowledgement batch that has one kind for all of it; see
    `Verdict`."""


class ShareAcknowledgedTopic(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[ShareAcknowledgedPartition] = []


class ShareAcknowledgeResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, "2+ ignorable"] = 0
    responses: list[ShareAcknowledgedTopic] = []
    node_endpoints: list[NodeEndpoint] = []

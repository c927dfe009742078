"""The group protocol of KIP-848: ConsumerGroupHeartbeat and ConsumerGroupDescribe.

An assignment that is null has not changed; one without topics is empty."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from msgspec import field

from goqueue.wire.kafka.notation import INT32_MIN, NO_UUID, Bool, Int8, Int16, Int32, Message, String, Uuid


class HeartbeatTopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[Int32] = []


class ConsumerGroupHeartbeatRequest(Message):
    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: Annotated[String | None, "1+"] = None
    server_assignor: String | None = None
    topic_partitions: list[HeartbeatTopicPartitions] | None = None


class HeartbeatAssignment(Message):
    topic_partitions: list[HeartbeatTopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: HeartbeatAssignment | None = None


class ConsumerGroupDescribeRequest(Message):
    group_ids: list[String] = []
    include_authorized_operations: Bool = False


class DescribedTopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    topic_name: String = ""
    partitions: list[Int32] = []


class DescribedAssignment(Message):
    topic_partitions: list[DescribedTopicPartitions] = []


class DescribedConsumerGroupMember(Message):
    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    subscribed_topic_regex: String | None = None
    assignment: DescribedAssignment = field(default_factory=DescribedAssignment)
    target_assignment: DescribedAssignment = field(default_factory=DescribedAssignment)
    member_type: Annotated[Int8, "1+ ignorable"] = -1


class DescribedConsumerGroup(Message):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[DescribedConsumerGroupMember] = []
    authorized_operations: Int32 = INT32_MIN


class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: list[DescribedConsumerGroup] = []

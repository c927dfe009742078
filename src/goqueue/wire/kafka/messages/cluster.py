"""DescribeQuorum, UpdateFeatures, ListConfigResources, DescribeTopicPartitions: what administrators ask of a cluster.

ListConfigResources v0 lists client metrics only; v1: any type of resource."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import (
    INT32_MIN,
    NO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Uint16,
    Uuid,
)


class QuorumPartition(Message):
    partition_index: Int32 = 0


class QuorumTopic(Message):
    topic_name: String = ""
    partitions: list[QuorumPartition] = []


class DescribeQuorumRequest(Message):
    topics: list[QuorumTopic] = []


class QuorumReplica(Message):
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, "2+"] = NO_UUID
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Annotated[Int64, "1+ ignorable"] = -1
    last_caught_up_timestamp: Annotated[Int64, "1+ ignorable"] = -1


class DescribedQuorumPartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[String | None, "2+ ignorable"] = ""
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: list[QuorumReplica] = []
    observers: list[QuorumReplica] = []


class DescribedQuorumTopic(Message):
    topic_name: String = ""
    partitions: list[DescribedQuorumPartition] = []


class QuorumListener(Message):
    name: Annotated[String, "2+"] = ""
    host: Annotated[String, "2+"] = ""
    port: Annotated[Uint16, "2+"] = 0


class QuorumNode(Message):
    node_id: Annotated[Int32, "2+"] = 0
    listeners: Annotated[list[QuorumListener], "2+"] = []


class DescribeQuorumResponse(Message):
    error_code: Int16 = 0
    error_message: Annotated[String | None, "2+ ignorable"] = ""
    topics: list[DescribedQuorumTopic] = []
    nodes: Annotated[list[QuorumNode], "2+ ignorable"] = []


class FeatureUpdateKey(Message):
    feature: String = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[Bool, "0 ignorable"] = False
    upgrade_type: Annotated[Int8, "1+ ignorable"] = 1


class UpdateFeaturesRequest(Message):
    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[Bool, "1+ ignorable"] = False


class UpdatableFeatureResult(Message):
    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


class UpdateFeaturesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: Annotated[list[UpdatableFeatureResult], "0-1 ignorable"] = []


class ListConfigResourcesRequest(Message):
    resource_types: Annotated[list[Int8], "1+ ignorable"] = []


class ListedConfigResource(Message):
    resource_name: String = ""
    resource_type: Annotated[Int8, "1+ ignorable"] = 16


class ListConfigResourcesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ListedConfigResource] = []


class DescribedTopicName(Message):
    name: String = ""


class TopicPartitionsCursor(Message):
    topic_name: String = ""
    partition_index: Int32 = 0


class DescribeTopicPartitionsRequest(Message):
    topics: list[DescribedTopicName] = []
    response_partition_limit: Int32 = 2000
    cursor: TopicPartitionsCursor | None = None


class DescribedTopicPartition(Message):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = []


class DescribedTopicOfPartitions(Message):
    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = NO_UUID
    is_internal: Bool = False
    partitions: list[DescribedTopicPartition] = []
    topic_authorized_operations: Int32 = INT32_MIN


class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[DescribedTopicOfPartitions] = []
    next_cursor: TopicPartitionsCursor | None = None

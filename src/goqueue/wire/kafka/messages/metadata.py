"""Metadata, DescribeCluster and ApiVersions: what a client asks before it can do anything else.

Metadata v0: an empty list of topics means all; v1: null does, and an empty list means none. v9: flexible; v10: topic
ids; v12: a topic may be asked for by its id alone. ApiVersions v3: flexible, except for its response header."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import INT32_MIN, NO_UUID, Bool, Int8, Int16, Int32, Int64, Message, String, Uuid


class MetadataRequestTopic(Message):
    topic_id: Annotated[Uuid, "10+ ignorable"] = NO_UUID
    name: Annotated[String | None, "null 10+"] = ""


class MetadataRequest(Message):
    topics: Annotated[list[MetadataRequestTopic] | None, "null 1+"] = []
    allow_auto_topic_creation: Annotated[Bool, "4+"] = True
    include_cluster_authorized_operations: Annotated[Bool, "8-10"] = False
    include_topic_authorized_operations: Annotated[Bool, "8+"] = False


class MetadataResponseBroker(Message):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[String | None, "1+ ignorable"] = None


class MetadataResponsePartition(Message):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, "7+ ignorable"] = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: Annotated[list[Int32], "5+ ignorable"] = []


class MetadataResponseTopic(Message):
    error_code: Int16 = 0
    name: Annotated[String | None, "null 12+"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = NO_UUID
    is_internal: Annotated[Bool, "1+ ignorable"] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[Int32, "8+"] = INT32_MIN
    gq_partitioner: Annotated[String, "9+ tag 10000 ignorable"] = ""
    """Ours: how keys choose their partition, if not as Kafka's own clients do it."""


class MetadataResponse(Message):
    throttle_time_ms: Annotated[Int32, "3+ ignorable"] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[String | None, "2+ ignorable"] = None
    controller_id: Annotated[Int32, "1+ ignorable"] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[Int32, "8-10"] = INT32_MIN
    error_code: Annotated[Int16, "13+ ignorable"] = 0


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Annotated[Int8, "1+"] = 1
    include_fenced_brokers: Annotated[Bool, "2+"] = False


class DescribeClusterBroker(Message):
    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Annotated[Bool, "2+"] = False


class DescribeClusterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Annotated[Int8, "1+"] = 1
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = INT32_MIN


class ApiVersionsRequest(Message):
    client_software_name: Annotated[String, "3+ ignorable"] = ""
    client_software_version: Annotated[String, "3+ ignorable"] = ""
    cluster_id: Annotated[String | None, "5+ ignorable"] = None
    node_id: Annotated[Int32, "5+ ignorable"] = -1


class AdvertisedApi(Message):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Message):
    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Message):
    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsResponse(Message):
    error_code: Int16 = 0
    api_keys: list[AdvertisedApi] = []
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    supported_features: Annotated[list[SupportedFeatureKey], "3+ tag 0 ignorable"] = []
    finalized_features_epoch: Annotated[Int64, "3+ tag 1 ignorable"] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], "3+ tag 2 ignorable"] = []
    zk_migration_ready: Annotated[Bool, "3+ tag 3 ignorable"] = False

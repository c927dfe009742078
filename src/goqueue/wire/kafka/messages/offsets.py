"""OffsetCommit, OffsetFetch and OffsetDelete. Both of the first two speak of topic ids instead of names from v10 on;
OffsetFetch v8 asks for many groups at once, in fields of its own."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import NO_UUID, Bool, Int16, Int32, Int64, Message, String, Uuid


class OffsetCommitRequestPartition(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, "6+ ignorable"] = -1
    committed_metadata: String | None = ""


class OffsetCommitRequestTopic(Message):
    name: Annotated[String, "2-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = NO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Message):
    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: String = ""
    group_instance_id: Annotated[String | None, "7+"] = None
    retention_time_ms: Annotated[Int64, "2-4 ignorable"] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Message):
    name: Annotated[String, "2-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = NO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    throttle_time_ms: Annotated[Int32, "3+ ignorable"] = 0
    topics: list[OffsetCommitResponseTopic] = []


class OffsetFetchRequestTopic(Message):
    name: String = ""
    partition_indexes: list[Int32] = []


class OffsetFetchRequestTopics(Message):
    name: Annotated[String, "8-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = NO_UUID
    partition_indexes: list[Int32] = []


class OffsetFetchRequestGroup(Message):
    group_id: String = ""
    member_id: Annotated[String | None, "9+ ignorable"] = None
    member_epoch: Annotated[Int32, "9+ ignorable"] = -1
    topics: list[OffsetFetchRequestTopics] | None = []


class OffsetFetchRequest(Message):
    group_id: Annotated[String, "1-7"] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, "1-7 null 2-7"] = []
    groups: Annotated[list[OffsetFetchRequestGroup], "8+"] = []
    require_stable: Annotated[Bool, "7+"] = False


class OffsetFetchResponsePartition(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, "5-7 ignorable"] = -1
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Message):
    name: String = ""
    partitions: list[OffsetFetchResponsePartition] = []


class OffsetFetchResponsePartitions(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Message):
    name: Annotated[String, "8-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = NO_UUID
    partitions: list[OffsetFetchResponsePartitions] = []


class OffsetFetchResponseGroup(Message):
    group_id: String = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: Int16 = 0


class OffsetFetchResponse(Message):
    throttle_time_ms: Annotated[Int32, "3+ ignorable"] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], "1-7"] = []
    error_code: Annotated[Int16, "2-7 ignorable"] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], "8+"] = []


class OffsetDeleteRequestPartition(Message):
    partition_index: Int32 = 0


class OffsetDeleteRequestTopic(Message):
    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Message):
    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Message):
    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []

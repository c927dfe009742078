"""Produce. v3: batches of format 2 only; v8: errors per record; v9: flexible; v10: the new leader;
v13: topic ids instead of names."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.messages.common import LeaderIdAndEpoch, NodeEndpoint
from goqueue.wire.kafka.notation import NO_UUID, Int8, Int16, Int32, Int64, Message, Records, String, Uuid

NOT_TOLD, OS, DISK = 0, 1, 2
DURABILITIES = {"os": OS, "disk": DISK}
DURABILITY_NAMES = {OS: "os", DISK: "disk"}


class PartitionProduceData(Message):
    index: Int32 = 0
    records: Records | None = None


class TopicProduceData(Message):
    name: Annotated[String, "3-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = NO_UUID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Message):
    transactional_id: String | None = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Message):
    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


class PartitionProduceResponse(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, "5+ ignorable"] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], "8+ ignorable"] = []
    error_message: Annotated[String | None, "8+ ignorable"] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, "10+ tag 0"] = None
    gq_durability: Annotated[Int8, "9+ tag 10000 ignorable"] = NOT_TOLD
    """Ours; who does not know a tag skips it. What was reached: OS or DISK."""


class TopicProduceResponse(Message):
    name: Annotated[String, "3-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = NO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], "10+ tag 0"] = []

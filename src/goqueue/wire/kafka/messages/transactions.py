"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers, TxnOffsetCommit.

AddPartitionsToTxn v4 takes several transactions at once, or only asks about them. EndTxn v5 answers with the next
epoch (transactions v2); TxnOffsetCommit v6: topic ids instead of names."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import NO_UUID, Bool, Int8, Int16, Int32, Int64, Message, String, Uuid


class InitProducerIdRequest(Message):
    transactional_id: String | None = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, "3+"] = -1
    producer_epoch: Annotated[Int16, "3+"] = -1


class InitProducerIdResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0


class AddPartitionsToTxnTopic(Message):
    name: String = ""
    partitions: list[Int32] = []


class AddPartitionsToTxnTransaction(Message):
    transactional_id: Annotated[String, "4+"] = ""
    producer_id: Annotated[Int64, "4+"] = 0
    producer_epoch: Annotated[Int16, "4+"] = 0
    verify_only: Annotated[Bool, "4+"] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], "4+"] = []


class AddPartitionsToTxnRequest(Message):
    transactions: Annotated[list[AddPartitionsToTxnTransaction], "4+"] = []
    v3_and_below_transactional_id: Annotated[String, "0-3"] = ""
    v3_and_below_producer_id: Annotated[Int64, "0-3"] = 0
    v3_and_below_producer_epoch: Annotated[Int16, "0-3"] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], "0-3"] = []


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Message):
    name: String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Message):
    transactional_id: Annotated[String, "4+"] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], "4+"] = []


class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, "4+ ignorable"] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], "4+"] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], "0-3"] = []


class AddOffsetsToTxnRequest(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0


class OpenTransaction(Message):
    """Ours."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0


class EndTxnRequest(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False
    gq_together: Annotated[list[OpenTransaction] | None, "3+ tag 10000 ignorable"] = None
    """Ours: end all of these in one decision. `transactional_id` is then the key of their writer, which all of theirs
    begin with, and there is no producer."""
    gq_mark: Annotated[Int64, "3+ tag 10001 ignorable"] = -1
    """Ours: how far that writer has come with this commit. One that is not higher than the last is a repetition."""
    gq_forgets: Annotated[Bool, "3+ tag 10002 ignorable"] = False
    """Ours: nobody will use these transactional ids again."""


class EndTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, "5+ ignorable"] = -1
    producer_epoch: Annotated[Int16, "5+ ignorable"] = -1
    gq_is_repeated: Annotated[Bool, "3+ tag 10000 ignorable"] = False
    """Ours: the writer had committed this before; what was sent again is aborted."""
    gq_message: Annotated[String | None, "3+ tag 10001 ignorable"] = None


class WritableTxnMarkerTopic(Message):
    name: String = ""
    partition_indexes: list[Int32] = []


class WritableTxnMarker(Message):
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, "2+ ignorable"] = 0


class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Message):
    name: String = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Message):
    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = []


class TxnOffsetCommitRequestPartition(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, "2+ ignorable"] = -1
    committed_metadata: String | None = ""


class TxnOffsetCommitRequestTopic(Message):
    name: Annotated[String, "0-5 ignorable"] = ""
    topic_id: Annotated[Uuid, "6+ ignorable"] = NO_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Message):
    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id_or_member_epoch: Annotated[Int32, "3+"] = -1
    member_id: Annotated[String, "3+"] = ""
    group_instance_id: Annotated[String | None, "3+"] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Message):
    name: Annotated[String, "0-5 ignorable"] = ""
    topic_id: Annotated[Uuid, "6+ ignorable"] = NO_UUID
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []

"""DescribeProducers, DescribeTransactions, ListTransactions."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import Int16, Int32, Int64, Message, String


class DescribeProducersTopic(Message):
    name: String = ""
    partition_indexes: list[Int32] = []


class DescribeProducersRequest(Message):
    topics: list[DescribeProducersTopic] = []


class ActiveProducer(Message):
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class DescribedProducersPartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ActiveProducer] = []


class DescribedProducersTopic(Message):
    name: String = ""
    partitions: list[DescribedProducersPartition] = []


class DescribeProducersResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[DescribedProducersTopic] = []


class DescribeTransactionsRequest(Message):
    transactional_ids: list[String] = []


class DescribedTransactionTopic(Message):
    topic: String = ""
    partitions: list[Int32] = []


class DescribedTransaction(Message):
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[DescribedTransactionTopic] = []


class DescribeTransactionsResponse(Message):
    throttle_time_ms: Int32 = 0
    transaction_states: list[DescribedTransaction] = []


class ListTransactionsRequest(Message):
    state_filters: list[String] = []
    producer_id_filters: list[Int64] = []
    duration_filter: Annotated[Int64, "1+"] = -1
    transactional_id_pattern: Annotated[String | None, "2+"] = None


class ListedTransaction(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


class ListTransactionsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = []
    transaction_states: list[ListedTransaction] = []

"""Producers and their transactions."""

from typing import Annotated

from msgspec import Meta

from goqueue.wire.rest.common import INT32_MAX, INT64_MAX, Body, Count, PartitionNumber, Query, Reply, TopicName
from goqueue.wire.rest.delays import PageQuery
from goqueue.wire.rest.messages import DurabilityName, NewMessage

EPOCH_MAX = (1 << 15) - 1

ProducerId = Annotated[int, Meta(ge=0, le=INT64_MAX, description="As init gave it")]
Epoch = Annotated[int, Meta(ge=0, le=EPOCH_MAX, description="As init gave it")]
TransactionalId = Annotated[
    str,
    Meta(min_length=1, max_length=1024, description="The name of a producer that outlives it", examples=["billing"]),
]


class InitProducer(Body):
    transactional_id: TransactionalId | None = None
    """Absent: a producer without transactions."""
    transaction_timeout_ms: Annotated[int, Meta(ge=1, le=INT32_MAX, description="Absent: a minute")] | None = None


class ProducerReply(Reply):
    producer_id: int
    epoch: int


class ProducerPath(Query):
    producer_id: ProducerId


class ProducerHeartbeat(Body):
    transactional_id: TransactionalId | None = None
    epoch: Epoch | None = None


class ProducerHeartbeatReply(Reply):
    status: Annotated[str, Meta(examples=["ok"])]


class ProducerBody(Body):
    producer_id: ProducerId
    epoch: Epoch
    transactional_id: TransactionalId | None = None


class TransactionBegun(Reply):
    transaction_id: str
    status: Annotated[str, Meta(examples=["begun"])]


class AddPartition(ProducerBody, kw_only=True):
    topic: TopicName
    partition: PartitionNumber


class PartitionAdded(Reply):
    status: Annotated[str, Meta(examples=["added"])]
    topic: str
    partition: int


class TransactionPublish(NewMessage, kw_only=True):
    producer_id: ProducerId
    epoch: Epoch
    transactional_id: TransactionalId | None = None
    topic: TopicName
    partition: Annotated[int, Meta(ge=-1, le=INT32_MAX, description="Absent or -1: by key, or in turns")] | None = None
    sequence: Annotated[int, Meta(ge=0, le=INT32_MAX)] | None = None
    """Counts this producer's messages in one partition from 0, so that one that is sent again is known. Absent: the
    next one."""


class TransactionPublished(Reply):
    partition: int
    offset: int
    duplicate: Annotated[bool, Meta(description="It was published before; this is where")]
    durability: DurabilityName


class TransactionEnded(Reply):
    status: Annotated[str, Meta(description="committed or aborted", examples=["committed"])]
    committed: bool
    aborted: bool


class TransactionsQuery(PageQuery):
    state: (
        Annotated[
            str,
            Meta(
                pattern=r"^(Empty|Begun|Ongoing|PrepareCommit|PrepareAbort|CompleteCommit|CompleteAbort|all)\Z",
                description="Absent: those that are open",
                examples=["Ongoing"],
            ),
        ]
        | None
    ) = None
    cursor: Annotated[str, Meta(description="`next` of the page before: the last transactional id on it")] | None = None


class TransactionPartition(Reply):
    topic: str
    partition: int


class Transaction(Reply):
    transaction_id: str
    transactional_id: str
    producer_id: int
    epoch: int
    state: str
    start_time: Annotated[str | None, Meta(description="null: none was begun yet")]
    timeout_ms: int
    partitions: list[TransactionPartition]


class Transactions(Reply):
    transactions: list[Transaction]
    count: Annotated[int, Meta(ge=0, description="On this page")]
    total: Annotated[int, Meta(ge=0, description="On all pages, as it was when this one was read")]
    next: Annotated[str | None, Meta(description="`cursor` of the next page; null: this was the last")]


class TransactionStats(Reply):
    """Committed and aborted are counted since the start of the node."""

    active_transactions: Count
    committed_total: Count
    aborted_total: Count
    transactional_producers: Count
    transactions_by_state: dict[str, int]

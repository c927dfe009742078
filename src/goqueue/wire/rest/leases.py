"""Leases as wholes: taken for thousands of messages at once, without their content, and settled by one receipt each."""

from typing import Annotated, Literal

from msgspec import Meta

from goqueue.wire.rest.acks import ReceiptHandle
from goqueue.wire.rest.common import Body, Count, Duration, GroupId, Offset, PartitionNumber, Query, Reply, TopicName
from goqueue.wire.rest.groups import TOPICS_MAX

LEASE_MESSAGES_MAX = 100_000
LEASES_MAX = 10_000
RUNS_MAX = 100_000
CURSOR_PATTERN = r"^[\s\S]{1,255}/[^/]{1,249}/[0-9]{1,10}/[0-9]{1,18}\Z"

Run = Annotated[
    list[int],
    Meta(min_length=3, max_length=3, description="First offset, last offset, delivery count", examples=[[0, 41, 1]]),
]


class TakeLeases(Body):
    topics: Annotated[list[TopicName], Meta(min_length=1, max_length=TOPICS_MAX)]
    max_messages: Annotated[int, Meta(ge=1, le=LEASE_MESSAGES_MAX)] = 10_000
    """In all; of one partition no more than the option unacked.max allows one consumer."""
    lease: Duration | None = None
    """Absent: as topic and group say."""
    wait: Duration | None = None
    """Wait so long for messages, 60 s at most; absent: do not wait."""
    consumer: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    start: Literal["earliest", "latest"] | None = None
    """Where a group begins that was never here; absent: earliest."""


class TakenLease(Reply):
    topic: str
    partition: int
    receipt: Annotated[str, Meta(description="With a dot and an offset behind it: the receipt of that message")]
    until: Annotated[str, Meta(description="What is not settled by then is delivered again")]
    runs: list[Run]


class TakenLeases(Reply):
    leases: Annotated[list[TakenLease], Meta(description="One for each partition that had something ready")]
    messages: Count


class ExtendLeases(Body):
    receipts: Annotated[list[ReceiptHandle], Meta(min_length=1, max_length=LEASES_MAX)]
    timeout: Duration
    """The leases end so long from now."""


class FinishedLease(Body):
    receipt: ReceiptHandle
    runs: Annotated[list[Run], Meta(max_length=RUNS_MAX)] | None = None
    """As the lease came with them: after a restart of the node they tell what belonged to it."""


class FinishLeases(Body):
    leases: Annotated[list[FinishedLease], Meta(min_length=1, max_length=LEASES_MAX)]


class LeaseCounts(Reply):
    messages: Annotated[list[Count], Meta(description="Of each lease: how many messages it was done to")]


class LeasesQuery(Query):
    group: GroupId | None = None
    topic: TopicName | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: (
        Annotated[str, Meta(pattern=CURSOR_PATTERN, description="`next` of the page before", examples=["g/orders/0/7"])]
        | None
    ) = None


class HeldLease(Reply):
    """Neighbours that one consumer holds."""

    group: str
    topic: str
    partition: PartitionNumber
    first_offset: Offset
    last_offset: Offset
    messages: Count
    consumer: str
    delivery_count: Count
    leased_at: str
    lease_until: str


class HeldLeases(Reply):
    leases: list[HeldLease]
    count: Count
    next: Annotated[str | None, Meta(description="`cursor` of the next page; null: this was the last")]

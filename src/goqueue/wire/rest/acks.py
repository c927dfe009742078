"""Settling messages by their receipts."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Body, Count, Duration, Offset, PartitionNumber, Reply, TopicName

SETTLED_MAX = 1000
HOLD_S_MAX = 12 * 3600
REASON_CHARS_MAX = 1000
ReceiptHandle = Annotated[
    str, Meta(min_length=1, max_length=2000, description="As the message came with it", examples=["AQ..."])
]
Reason = Annotated[str, Meta(max_length=REASON_CHARS_MAX, description="For those who look at the dead letter")]
Action = Literal["ack", "nack", "reject", "extend"]
ConsumerId = Annotated[str, Meta(max_length=255, description="Taken and not looked at: the receipt says who holds it")]


class Ack(Body):
    receipt_handle: ReceiptHandle
    consumer_id: ConsumerId | None = None


class Acked(Reply):
    success: bool
    acknowledged: bool
    group: str
    topic: str
    partition: int
    offset: int
    committed_offset: Annotated[int, Meta(ge=0, description="All below it is settled, by this group")]
    offset_advanced: Annotated[bool, Meta(description="This has moved it")]
    in_flight_count: Annotated[int, Meta(ge=0, description="What consumers of the group hold in this partition")]


class Nack(Body):
    receipt_handle: ReceiptHandle
    consumer_id: ConsumerId | None = None
    delay: Duration | None = None
    """Until it is delivered again; absent: the longer, the more often it was tried."""
    reason: Reason | None = None


class Nacked(Reply):
    success: bool
    requeued: bool
    action: Annotated[
        str,
        Meta(
            description="requeued; dlq if this was the last attempt; expired if its time to live is over and its topic "
            "drops such messages",
            examples=["requeued"],
        ),
    ]
    group: str
    topic: str
    partition: int
    offset: int
    delivery_count: Count
    next_visible_at: Annotated[str | None, Meta(description="Null: never")]
    dlq_topic: str | UnsetType = UNSET


class Reject(Body):
    receipt_handle: ReceiptHandle
    consumer_id: ConsumerId | None = None
    reason: Reason | None = None


class Rejected(Reply):
    success: bool
    rejected: bool
    action: Annotated[str, Meta(examples=["rejected"])]
    group: str
    topic: str
    partition: int
    offset: int
    dlq_topic: str
    reason: str


class Visibility(Body):
    receipt_handle: ReceiptHandle
    consumer_id: ConsumerId | None = None
    timeout: Duration | None = None
    """The lease ends so long from now; one of these two must be said."""
    extension_seconds: Annotated[int, Meta(ge=1, le=HOLD_S_MAX)] | None = None


class Extended(Reply):
    success: bool
    group: str
    topic: str
    partition: int
    offset: int
    new_deadline: str
    extended_by: Annotated[str, Meta(examples=["60s"])]


class Settlement(Body):
    receipt_handle: ReceiptHandle
    consumer_id: ConsumerId | None = None
    action: Action | None = None
    """Absent: ack."""
    delay: Duration | None = None
    timeout: Duration | None = None
    reason: Reason | None = None


class SettleAll(Body):
    messages: Annotated[list[Settlement], Meta(min_length=1, max_length=SETTLED_MAX)] | None = None
    receipt_handles: Annotated[list[ReceiptHandle], Meta(min_length=1, max_length=SETTLED_MAX)] | None = None
    """To be acknowledged."""
    consumer_id: ConsumerId | None = None


class SettleResult(Reply):
    receipt_handle: str
    action: str
    success: bool
    status: Annotated[int, Meta(description="As it would be if this had been sent alone", examples=[200])]
    code: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class SettledAll(Reply):
    results: list[SettleResult]
    succeeded: Count
    failed: Count


class AckStats(Reply):
    total_acks: Count
    total_nacks: Count
    total_rejects: Count
    total_expired: Annotated[int, Meta(ge=0, description="Leases that ended with their deadline or their consumer")]
    total_retries: Count
    total_dlq: Count
    current_queued: Annotated[int, Meta(ge=0, description="Wait for their next delivery")]


class VisibilityStats(Reply):
    total_tracked: Annotated[int, Meta(ge=0, description="Messages leased")]
    current_in_flight: Count
    total_expired: Count
    total_acked: Count
    total_extended: Count


class DeadLetterStats(Reply):
    total_routed: Count
    routes_by_reason: dict[str, int]
    routes_by_topic: dict[str, int]
    create_errors: Count
    publish_errors: Count


class ReliabilityStats(Reply):
    """Since this node started, of all groups. What is settled by committing an offset is not counted."""

    ack_manager: AckStats
    visibility_tracker: VisibilityStats
    dlq: DeadLetterStats
    acks_total: Count
    nacks_total: Count
    rejects_total: Count
    expired_total: Count
    retries_total: Count
    dlq_total: Count
    extensions_total: Count
    deliveries_total: Count
    in_flight: Count


class SettlePlace(Body):
    """By an operator, who has no receipt."""

    topic: TopicName
    partition: PartitionNumber
    offset: Offset
    action: Annotated[
        Literal["ack", "release", "reject", "extend"],
        Meta(description="Done; to the next consumer now, as one more attempt; to the dead letters; or held longer"),
    ]
    reason: Reason | None = None
    timeout: Duration | None = None
    """Of extend, which needs it: the lease ends so long from now, in 12 hours at most."""


class SettledPlace(Reply):
    group: str
    topic: str
    partition: int
    offset: int
    action: Annotated[str, Meta(examples=["release"])]

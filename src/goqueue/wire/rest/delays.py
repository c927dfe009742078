"""What waits for its time: delayed messages, and messages that come again and again."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from goqueue.wire.rest.common import (
    Body,
    Count,
    Duration,
    Moment,
    Offset,
    OldName,
    PartitionNumber,
    Query,
    Reply,
    TopicName,
)
from goqueue.wire.rest.messages import Base64, LaneName

SKIP_MAX = 10_000

ScheduleName = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f/]{1,255}\Z",
        min_length=1,
        max_length=255,
        description="Name of a recurring schedule",
        examples=["nightly-report"],
    ),
]


class PageQuery(Query):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    skip: Annotated[int, Meta(ge=0, le=SKIP_MAX)] = 0


class DelayedPageQuery(PageQuery):
    cursor: (
        Annotated[
            str,
            Meta(
                pattern=r"^[0-9]{1,9}/[0-9]{1,18}\Z",
                description="List by partition and offset from here on: `0/0`, then `next` of the page before",
                examples=["0/0"],
            ),
        ]
        | None
    ) = None


class DelayedPath(Query):
    topic: TopicName
    partition: PartitionNumber
    offset: Offset


class DelayedOffsetPath(Query):
    topic: TopicName
    offset: Offset


class DelayedQuery(Query):
    partition: PartitionNumber | None = None
    """Absent: the first partition in which something waits under this offset."""


class DelayedMessage(Reply):
    topic: str
    partition: int
    offset: Annotated[int, Meta(description="Its name until it is due; in the log it will have another one")]
    deliver_at: str
    time_remaining: Annotated[str, Meta(examples=["9m30s"])]
    state: Annotated[str, Meta(description="pending, or waiting_for_transaction")]
    key: str | UnsetType | None = UNSET
    value: str | UnsetType | None = UNSET
    headers: dict[str, str | None] | UnsetType = UNSET
    priority: str | UnsetType = UNSET
    published_at: str | UnsetType = UNSET
    key_base64: str | UnsetType = UNSET
    value_base64: str | UnsetType = UNSET
    headers_base64: dict[str, str] | UnsetType = UNSET


class DelayedMessages(Reply):
    topic: str
    messages: list[DelayedMessage]
    count: Annotated[int, Meta(ge=0, description="Of this page")]
    total: Annotated[int, Meta(ge=0, description="Of all that wait in this topic")]
    limit: int
    skip: int
    next: Annotated[str | None, Meta(description="With a cursor: that of the next page; null: this was the last")]


class Cancelled(Reply):
    cancelled: bool
    canceled: bool
    topic: str
    partition: int
    offset: int


class NewTime(Body):
    """Exactly one of these."""

    delay: Duration | None = None
    deliver_at: Moment | None = None
    deliver_at_too: OldName | None = field(default=None, name="deliverAt")


class TimerWheelStats(Reply):
    total_scheduled: Count
    total_expired: Count
    total_canceled: Count
    current_active: Count
    current_tick: Count


class DelayStats(Reply):
    """What was counted was counted since the start of the node."""

    total_scheduled: Count
    total_delivered: Count
    total_canceled: Count
    total_cancelled: Count
    total_pending: Count
    pending_count: Count
    delivered_count: Count
    cancelled_count: Count
    avg_delay: Annotated[str, Meta(description="Of what was delayed", examples=["10m"])]
    waiting_for_transaction: Count
    next_delivery_at: str | None
    by_topic: dict[str, int]
    timer_wheel: TimerWheelStats


class SchedulePath(Query):
    name: ScheduleName


class NewSchedule(Body):
    topic: TopicName
    cron: Annotated[str, Meta(min_length=1, max_length=255, examples=["0 7 * * *"])]
    timezone: Annotated[str, Meta(max_length=255, examples=["Europe/Berlin"])] = "UTC"
    value: str | None = None
    value_base64: Base64 | None = None
    key: str | None = None
    key_base64: Base64 | None = None
    headers: dict[str, str | None] | None = None
    priority: LaneName | int | None = None


class Schedule(Reply):
    name: str
    topic: str
    partition: int
    cron: str
    timezone: str
    next_run: Annotated[str | None, Meta(description="null: never again, or not while it is paused")]
    last_run: Annotated[str | None, Meta(description="null: never yet")]
    paused: Annotated[bool, Meta(description="It does not run until it is resumed")]
    key: str | UnsetType | None = UNSET
    value: str | UnsetType | None = UNSET
    headers: dict[str, str | None] | UnsetType = UNSET
    priority: str | UnsetType = UNSET
    key_base64: str | UnsetType = UNSET
    value_base64: str | UnsetType = UNSET
    headers_base64: dict[str, str] | UnsetType = UNSET


class Schedules(Reply):
    schedules: list[Schedule]
    count: Count
    total: Count
    limit: int
    skip: int


class ScheduleDeleted(Reply):
    deleted: bool
    name: str


class ScheduleRun(Reply):
    name: str
    topic: str
    partition: int
    offset: Annotated[int, Meta(ge=0, description="Of the message that was published")]

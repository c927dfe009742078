"""Messages as JSON. Text is text; what is not UTF-8 travels in the fields that end in _base64."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from goqueue.wire.rest.common import Body, Duration, Moment, Offset, OldName, PartitionNumber, Query, Reply, TopicName

MESSAGES_MAX = 10_000
Base64 = Annotated[str, Meta(description="Bytes in base64", examples=["aGVsbG8="])]
LaneName = Annotated[
    str, Meta(description="critical, high, normal, low or background; or its number, 0 to 4", examples=["high"])
]


DurabilityName = Annotated[
    str,
    Meta(
        description="Where the message is now: `disk`, or `os` for the operating system, where power loss loses it; "
        "see the topic option `durability`",
        examples=["disk"],
    ),
]


class Header(Body):
    """One header, where a name may come more than once."""

    name: str
    value: str | None = None
    """Absent, with `value_base64` absent too: a header without a value."""
    value_base64: Base64 | None = None
    """Instead of `value`, for bytes that are not text."""


class NewMessage(Body):
    """A record and its delivery wishes."""

    value: str | None = None
    value_base64: Base64 | None = None
    key: str | None = None
    key_base64: Base64 | None = None
    headers: dict[str, str | None] | None = None
    headers_base64: dict[str, Base64] | None = None
    """Headers whose values are not text. A name that is in `headers` too keeps its place there."""
    header_list: list[Header] | None = None
    """All headers in order, instead of `headers`: for names that come more than once."""
    timestamp: Moment | None = None
    """When it was created; absent: now."""
    partition: PartitionNumber | None = None
    priority: LaneName | int | None = None
    delay: Duration | None = None
    deliver_at: Moment | None = None
    deliver_at_too: OldName | None = field(default=None, name="deliverAt")
    ttl: Duration | None = None
    dedup_id: str | None = None
    """On a topic with `dedup.ms`: what was published under this id before is not published again."""


class Publish(Body):
    messages: Annotated[
        list[NewMessage],
        Meta(min_length=1, max_length=MESSAGES_MAX, examples=[[{"key": "customer-7", "value": "three apples"}]]),
    ]


class Published(Reply):
    partition: Annotated[int, Meta(ge=-1)]
    offset: Annotated[int, Meta(ge=-1, description="-1: see error. Of a delayed message: its name until it is due")]
    priority: str
    delayed: bool
    deliver_at: str | UnsetType = UNSET
    """When it is due, if it is delayed."""
    durability: DurabilityName | UnsetType = UNSET
    """Missing if there is an error."""
    error: str | UnsetType = UNSET


class PublishedAll(Reply):
    results: list[Published]


class PartitionPath(Query):
    topic: TopicName
    partition: PartitionNumber


class ReadQuery(Query):
    offset: Offset | None = None
    """Absent: the oldest that there is, or `from_time`."""
    from_time: Moment | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class MessageReply(Reply):
    partition: int
    offset: int
    timestamp: str
    key: str | None
    value: str | None
    priority: str
    headers: dict[str, str | None]
    key_base64: str | UnsetType = UNSET
    value_base64: str | UnsetType = UNSET
    headers_base64: dict[str, str] | UnsetType = UNSET
    header_list: list[Header] | UnsetType = UNSET
    """All headers in order, if a name comes more than once; `headers` then has the last of each name."""


class Messages(Reply):
    messages: list[MessageReply]
    next_offset: Annotated[int, Meta(ge=0, description="Where to go on reading")]

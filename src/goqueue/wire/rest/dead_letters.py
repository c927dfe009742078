"""Dead letters: looked at, sent back to work, thrown away."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from goqueue.wire.rest.common import Body, Count, Duration, Moment, Offset, PartitionNumber, Query, Reply, TopicName

CURSOR_PATTERN = r"^[0-9]{1,9}/[0-9]{1,18}\Z"
RATE_MAX = 1_000_000
REDRIVES_MAX = 1_000_000
PLACES_MAX = 10_000

Cursor = Annotated[str, Meta(pattern=CURSOR_PATTERN, description="`next` of the page before", examples=["0/17"])]
Place = Annotated[str, Meta(pattern=CURSOR_PATTERN, description="PARTITION/OFFSET", examples=["0/17"])]
Rate = Annotated[int, Meta(ge=0, le=RATE_MAX, description="Messages a second; 0: as fast as possible")]
Reason = Annotated[str, Meta(description="attempts, rejected or expired", examples=["rejected"])]
Lanes = Annotated[str | int, Meta(description="One lane or several, with commas between", examples=["high,critical"])]


class Filter(Body):
    """Which messages: all that is given must hold."""

    key: str | None = None
    headers: dict[str, str] | None = None
    contains: Annotated[str, Meta(description="Text that the value holds")] | None = None
    lane: Lanes | None = None
    reason: Reason | None = None
    from_time: Moment | None = field(default=None, name="from")
    to_time: Moment | None = field(default=None, name="to")


class FilterQuery(Query):
    key: str | None = None
    header: Annotated[str, Meta(description="NAME:VALUE", pattern=r"^[^:]+:.*\Z", examples=["tenant:a"])] | None = None
    contains: str | None = None
    lane: Lanes | None = None


class DeadLetterQuery(FilterQuery):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Cursor | None = None
    reason: Reason | None = None
    from_time: Moment | None = field(default=None, name="from")
    to_time: Moment | None = field(default=None, name="to")


class DeadLetterPath(Query):
    topic: TopicName
    partition: PartitionNumber
    offset: Offset


class DeadLetter(Reply):
    """The message as it was, and what became of it. `partition` and `offset` are its place among the dead letters."""

    dlq_topic: str
    partition: int
    offset: int
    original_topic: str
    original_partition: int
    original_offset: int
    original_timestamp: str | None
    group: str
    reason: Reason
    error: Annotated[str, Meta(description="What its consumer said")]
    attempts: int
    first_delivered_at: str | None
    died_at: str | None
    redrives: Annotated[int, Meta(ge=0, description="How often it was sent back to work before")]
    key: str | None
    value: str | None
    priority: str
    headers: dict[str, str | None]
    key_base64: str | UnsetType = UNSET
    value_base64: str | UnsetType = UNSET
    headers_base64: dict[str, str] | UnsetType = UNSET


class DeadLetters(Reply):
    topic: str
    dlq_topic: str
    messages: list[DeadLetter]
    count: Count
    next: Annotated[str | None, Meta(description="`cursor` of the next page; null: this was the last")]


class Discarded(Reply):
    discarded: bool
    topic: str
    partition: int
    offset: int


class Purged(Reply):
    topic: str
    purged: Annotated[int, Meta(ge=0, description="Counted by offsets: those that were redriven before too")]


class Redrive(Body):
    to: TopicName | None = None
    """Absent: back to where each came from."""
    filter: Filter | None = None
    places: Annotated[list[Place], Meta(max_length=PLACES_MAX, description="Only these dead letters")] | None = None
    dry_run: bool = False
    rate: Rate = 0
    redrives_max: Annotated[int, Meta(ge=1, le=REDRIVES_MAX)] = 3
    """A message that was sent back so often is left where it is: it would only come back."""
    wait: Duration = "10s"
    """How long to wait for the end, at most 5 minutes. Then the answer is 202, and the redrive goes on."""


class RedriveReply(Reply):
    topic: str
    state: Annotated[str, Meta(description="running, stopping, done, stopped or failed", examples=["done"])]
    dry_run: bool
    redriven: Annotated[int, Meta(ge=0, description="Sent back; of a dry run: that would be")]
    filtered_out: Count
    looping: Annotated[int, Meta(ge=0, description="Left where they are: sent back too often")]
    failed: Count
    errors: list[str]
    started_at: str
    ended_at: str | None

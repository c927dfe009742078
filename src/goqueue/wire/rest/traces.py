"""Journeys of messages: traces, their spans, and where a message is."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Count, Moment, Offset, PartitionNumber, Query, Reply, TopicName

TraceId = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z", examples=["4bf92f3577b34da6a3ce929d0e0e4736"])]
TraceLimit = Annotated[int, Meta(ge=1, le=1000)]


class TracesQuery(Query):
    trace_id: TraceId | None = None
    """Only the messages of this trace."""
    topic: TopicName | None = None
    """Only messages of this topic."""
    partition: Annotated[int, Meta(ge=-1, le=2**31 - 1, description="Only messages of this partition; -1: of all")] = -1
    offset: Offset | None = None
    """Only the message at this offset; needs `topic` and `partition`."""
    consumer_group: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    """Only messages that something happened to in this group."""
    start: Moment | None = None
    """Only messages that something happened to at this time or later."""
    end: Moment | None = None
    """Only messages that something happened to at this time or earlier."""
    status: Annotated[str, Meta(pattern=r"^(completed|error|pending)\Z", examples=["error"])] | None = None
    """Only journeys that are `completed`, in `error` or `pending`."""
    key: Annotated[str, Meta(description="Only the latest messages with this key; needs `topic`")] | None = None
    limit: TraceLimit = 100
    """So many journeys at most."""


class TraceSearchQuery(TracesQuery, kw_only=True):
    spans: Annotated[bool, Meta(description="With all that happened to each")] | None = None
    cursor: (
        Annotated[
            str,
            Meta(
                pattern=r"^[0-9]{1,18}\Z",
                description="All journeys of one partition, by offset: 0, then `next` of the page before",
                examples=["0"],
            ),
        ]
        | None
    ) = None


class TraceSummary(Reply):
    trace_id: str
    topic: str
    partition: int
    offset: int
    start_time: str
    end_time: str
    duration_ms: Count
    status: Annotated[str, Meta(description="completed, error or pending")]
    span_count: Count
    spans: "list[TraceSpan] | UnsetType" = UNSET


class TraceList(Reply):
    traces: list[TraceSummary]
    total: Count


class TraceSearchResult(Reply):
    traces: list[TraceSummary]
    total: Annotated[int, Meta(ge=0, description="Among the latest that were looked at")]
    query: dict[str, Any]
    next: Annotated[str | None, Meta(description="With a cursor: that of the next page; null: this was the last")]


class StepsQuery(Query):
    topic: TopicName | None = None
    cursor: Annotated[int, Meta(ge=0, description="`next` of the page before")] = 0
    until: Annotated[int, Meta(ge=0, description="Not beyond this cursor")] | None = None


class StoredStep(Reply):
    """What happened to the messages from the first to the last offset."""

    timestamp: str
    event_type: Annotated[str, Meta(examples=["consume.acked"])]
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    every: Annotated[int, Meta(ge=1, description="Only the offsets that are multiples of it are meant: a sample")]
    consumer_group: str | UnsetType = UNSET
    consumer_id: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    moved_to: Annotated[int, Meta(description="Of delayed messages that are due: the offset of the first, since")] | (
        UnsetType
    ) = UNSET
    cursor: Annotated[int, Meta(ge=0, description="Of the page that it is stored in")] = 0


class StoredSteps(Reply):
    steps: list[StoredStep]
    next: Annotated[int | None, Meta(description="`cursor` of the next page; null: this was the last")]
    first: Annotated[int, Meta(ge=0, description="The lowest cursor that there is")]
    end: Annotated[int, Meta(ge=0, description="The cursor behind all that is stored now")]


class TracePath(Query):
    id: TraceId


class TraceSpan(Reply):
    span_id: str
    event_type: Annotated[str, Meta(examples=["consume.acked"])]
    timestamp: str
    topic: str
    partition: int
    offset: int
    parent_span_id: str | UnsetType = UNSET
    consumer_group: str | UnsetType = UNSET
    consumer_id: str | UnsetType = UNSET
    duration_ns: Count | UnsetType = UNSET
    error: str | UnsetType = UNSET
    attributes: dict[str, str] | UnsetType = UNSET


class TraceEvent(Reply):
    timestamp: str
    event_type: str
    details: dict[str, Any]


class TraceDetails(Reply):
    trace_id: str
    topic: str
    partition: int
    offset: int
    start_time: str
    end_time: str
    duration_ms: Count
    status: str
    span_count: Count
    spans: list[TraceSpan]
    events: list[TraceEvent]


class TraceStats(Reply):
    enabled: bool
    sampling_rate: float
    spans_in_buffer: Count
    buffer_capacity: Count
    traces_indexed: Annotated[int, Meta(ge=0, description="Records whose producer brought a trace")]
    exporters_enabled: list[str]
    traces_total: Annotated[int, Meta(ge=0, description="Messages received since the start")]
    notes_total: Count
    notes_stored: Count
    notes_not_stored: Count
    records_not_indexed: Count
    spans_exported: Count
    spans_failed: Count
    spans_dropped: Count
    steps: Annotated[dict[str, int], Meta(description="Messages by what happened to them, since the start")]


class WherePath(Query):
    topic: TopicName
    partition: PartitionNumber
    offset: Offset


class WhereKeyPath(Query):
    topic: TopicName


class WhereKeyQuery(Query):
    key: str


class GroupState(Reply):
    group: str
    kind: Annotated[str, Meta(description="queue or stream")]
    state: str
    answer: str
    lane: str | UnsetType = UNSET
    attempts: Count | UnsetType = UNSET
    consumer: str | UnsetType = UNSET
    until: str | UnsetType = UNSET
    behind_offset: Count | UnsetType = UNSET
    ahead: Count | UnsetType = UNSET
    committed_offset: Count | UnsetType = UNSET


class Where(Reply):
    """Where a message is, and why it is not delivered yet."""

    topic: str
    partition: int
    offset: int
    first_offset: Annotated[int, Meta(ge=0, description="Of a delayed message: its name until it was due")]
    trace_id: str
    state: str
    answer: Annotated[str, Meta(examples=["workers: leased by w3 for 12 s more, attempt 1"])]
    groups: list[GroupState]
    events: list[TraceEvent]
    node: Annotated[str, Meta(description="Which leads the partition of the message", examples=["node-1"])]
    traceparent: str | UnsetType = UNSET
    timestamp: str | UnsetType = UNSET
    key: str | UnsetType | None = UNSET

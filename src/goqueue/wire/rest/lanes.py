"""Lanes: how much of each priority is ready, leased, and on its way."""

from typing import Annotated

from msgspec import Meta

from goqueue.wire.rest.common import Count, GroupId, Query, Reply

ByLane = Annotated[list[int], Meta(description="critical, high, normal, low, background", min_length=5, max_length=5)]
Wait = Annotated[str | None, Meta(description="null: nobody is being served", examples=["1.5s"])]


class LanesQuery(Query):
    group: GroupId


class LaneReply(Reply):
    lane: Annotated[str, Meta(examples=["high"])]
    ready: Count
    in_flight: Count
    enqueue_rate: Annotated[float, Meta(ge=0, description="Messages a second, since the last look")]
    dequeue_rate: Annotated[float, Meta(ge=0, description="Messages a second, since the last look")]
    oldest_ready_ms: Annotated[int | None, Meta(description="Age of the oldest that is ready; null: none is")]


class PartitionLanes(Reply):
    partition: int
    lanes: list[LaneReply]


class TopicLanes(Reply):
    topic: str
    group: str
    lanes: Annotated[list[LaneReply], Meta(description="Of all partitions together")]
    partitions: list[PartitionLanes]


class PartitionPriority(Reply):
    pending: Annotated[ByLane, Meta(description="Ready, of all groups together")]
    consumed: Annotated[ByLane, Meta(description="Delivered since the start, of all groups together")]
    total: Annotated[ByLane, Meta(description="Arrived since the start, as the group saw it that saw most")]
    oldest_pending: Annotated[
        list[int | None], Meta(description="Age in milliseconds of the oldest that is ready; null: none is")
    ]


class TopicPriority(Reply):
    total_by_priority: ByLane
    partitions: dict[str, PartitionPriority]


class PriorityStats(Reply):
    """What queue groups see. Counted since the start of the node."""

    total_by_priority: ByLane
    messages_by_priority: dict[str, int]
    avg_wait_time_by_priority: Annotated[
        dict[str, Wait], Meta(description="An estimate: what is ready, at the rate at which it is served now")
    ]
    topics: dict[str, TopicPriority]

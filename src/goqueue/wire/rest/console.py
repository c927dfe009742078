"""What the console shows, told as what has changed since a page last asked."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Query, Reply
from goqueue.wire.rest.infrastructure import Check

SINCE_PATTERN = r"^([0-9]{1,10}:[0-9]{1,16}(,(?=[0-9])|\Z)){0,1000}\Z"


class ReadingQuery(Query):
    since: Annotated[
        str,
        Meta(
            pattern=SINCE_PATTERN,
            max_length=30_000,
            description="`NODE:CURSOR` of what was told last, of each node, with commas between; absent: tell all",
            examples=["1:1763460000000"],
        ),
    ] = ""


class TopicReading(Reply):
    """Of the partitions that the node leads."""

    partitions: Annotated[int, Meta(ge=0, description="Of the whole topic")]
    messages: Annotated[int, Meta(ge=0, description="Counted by offsets")]
    published: Annotated[int, Meta(ge=0, description="Offsets that were given so far")]
    size_bytes: Annotated[int, Meta(ge=0, description="On disk")]
    delivered: Annotated[int, Meta(ge=0, description="Leased or fetched since the start of the node")]
    delayed: Annotated[int, Meta(ge=0, description="Messages that wait for their time")]
    dead: Annotated[int, Meta(ge=0, description="Of a topic of dead letters: that nobody has dealt with")]
    paused: Annotated[bool, Meta(description="Queue groups are given nothing of it")]


class GroupTopicReading(Reply):
    ready: Annotated[int, Meta(ge=0, description="To be delivered now")]
    in_flight: Annotated[int, Meta(ge=0, description="Held by consumers")]
    waiting: Annotated[int, Meta(ge=0, description="For a retry, or for an earlier message of their key")]
    lag: Annotated[int, Meta(ge=0, description="Offsets between what is done and the end")]
    served: Annotated[int, Meta(ge=0, description="Leased since the start of the node")]


class GroupReading(Reply):
    type: Annotated[str, Meta(description="consumer, classic or share", examples=["share"])]
    state: Annotated[str, Meta(description="Empty, Stable, Rebalancing or Dead", examples=["Stable"])]
    members: Annotated[int, Meta(ge=0, description="How many")]
    paused: Annotated[bool, Meta(description="Nothing is delivered to it")]
    topics: dict[str, GroupTopicReading]


class NodeReading(Reply):
    cursor: Annotated[int, Meta(ge=0, description="To be sent as `since` with the next question")]
    at: Annotated[int, Meta(ge=0, description="When it was read, in milliseconds since 1970")]
    whole: Annotated[bool, Meta(description="All that there is, and not only what has changed")]
    topics: dict[str, TopicReading]
    groups: dict[str, GroupReading]
    gone_topics: Annotated[list[str], Meta(description="That were told before and are not there any more")]
    gone_groups: Annotated[list[str], Meta(description="Likewise")]
    checks: dict[str, Check] | UnsetType = UNSET
    """What is not as it should be; for those who may see all topics."""


class ConsoleReading(Reply):
    version: str
    cluster_id: str
    node_id: Annotated[int, Meta(description="Of the node that was asked")]
    console: Annotated[str, Meta(description="on, or read-only")]
    nodes: Annotated[dict[str, NodeReading], Meta(description="By node id")]

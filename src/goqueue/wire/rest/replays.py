"""Reading again: seek, replay, forks."""

from typing import Annotated

from msgspec import Meta, field

from goqueue.wire.rest.common import Body, Count, GroupId, PartitionNumber, Query, Reply, TopicName
from goqueue.wire.rest.dead_letters import Filter, Rate

PARTITIONS_MAX = 10_000

PlaceInLog = Annotated[
    str | int,
    Meta(
        description="`earliest`, `latest`, an offset (a number) or a time (a text: RFC 3339, `-1h`, `now`)",
        examples=["-1h"],
    ),
]
SomePartitions = Annotated[
    list[PartitionNumber], Meta(min_length=1, max_length=PARTITIONS_MAX, description="Absent: all of the topic")
]


class ReplayGroupPath(Query):
    group: GroupId


class Replay(Body):
    topic: TopicName
    start: PlaceInLog = field(name="from")
    stop: PlaceInLog = field(default="latest", name="to")
    """Not included."""
    filter: Filter | None = None
    rate: Rate = 0
    dry_run: bool = False
    fork_as: GroupId | None = None
    """Replay into a copy of the group under this name; the group itself stays as it is."""
    partitions: SomePartitions | None = None


class ReplayedPartition(Reply):
    partition: int
    from_offset: int
    to_offset: int
    messages: Annotated[int, Meta(ge=0, description="That are delivered again; of a dry run: that would be")]


class ReplayReply(Reply):
    group: Annotated[str, Meta(description="Who gets them: the group, or its fork")]
    topic: str
    dry_run: bool
    messages: Count
    partitions: list[ReplayedPartition]


class SeekGroup(Body):
    topic: TopicName
    to: PlaceInLog
    partitions: SomePartitions | None = None
    dry_run: bool = False
    mode: (
        Annotated[
            str, Meta(pattern=r"^(queue|stream)\Z", description="Absent: whatever this group is", examples=["queue"])
        ]
        | None
    ) = None
    live: bool = False
    """Of a stream group that has members: turn them out, and let them begin there when they come back."""


class MovedPartition(Reply):
    partition: int
    before: Annotated[int, Meta(ge=-1, description="-1: the group was never there")]
    after: Count


class SeekReply(Reply):
    group: str
    topic: str
    mode: Annotated[str, Meta(description="queue or stream")]
    dry_run: bool
    partitions: list[MovedPartition]


class Fork(Body):
    name: GroupId


class ForkReply(Reply):
    forked: bool
    group: str
    fork: str


class ForksQuery(Query):
    limit: Annotated[int, Meta(ge=1, le=1000, description="Forks of one page")] = 1000
    cursor: Annotated[str, Meta(description="`next` of the page before: the last name on it")] | None = None


class ForkSummary(Reply):
    fork: str
    only_group: Annotated[int, Meta(ge=0, description="Offsets that the group has settled and the fork has not")]
    only_fork: Annotated[int, Meta(ge=0, description="Offsets that the fork has settled and the group has not")]


class Forks(Reply):
    group: str
    forks: Annotated[list[ForkSummary], Meta(description="By name")]
    next: Annotated[str | None, Meta(description="`cursor` of the next page; null: this was the last")]


class CompareQuery(Query):
    other: GroupId = field(name="with")


OffsetRange = Annotated[list[int], Meta(min_length=2, max_length=2, description="First and last offset")]


class DifferenceReply(Reply):
    topic: str
    partition: int
    only_group: Annotated[list[OffsetRange], Meta(description="Settled by the group only")]
    only_with: Annotated[list[OffsetRange], Meta(description="Settled by the other one only")]


class Comparison(Reply):
    group: str
    compared_with: str = field(name="with")
    is_equal: bool
    differences: list[DifferenceReply]


class Promote(Body):
    fork: GroupId


class PromoteReply(Reply):
    promoted: bool
    group: str
    fork: str


class ForkPath(Query):
    group: GroupId
    fork: GroupId


class ForkDropped(Reply):
    deleted: bool
    group: str
    fork: str

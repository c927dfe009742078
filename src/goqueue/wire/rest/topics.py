"""Topics: made, looked at, configured, deleted."""

from typing import Annotated

from msgspec import Meta

from goqueue.wire.rest.common import INT32_MAX, Body, Count, PartitionNumber, Query, Reply, TopicName

PARTITIONS_MAX = 10_000
OptionName = Annotated[str, Meta(examples=["lease.ms"])]


class NewTopic(Body):
    name: TopicName
    num_partitions: Annotated[int, Meta(ge=-1, le=PARTITIONS_MAX, description="Absent or 0: the node's default")] | (
        None
    ) = None
    retention_hours: Annotated[int, Meta(ge=-1, le=INT32_MAX, description="Absent or 0: the node's default")] | None = (
        None
    )
    options: dict[OptionName, str | int] | None = None
    """Topic options by name, as docs/queue.md and docs/kafka.md list them."""


class TopicCreated(Reply):
    name: str
    partitions: int
    created: bool


class TopicNames(Reply):
    topics: list[str]


class TopicPath(Query):
    topic: TopicName


class PartitionOffsets(Reply):
    earliest: Count
    latest: Annotated[int, Meta(ge=-1, description="Of the last record; -1: there never was one")]
    next: Annotated[int, Meta(ge=0, description="The offset that the next record will get")]


class TopicDetails(Reply):
    name: str
    id: str
    partitions: int
    total_messages: Count
    total_size_bytes: Count
    partition_offsets: dict[str, PartitionOffsets]
    options: Annotated[dict[str, str], Meta(description="What was set")]


class TopicChange(Body):
    options: dict[OptionName, str | int | None]
    """By name; null takes an option back to its default."""


class Trim(Body):
    before: Annotated[
        str | int,
        Meta(
            description="What is older goes: `latest` (all of it), an offset (a number) or a time (RFC 3339, `-24h`)",
            examples=["-24h"],
        ),
    ]
    partition: PartitionNumber | None = None
    """Absent: all of them."""
    dry_run: bool = False
    """Only tell what would go."""


class TrimmedPartition(Reply):
    partition: Annotated[int, Meta(description="The number of the partition")]
    before: Annotated[int, Meta(ge=0, description="Its oldest offset until now")]
    after: Annotated[int, Meta(ge=0, description="Its oldest offset from now on")]


class Trimmed(Reply):
    topic: Annotated[str, Meta(description="The name of the topic")]
    dry_run: Annotated[bool, Meta(description="Nothing was changed")]
    partitions: Annotated[list[TrimmedPartition], Meta(description="Where each partition begins")]


class TopicDeleted(Reply):
    deleted: bool
    name: str


class Partition(Reply):
    partition: int
    leader: str
    replicas: list[str]
    isr: list[str]
    version: int


class Partitions(Reply):
    topic: str
    partitions: list[Partition]

"""How far groups are behind, in numbers."""

from typing import NamedTuple, TypeAlias

Rates: TypeAlias = tuple[float, ...]


class QueueLag(NamedTuple):
    """What a group has still to do in one partition."""

    ready: tuple[int, int, int, int, int]
    """By lane, as `leased`."""
    leased: tuple[int, int, int, int, int]
    waiting: int
    """For the end of a delay, or for an earlier record of their key."""
    dying: int
    """On their way to the dead letters."""
    replaying: int
    beyond: int
    """Offsets that the group has not looked at yet: it looks only so far ahead."""
    oldest_age_ms: int | None
    """Of the first record that is not settled; None: all are."""


class Owner(NamedTuple):
    """The member that a partition is assigned to."""

    member_id: str
    client_id: str
    client_host: str


class PartitionLag(NamedTuple):
    topic: str
    partition: int
    committed: int | None
    """The offset that the group goes on from; None: it has committed none."""
    end: int | None
    """The high watermark; None: the partition is out of service."""
    lag: int | None
    """What is there to be read, as far as that can be told: from the committed offset or the one below which all is
    settled, or from the start of the log if there is none or the records before it are gone."""
    owner: Owner | None
    """None: nobody's, or that cannot be told, as while a classic group rebalances."""
    settled: int | None = None
    """Where the group reads as a queue: all below it is settled."""
    queue: QueueLag | None = None


class GroupLag(NamedTuple):
    group_id: str
    type: str
    state: str
    partitions: tuple[PartitionLag, ...]
    """Those with a commit or an owner, or read as a queue, by topic and number."""

    @property
    def lag(self) -> int:
        return sum(one.lag or 0 for one in self.partitions)


class LaneStats(NamedTuple):
    """One partition of one group, lane by lane, the most urgent first."""

    ready: tuple[int, ...]
    in_flight: tuple[int, ...]
    enqueue_rate: Rates
    """Messages a second since the last look."""
    dequeue_rate: Rates

"""What a replica is for one epoch: the leader, who takes writes, or a follower, who copies. A role is made for its
epoch and never changed; whatever was begun under an older one finds nobody.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from goqueue.machines.partitions.replication import LeaderView, Verdict
from goqueue.replica.waiting import Waiters

HEARD_MS = 10_000
"""A follower that was heard of so recently counts for writes that need an acknowledgement of all."""
MYSELF = 0
"""The only node, where nobody says which one it is."""


class Reign(NamedTuple):
    """Who leads a partition, as the metadata says."""

    epoch: int
    me: int = MYSELF
    isr: Iterable[int] = (MYSELF,)
    replicas: int = 1
    """How many copies there are to be."""
    revision: int = 0
    """Of the metadata that says so."""
    is_given: bool = False
    """The epoch was settled by a cluster, and is never another. On one node a log may know of a later one."""


class Fetched(NamedTuple):
    """What a follower's fetch says of its copy."""

    follower: int
    incarnation: int
    epoch: int
    """Of the leader, as the follower knows it."""
    offset: int
    """Where its log ends, and all below is synced there."""
    last_epoch: int
    """Of the last batch in its log."""
    told_bound: int
    """Of tombstones, when it began anew."""
    sent_ms: int
    """Not before this, on the monotonic clock of the leader."""


class Hearing(Protocol):
    """A follower that tells of many copies at once, and only of those that have changed."""

    @property
    def sent_ms(self) -> int:
        """Of its last fetch, whether that named this copy or not."""

    @property
    def last(self) -> Fetched:
        """What it said last of this copy; with each of its fetches it says the same again, later."""


class Hearer(Protocol):
    def heard(self, fetched: Fetched, monotonic_ms: int, /) -> Verdict: ...


class Leading:
    is_leader = True

    def __init__(self, reign: Reign, minimum: int, high_watermark: int, end_offset: int) -> None:
        self.epoch = reign.epoch
        self.start_offset = end_offset
        """Where its reign begins: below it stands what earlier leaders wrote."""
        self.replicas = reign.replicas
        # A topic may ask for more in-sync replicas than it has. Acknowledged writes are refused there; the others are
        # shown once all copies have them.
        self.view = LeaderView(reign.me, reign.epoch, reign.isr, min(minimum, reign.replicas), high_watermark)
        self.view.revision = reign.revision
        self.waiters = Waiters()
        self.storing = Waiters()
        """Who waits for its own log alone."""
        self.began_ms: int | None = None
        """When somebody first looked who is heard of."""
        self.hears: dict[int, Hearing] = {}
        """Followers of this reign, by their ids."""

        self.starts: dict[int, int] = {}
        """Where their copies begin."""
        self._looked_ends = -1, -1
        """Where the log ended at the last look but one, and at the last."""
        self.start_waiters: list[Callable[[], None]] = []

    def look_at_end(self, end_offset: int) -> None:
        """To be called now and then."""
        self._looked_ends = self._looked_ends[1], end_offset

    def is_busy(self, end_offset: int) -> bool:
        """Something was appended lately, or nobody has looked for long enough to know."""
        return self._looked_ends[0] != end_offset

    def has_told_start(self, start_offset: int) -> bool:
        """All in-sync replicas begin there, or later."""
        view = self.view
        return all(self.starts.get(one, -1) >= start_offset for one in view.isr if one != view.me)

    def heard_lately(self, monotonic_ms: int) -> int:
        """How many in-sync followers were. A reign that has just begun may not have heard of anybody."""
        noted = [self.view.noted(one) for one in self.view.isr if one != self.view.me]
        heard_ms = [one.sent_ms if one is not None else self.began_ms for one in noted]
        return sum(1 for at_ms in heard_ms if at_ms is not None and monotonic_ms - at_ms <= HEARD_MS)

    def hear_again(self, hearer: Hearer, monotonic_ms: int) -> None:
        """A fetch speaks also for the copies that it does not name. That is noted when somebody asks for it, since
        there are many copies and many fetches."""
        for follower, hearing in list(self.hears.items()):
            noted = self.view.noted(follower)
            if noted is not None and noted.sent_ms < hearing.sent_ms and noted.offset == (last := hearing.last).offset:
                hearer.heard(last, monotonic_ms)


class Following:
    is_leader = False

    def __init__(self, epoch: int, leader: int) -> None:
        self.epoch = epoch
        self.leader = leader
        self.waiters = Waiters()
        self.on_synced: Callable[[], None] | None = None
        """Called when more of the log is on the disk, or it failed."""


Role = Leading | Following

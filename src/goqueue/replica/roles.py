"""What a replica is for one epoch: the leader, who takes writes, or a follower, who copies. A role is made for its
epoch and never changed; whatever was begun under an older one finds nobody.
"""

from collections.abc import Iterable
from typing import NamedTuple

from goqueue.machines.partitions.replication import LeaderView
from goqueue.replica.waiting import Waiters

MYSELF = 0
"""The only node, where nobody says which one it is."""


class Reign(NamedTuple):
    """Who leads a partition, as the metadata says."""

    epoch: int
    me: int = MYSELF
    isr: Iterable[int] = (MYSELF,)
    replicas: int = 1
    """How many copies there are to be."""


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
        self.waiters = Waiters()


class Following:
    is_leader = False

    def __init__(self, epoch: int, leader: int) -> None:
        self.epoch = epoch
        self.leader = leader
        self.waiters = Waiters()


Role = Leading | Following

"""The copies of this node by the ids that nodes name them by: topics and ledgers by their own, companions of a
partition by one that is derived from its topic's.
"""

from typing import NamedTuple

from goqueue.model.errors import GoQueueError, LogClosed
from goqueue.replica.companion_names import FOLLOWING, KINDS, CompanionName
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.replica.roles import Leading, Reign
from goqueue.runtime.clock import Clock
from goqueue.telemetry.logs import get_logger

events = get_logger("replication")


Place = tuple[str, int]
"""Topic and partition."""


class CopyId(NamedTuple):
    topic_id: bytes
    partition: int


def id_of(replica: Replica) -> CopyId:
    """By which nodes name it."""
    name, partition = replica.place
    companion = CompanionName.parse(name, partition)
    return CopyId(replica.log.state.topic_id if companion is None else companion.id, partition)


def take_role_of(host: Replica, companion: Replica) -> bool:
    """A companion is led by whoever leads its partition, in the same epoch. False: it was so already."""
    role = host.role
    if companion.leader_epoch >= role.epoch:
        return False
    if isinstance(role, Leading):
        companion.lead(Reign(role.epoch, role.view.me, role.view.isr, role.replicas, is_given=True))
        companion.copy_isr(host)
    else:
        companion.follow(role.epoch, role.leader)
    return True


class Copies:
    def __init__(self, replicas: Replicas, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self._hosts: dict[CopyId, Replica] = {}
        self._companions: dict[CopyId, CompanionName] = {}
        """Those that there may be, of the hosts here."""
        self._places: dict[Place, Replica] = {}
        """The hosts by topic and partition."""
        self._names: dict[Replica, tuple[tuple[int, CompanionName], ...]] = {}
        """The same by host, each with its bit in `gq_companions`: every answer to a follower asks for them."""

    def add(self, replica: Replica) -> None:
        """A copy of a topic or a ledger was opened, or has another role."""
        host = id_of(replica)
        before = self._hosts.get(host)
        if before is replica:
            return
        if before is not None:
            del self._names[before]
        self._hosts[host] = self._places[replica.place] = replica
        names = [CompanionName(kind, *host) for kind in KINDS]
        self._names[replica] = tuple((1 << number, name) for number, name in enumerate(names))
        for name in names:
            self._companions[CopyId(name.id, host.partition)] = name

    def hosts(self) -> list[Replica]:
        """Of topics and ledgers, not those that were deleted."""
        for gone in [copy for copy, replica in self._hosts.items() if isinstance(replica.log.failure, LogClosed)]:
            self._forget(gone)
        return list(self._hosts.values())

    def at(self, place: Place) -> Replica | None:
        """The copy of this partition."""
        found = self._places.get(place)
        return None if found is None or isinstance(found.log.failure, LogClosed) else found

    def _forget(self, host: CopyId) -> None:
        gone = self._hosts.pop(host)
        if self._places.get(gone.place) is gone:
            del self._places[gone.place]
        for _, name in self._names.pop(gone):
            self._companions.pop(CopyId(name.id, host.partition), None)

    def find(self, copy: CopyId) -> Replica | None:
        found = self._hosts.get(copy)
        if found is None:
            name = self._companions.get(copy)
            return None if name is None else self._replicas.companions.find(name)
        return None if isinstance(found.log.failure, LogClosed) else found

    def host_of(self, copy: CopyId) -> Replica | None:
        """The partition that a copy belongs to: itself, if it is no companion."""
        name = self._companions.get(copy)
        return self._hosts.get(copy if name is None else CopyId(name.topic_id, name.partition))

    def companions_of(self, host: Replica) -> list[Replica]:
        """Those that are open."""
        return [replica for _, replica in self.kinds_of(host)]

    def kinds_of(self, host: Replica) -> list[tuple[int, Replica]]:
        """The same, each with its bit in `gq_companions`. A companion has none."""
        find = self._replicas.companions.find
        return [(bit, found) for bit, name in self._names.get(host, ()) if (found := find(name)) is not None]

    def make_companions(self, host: Replica, mask: int) -> list[Replica]:
        """Those that the leader has, opened or made, in the role of their host. Of one that cannot be opened it is
        told, and the next answer tries again."""
        topic_id, partition = id_of(host)
        made = []
        for number, kind in enumerate(KINDS):
            if not mask & 1 << number:
                continue
            durability = host.options.durability if kind in FOLLOWING else "disk"
            try:
                replica = self._replicas.companion(kind, topic_id, partition, durability, self._clock.now_ms())
            except GoQueueError as error:
                events.error("companion not opened", copy=host.name, kind=kind, reason=str(error))
                continue
            take_role_of(host, replica)
            made.append(replica)
        return made

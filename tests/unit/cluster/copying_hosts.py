"""Nodes that are copies of partitions and all that brings records from one to the other, in a simulation. A test plays
the metadata: it says who leads.
"""

from collections.abc import Iterable

from goqueue.cluster.copies import Copies, id_of
from goqueue.cluster.leader_link import Myself
from goqueue.cluster.leader_links import LeaderLinks
from goqueue.cluster.replica_fetch import ReplicaFetches
from goqueue.cluster.throttle import Throttle
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.topics import Topic, TopicOptions
from goqueue.records.batch import check_batch
from goqueue.records.decode import decode
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replica import Appended, Replica
from goqueue.replica.replicas import Replicas, Seat
from goqueue.replica.roles import Leading
from goqueue.storage.data_directory import DataDirectory
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.memory_node import PromptCommitter
from goqueue.testing.simulation import Simulation
from goqueue.wire.kafka.peering import FETCH
from tests.brokers import TOPIC_ID, data
from tests.unit.cluster.peer_hosts import Host, VirtualTime

RATE = 50_000_000


class CopyingHost(Host):
    def __init__(
        self,
        sim: Simulation,
        node_id: int,
        book: dict[int, NodeInfo],
        disk: MemoryDisk | None = None,
        start: int = 1,
        sync_ms: int = 1,
    ) -> None:
        super().__init__(sim, node_id, book, start=start)
        self.disk = disk or MemoryDisk()
        self._incarnation = start
        self._sync_ms = sync_ms
        self.candidates: list[tuple[str, int]] = []

    async def start(self) -> "CopyingHost":
        await super().start()
        await self.process.spawn(self._open())
        return self

    async def _open(self) -> None:
        clock = VirtualTime()
        self.book[self.node_id] = self.book[self.node_id]._replace(incarnation=self._incarnation)
        committer = PromptCommitter(clock)
        committer.sync_ms = self._sync_ms
        self.replicas = Replicas(
            DataDirectory.open(self.disk, committer=committer),
            defaults=TopicOptions(),
            disk_reserve_bytes=0,
            sync_interval_ms=1000,
            defer=committer.after_telling(clock.call_soon),
        )
        self.replicas.seat = Seat(self.node_id, self._incarnation)
        self.copies = Copies(self.replicas, clock)
        self.fetches = ReplicaFetches(self.copies, self.book.get, clock)
        self.fetches.on_candidate = lambda replica, follower: self.candidates.append((replica.name, follower))
        self.door.handlers[FETCH] = self.fetches.handle
        me = Myself(self.node_id, self._incarnation)
        self.links = LeaderLinks(
            self.peers.way, lambda: me, self.copies, clock, Throttle(RATE), lambda replica: self.in_sync
        )
        self.in_sync = True
        self.replicas.on_role.append(self._role_changed)

    def _role_changed(self, replica: Replica) -> None:
        self.links.role_changed(replica)
        if CompanionName.parse(*replica.place) is None:
            self.replicas.host_changed(replica, 1000)
        elif replica.role.is_leader:
            host = self.copies.host_of(id_of(replica))
            assert host is not None
            replica.copy_isr(host)
            self.fetches.companion_made(host)

    async def companion(self, kind: str = "deliveries") -> Replica:
        """Made, if there is none."""

        async def made() -> Replica:
            return self.replicas.companion(kind, TOPIC_ID, 0, "disk", 1000)

        return await self.process.spawn(made())

    def found(self, kind: str = "deliveries") -> Replica | None:
        return self.replicas.companions.find(CompanionName(kind, TOPIC_ID, 0))

    async def open(self, topic: Topic) -> None:
        async def opened() -> None:
            for number in self.replicas.placed(topic):
                self.replicas.open(topic, number, 1000)
            self.replicas.take_roles(topic)

        await self.process.spawn(opened())

    def replica(self, partition: int = 0, topic: str = "orders") -> Replica:
        found = self.replicas.get(topic, partition)
        assert found is not None
        return found

    async def append(self, *values: bytes, partition: int = 0) -> Appended:
        async def appended() -> Appended:
            return self.replica(partition).append(check_batch(data(*values)), 1000)

        return await self.process.spawn(appended())

    def kill(self) -> None:
        self.process.kill()
        self.disk.survive_as_kill()

    def values(self, partition: int = 0) -> list[bytes | None]:
        replica = self.replica(partition)
        return [one.value for each in replica.batches_from(replica.start_offset) for one in decode(each)]

    def noted(self, follower: int, partition: int = 0) -> int:
        role = self.replica(partition).role
        assert isinstance(role, Leading)
        noted = role.view.noted(follower)
        return -1 if noted is None else noted.offset


def placed(
    book: dict[int, NodeInfo],
    leader: int,
    epoch: int,
    isr: Iterable[int],
    replicas: Iterable[int],
    partitions: int = 1,
    **overrides: str,
) -> Topic:
    """The topic `orders`, all partitions alike."""
    incarnation = book[leader].incarnation if leader in book else 0
    placement = Placement(leader, incarnation, epoch, tuple(isr), tuple(replicas), revision=epoch + 1)
    options = {name.replace("_", "."): text for name, text in overrides.items()}
    return Topic("orders", TOPIC_ID, partitions, options, (placement,) * partitions)

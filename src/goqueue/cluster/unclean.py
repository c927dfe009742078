"""A copy leads that is not in sync, because none that is will come back: what was acknowledged and is not in it is
lost, and the placement says so from then on. An operator wants it, or the topic does: then the steward chooses the copy
that has most, after a while.
"""

from collections.abc import Callable, Iterator

from goqueue.cluster.controller import ClusterController
from goqueue.cluster.copy_states import CopyStates
from goqueue.cluster.elections import Standing, partition_of
from goqueue.machines.cluster.election import Partition, elect_unclean, has_leader
from goqueue.machines.cluster.recovery import Held, best
from goqueue.machines.cluster.steward import UNCLEAN_AFTER_MS, is_steward, standing_without_isr
from goqueue.model.errors import GoQueueError
from goqueue.model.kept_options import UNCLEAN_ELECTIONS, allows_unclean
from goqueue.model.metadata import ClusterKey, Committed, Conflict, PartitionKey
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.placements import Lost
from goqueue.model.topics import Image, minimum_in_sync
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")

OnStood = Callable[[int | str], None]
"""The offset from which on records may be gone; or why it was not done."""
LOOK_MS = 5000
BY_STEWARD = f"{UNCLEAN_ELECTIONS}: no replica in sync was alive for {UNCLEAN_AFTER_MS // 1000} s"


class UncleanElections:
    def __init__(
        self,
        controller: ClusterController,
        image: Callable[[], Image],
        replicas: Replicas,
        standing: Standing,
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._image = image
        self._replicas = replicas
        self._standing = standing
        self._clock = clock

    def lead(self, topic: str, number: int, why: str, on_done: OnStood) -> None:
        """This node's copy of a partition, if it has one and nobody in sync is alive."""
        image, seat = self._image(), self._replicas.seat
        replica = self._replicas.get(topic, number)
        if topic.startswith(LEDGER_PREFIX) or replica is None or seat is None or seat.node_id not in image.nodes:
            on_done("this node has no copy of it in service; ask one that has, see goqueue cluster partitions")
            return
        if self._controller.mirror.cluster.halted:
            on_done("all is halted, since etcd was restored from a backup: see goqueue cluster recover")
            return
        placement = image.placement(topic, number)
        if has_leader(placement, image.nodes):
            on_done(f"node {placement.leader} leads it")
            return
        if seat.node_id not in standing_without_isr(placement, image.nodes):
            on_done("a replica in sync is alive and will lead it: nothing need be lost")
            return
        offset = replica.log.end_offset
        self._standing.withdraw(replica)
        lost = Lost(self._clock.now_ms(), seat.node_id, offset, why)
        cluster = self._controller.mirror.revision_of(ClusterKey())
        step = elect_unclean(partition_of(image, replica), image.nodes, seat.node_id, cluster, lost)

        def done(outcome: Committed | Conflict | GoQueueError) -> None:
            if isinstance(outcome, Committed):
                events.warning("unclean election", copy=replica.name, leader=seat.node_id, offset=offset, reason=why)
                on_done(offset)
            elif isinstance(outcome, Conflict):
                on_done("something has changed meanwhile; look again")
            else:
                on_done(f"etcd has not answered, so it may have been done or not: {outcome}")

        self._controller.txn(step, done)


class UncleanSteward:
    """For topics that allow it, never for ledgers. `start` when the node serves."""

    def __init__(
        self, controller: ClusterController, image: Callable[[], Image], states: CopyStates, node_id: int, clock: Clock
    ) -> None:
        self._controller = controller
        self._image = image
        self._states = states
        self._node_id = node_id
        self._clock = clock
        self._since_s: dict[PartitionKey, float] = {}
        """Since when this node has known of nobody in sync that is alive."""
        self._timer: Timer | None = None

    def start(self) -> None:
        self._timer = self._clock.call_after(LOOK_MS, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._clock.call_after(LOOK_MS, self._look)
        now_s = self._clock.monotonic_s()
        stuck = {partition.key: partition for partition in self._stuck(self._image())}
        self._since_s = {key: self._since_s.get(key, now_s) for key in stuck}
        due = [stuck[key] for key, at_s in self._since_s.items() if (now_s - at_s) * 1000 >= UNCLEAN_AFTER_MS]
        if due and is_steward(self._image().nodes, self._node_id):
            self._states.ask(lambda held: self._choose(due, held))

    def _stuck(self, image: Image) -> Iterator[Partition]:
        if self._controller.mirror.cluster.halted:
            return
        for topic in image.topics.values():
            if not allows_unclean(topic.overrides):
                continue
            least = minimum_in_sync(topic.overrides, topic.replication_factor)
            for number, placement in enumerate(topic.placements):
                if standing_without_isr(placement, image.nodes) and not has_leader(placement, image.nodes):
                    yield Partition(PartitionKey(topic.id, number), placement, least)

    def _choose(self, due: list[Partition], held: Held) -> None:
        """The step compares that all is as it was when it was looked at; the chosen one follows nobody, since nobody
        leads."""
        nodes, revision = self._image().nodes, self._controller.mirror.revision_of(ClusterKey())
        for partition in due:
            copies = {node_id: found[partition.key] for node_id, found in held.items() if partition.key in found}
            chosen = best(copies, standing_without_isr(partition.placement, nodes))
            if chosen is None:
                continue
            lost = Lost(self._clock.now_ms(), chosen, copies[chosen].end, BY_STEWARD)
            step = elect_unclean(partition, nodes, chosen, revision, lost)
            events.warning("unclean election", topic_id=partition.key.topic_id.hex(), leader=chosen, offset=lost.offset)
            self._controller.txn(step, lambda outcome: None)  # if it fails: looked at again

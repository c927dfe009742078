"""What must hold in every run, whatever happens: looked at after every step of every node, and after every change in
etcd."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from goqueue.cluster.etcd.codec import decode_entry
from goqueue.cluster.etcd.keys import key_path
from goqueue.cluster.etcd.port import KeyValue
from goqueue.machines.partitions.producer_state import ProducerStates
from goqueue.model.metadata import LiveKey
from goqueue.model.placements import NodeInfo, Placement
from goqueue.records.decode import decode
from goqueue.replica.reads import batches_from
from goqueue.replica.roles import Leading
from goqueue.storage.log import Log

if TYPE_CHECKING:
    from tests.sim.cluster.sim_node import SimNode
    from tests.sim.cluster.world import World

PREFIX = "/goqueue/sim/"
STALE_MS_MAX = 4000 * 2 / 3 / 0.9 + 250
"""A session counts for two thirds of its TTL, on a clock that may be slow, and a message takes its time."""


class Violation(AssertionError):
    """A promise was broken."""


def values(log: Log, start: int, end: int) -> list[bytes | None]:
    """Of the records from `start` on, below `end`."""
    found = [record for batch in batches_from(log, start) for record in decode(batch) if start <= record.offset < end]
    return [record.value for record in found]


class Checker:
    def __init__(self, world: "World") -> None:
        self._world = world
        self.placement: Placement | None = None
        """As etcd has it, whatever the nodes know."""
        self.committed: list[bytes | None] = []
        self.committed_ms: list[float] = []
        self.leaders: dict[int, tuple[int, int]] = {}
        """Node and incarnation, by epoch."""
        self.acknowledged = 0
        self.elections = 0
        self.stale_ms_max = 0.0

    def fail(self, what: str) -> None:
        raise Violation(f"seed {self._world.seed} at {self._world.ms:.0f} ms: {what}")

    # -- etcd

    def on_change(self, _revision: int, entries: Sequence[KeyValue]) -> None:
        for entry in entries:
            event = decode_entry(PREFIX, entry)
            if event is not None and isinstance(event.value, Placement):
                self._placed(event.value)

    def _placed(self, new: Placement) -> None:
        old, self.placement = self.placement, new
        if old is None:
            return
        if new.epoch < old.epoch:
            self.fail(f"the epoch fell from {old.epoch} to {new.epoch}")
        if len(new.isr) < min(self._world.minimum, len(old.isr)):
            self.fail(f"the ISR shrank from {old.isr} to {new.isr}, the floor is {self._world.minimum}")
        if new.epoch == old.epoch and (new.leader, new.incarnation) != (old.leader, old.incarnation):
            self.fail(f"epoch {new.epoch} has two leaders: {old} and {new}")
        if not set(new.isr) <= set(new.replicas):
            self.fail(f"{new.isr} are in sync, but the replicas are {new.replicas}")
        self.elections += new.epoch > old.epoch
        for node_id in new.isr:
            if node_id not in old.isr:
                self._check_joined(self._world.nodes[node_id])
        left = set(old.replicas) - set(new.replicas) - set(old.adding)
        if left and not set(old.adding) <= set(new.isr):
            self.fail(f"{left} left before {old.adding} were in sync")

    def _check_joined(self, node: "SimNode") -> None:
        if node.is_wiped and self._session_of(node) <= node.wiped_in:
            return  # as if it had lost its disk right after
        node.is_wiped = False
        if node.synced_end < len(self.committed):
            self.fail(
                f"node {node.node_id} came into the ISR with {node.synced_end} of {len(self.committed)} committed"
            )

    def _session_of(self, node: "SimNode") -> int:
        """In which life the node got the session that etcd has of it; 0: it has none."""
        entry = self._world.etcd.keys.get((PREFIX + key_path(LiveKey(node.node_id))).encode())
        event = decode_entry(PREFIX, entry) if entry is not None else None
        return event.value.started_ms if event is not None and isinstance(event.value, NodeInfo) else 0

    # -- nodes

    def look(self, node: "SimNode") -> None:
        """After each step of a node."""
        life = node.life
        replica = life.replica if life is not None else None
        if life is None or replica is None:
            return
        role = replica.role
        if not isinstance(role, Leading):
            life.seen_role = None
            return
        if life.seen_role is not role:
            life.seen_role = role
            life.seen_watermark = 0
            self._check_reign(node, role)
        if replica.high_watermark > life.seen_watermark:
            self._check_watermark(node, role, life.seen_watermark)
            life.seen_watermark = replica.high_watermark

    def _check_reign(self, node: "SimNode", role: Leading) -> None:
        life = node.life
        assert life is not None
        assert life.replica is not None
        who = (node.node_id, life.number)
        if self.leaders.setdefault(role.epoch, who) != who:
            self.fail(f"epoch {role.epoch} is led by {who} and by {self.leaders[role.epoch]}")
        if self.placement is not None and self.placement.epoch == role.epoch:
            self.check_has_all(node)
        rebuilt = ProducerStates()
        rebuilt.replay(batches_from(life.replica.log, life.replica.start_offset))
        if rebuilt.encode() != life.replica.producers.encode():
            self.fail(f"node {node.node_id} leads with producers that are not those of its log")

    def check_has_all(self, node: "SimNode") -> None:
        """All that was ever committed, at the same offsets."""
        assert node.life is not None
        assert node.life.replica is not None
        log = node.life.replica.log
        found = values(log, 0, len(self.committed))
        if found != self.committed:
            at = next((at for at, pair in enumerate(zip(found, self.committed)) if pair[0] != pair[1]), len(found))
            self.fail(
                f"node {node.node_id} leads in epoch {node.life.replica.leader_epoch} and differs from offset {at} on,"
                f" of {len(self.committed)} committed; its log ends at {log.end_offset}"
            )

    def _check_watermark(self, node: "SimNode", role: Leading, before: int) -> None:
        life = node.life
        assert life is not None
        assert life.replica is not None
        high_watermark = life.replica.high_watermark
        known = self.placement
        if known is not None and known.epoch == role.epoch:
            if len(known.isr) < self._world.minimum:
                self.fail(f"the watermark rose to {high_watermark} with {known.isr} in sync")
            for node_id in known.isr:
                member = self._world.nodes[node_id]
                if member.synced_end < high_watermark and not member.is_wiped:
                    self.fail(f"the watermark is {high_watermark}, but node {node_id} has synced {member.synced_end}")
        first = min(before, len(self.committed))
        new = values(life.replica.log, first, high_watermark)
        for offset, value in enumerate(new, first):
            if offset < len(self.committed):
                if self.committed[offset] != value:
                    self.fail(f"offset {offset} was {self.committed[offset]!r} and is {value!r} on {node.node_id}")
            else:
                if value in self._world.placed:
                    self.fail(f"{value!r} stands at {self._world.placed[value]} and at {offset}")
                self._world.placed[value] = offset
                self.committed.append(value)
                self.committed_ms.append(self._world.ms)
        if known is not None and known.epoch > role.epoch and new:
            self._check_heir(self._world.nodes[known.leader], known.epoch)

    def _check_heir(self, heir: "SimNode", epoch: int) -> None:
        """A leader whose reign is over has committed something: its heir must have it."""
        replica = heir.life.replica if heir.life is not None else None
        if replica is not None and replica.role.is_leader and replica.leader_epoch == epoch:
            self.check_has_all(heir)

    # -- clients

    def on_acknowledged(self, offset: int, value: bytes) -> None:
        self.acknowledged += 1
        if offset >= len(self.committed) or self.committed[offset] != value:
            there = self.committed[offset] if offset < len(self.committed) else None
            self.fail(f"{value!r} was acknowledged at {offset}, where {there!r} is committed")

    def on_read(self, high_watermark: int) -> None:
        """Somebody was answered without a committed write."""
        if high_watermark < len(self.committed):
            stale_ms = self._world.ms - self.committed_ms[high_watermark]
            self.stale_ms_max = max(self.stale_ms_max, stale_ms)
            if stale_ms > STALE_MS_MAX:
                self.fail(f"a read up to {high_watermark} is {stale_ms:.0f} ms old")

"""What tests of a power loss over several logs share: a node, producers that send until they are answered, and every
state in which the logs may be found."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from structlog.testing import capture_logs

from goqueue.records.build import build_batch
from goqueue.records.native import Headers
from goqueue.replica.replica import Replica
from goqueue.testing import MemoryDisk, VirtualClock
from tests.sim.crashes import images_by_file
from tests.unit.broker.queue_node import QueueNode

SOON_MS, LATE_MS = 20, 5_000
LEASE_MS = 10_000


def delayed(ms: int) -> Headers:
    return [("gq-delay-ms", b"%d" % ms)]


@dataclass
class Sender:
    """An idempotent producer with one batch, which it sends until it is acknowledged."""

    producer_id: int
    records: tuple[tuple[bytes, Headers], ...]
    acked_at: int = 1 << 62
    """How many operations the disk had done when it was acknowledged."""

    def send(self, node: QueueNode) -> None:
        made = [(1000, b"key", value, headers) for value, headers in self.records]
        batch = build_batch(made, producer_id=self.producer_id, producer_epoch=0, base_sequence=0)
        acknowledger, appended = node.broker.publisher.publish("orders", 0, memoryview(batch))

        def acked() -> None:
            if acknowledger.failure is None:
                self.acked_at = min(self.acked_at, node.disk.op_count)

        acknowledger.when_reached(appended.next_offset, acked)

    def send_until_acked(self, node: QueueNode) -> None:
        self.acked_at = 1 << 62
        self.send(node)
        node.commit()
        assert self.acked_at <= node.disk.op_count

    @property
    def values(self) -> tuple[bytes, ...]:
        return tuple(value for value, _ in self.records)


@dataclass
class Life:
    """What was done on a disk before the power failed."""

    node: QueueNode
    since: int
    senders: list[Sender] = field(default_factory=list)

    def crashes(self) -> Iterator[tuple[int, str, MemoryDisk]]:
        disk = self.node.disk
        for upto in range(self.since, disk.op_count + 1):
            for label, image in images_by_file(disk, upto):
                yield upto, label, image


def start(disk: MemoryDisk, now_ms: int) -> QueueNode:
    with capture_logs():  # what recovery finds is what this is about
        return QueueNode(disk, VirtualClock(now_ms))


class HastyNode(QueueNode):
    """Serves before anything of its start was synced: the commit thread has not had its turn yet."""

    __test__ = False
    is_hasty = True

    def commit(self) -> None:
        if self.is_hasty:
            self.clock.run()
        else:
            super().commit()


def start_hastily(disk: MemoryDisk, now_ms: int) -> HastyNode:
    with capture_logs():
        return HastyNode(disk, VirtualClock(now_ms))


def new_node(**options: str) -> QueueNode:
    node = QueueNode(MemoryDisk(), VirtualClock())
    node.create("orders", 1, **options)
    # The delays' own producer is asked for once: that is not what this is about.
    Sender(99, ((b"first", delayed(SOON_MS)),)).send_until_acked(node)
    pass_ms(node, 100)
    assert node.values("orders") == [b"first"]
    node.replicas.sync()
    return node


def pass_ms(node: QueueNode, ms: int) -> None:
    for _ in range(10):
        node.clock.advance(ms / 10)
        node.commit()


def ledger(node: QueueNode, name: str) -> Replica:
    """Or the partition of a topic."""
    replicas: list[Replica] = [*node.replicas, *node.replicas.ledgers]
    (found,) = [each for each in replicas if name in each.name]
    return found


def counted(node: QueueNode) -> Counter[bytes]:
    found = Counter(value or b"" for value in node.values("orders"))
    assert found.pop(b"first") == 1
    return found

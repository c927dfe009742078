"""A directory of a version that kept deliveries by group, at every point at which the first start with this version can
crash: what was settled stays settled, and options stay set.
"""

from goqueue.machines.deliveries.blocks import bits_of, pack_bits
from goqueue.machines.deliveries.commands import Place
from goqueue.machines.deliveries.facts import DELIVERY_FACTS, BlockStored, OptionsStored, Progress
from goqueue.machines.machine import Fact
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.runtime.ledger import Ledger
from goqueue.testing import MemoryDisk, VirtualClock
from tests.unit.broker.queue_node import QueueNode, queue_node

TOPIC_ID = b"orders".ljust(16, b".")
LEDGERS = 4


def old_directory() -> MemoryDisk:
    """Two groups in two partitions, each in the ledger that its name says, and one in a topic that is gone."""
    node = queue_node(partitions=2)
    for partition in range(2):
        for number in range(6):
            node.publish("orders", b"%d-%d" % (partition, number), partition=partition)
    node.commit()
    for number, group in enumerate(("first", "second")):
        facts: list[Fact] = [OptionsStored(group, {"lease.ms": "5000"})]
        for partition in range(2):
            place = Place(group, "orders", partition)
            facts.append(Progress(place, 0, TOPIC_ID, 1 + number))
            facts.append(BlockStored(place, 0, 0, pack_bits(bits_of(0, 4, 4))))
        facts.append(Progress(Place(group, "gone", 0), 0, b"another topic id", 9))
        write(node, number, facts)
    for number in (2, 3):
        write(node, number, [])
    return node.disk.crashed()


def write(node: QueueNode, number: int, facts: list[Fact]) -> None:
    replica = node.replicas.open_ledger("@deliveries", number, LEDGER_OPTIONS, node.clock.now_ms())
    Ledger(replica, "deliveries", DELIVERY_FACTS).append(facts, node.clock.now_ms())
    replica.sync()


def check(node: QueueNode, label: str) -> None:
    for number, group in enumerate(("first", "second")):
        assert dict(node.broker.queues.options(group)) == {"lease.ms": "5000"}, label
        assert len(node.broker.queues.places(group)) == 2, label
        got = node.receive(group=group, most=100, partitions=[0, 1])
        left = [each for each in range(1 + number, 6) if each != 4]
        assert sorted(each.value or b"" for each in got) == sorted(
            b"%d-%d" % (partition, each) for partition in range(2) for each in left
        ), label
    assert node.replicas.directory.partitions_of("@deliveries") == [], label


def test_a_crash_at_any_point_of_the_upgrade_loses_nothing() -> None:
    disk = old_directory()
    begin = disk.op_count
    node = QueueNode(disk, VirtualClock())
    end = disk.op_count
    assert end > begin
    assert node.broker.queues.has_group("first")
    for upto in range(begin, end + 1):
        lost = disk.unsynced(upto) if upto % 4 else []  # a loss of power mostly; a kill now and then
        check(QueueNode(disk.crashed(upto, lost=lost), VirtualClock()), f"after {upto}, lost {lost}")

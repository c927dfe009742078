"""Power fails while the first record of a partition is delayed: its ledger is being made, and nothing of it is durable
before the record is acknowledged."""

from itertools import islice

from structlog.testing import capture_logs

from goqueue.testing import VirtualClock
from tests.sim.crashes import images
from tests.sim.lives import LATE_MS, SOON_MS, Sender, delayed, pass_ms
from tests.unit.broker.queue_node import QueueNode


def test_what_was_acknowledged_fires_once_however_much_of_the_new_ledger_was_kept() -> None:
    node = QueueNode()
    node.create("orders")
    since = node.disk.op_count
    first = Sender(7, ((b"a", []), (b"A", delayed(LATE_MS))))
    second = Sender(8, ((b"B", delayed(SOON_MS)),))
    for sender in (first, second):
        sender.send(node)
    node.commit()
    acked_at = first.acked_at, second.acked_at
    assert max(acked_at) <= node.disk.op_count
    now_ms = node.clock.now_ms()
    crashes = ((upto, each) for upto in range(since, node.disk.op_count + 1) for each in images(node.disk, upto))
    for upto, (label, image) in islice(crashes, 0, None, 4):  # all of them take half a minute
        with capture_logs():
            again = QueueNode(image, VirtualClock(now_ms))
        new = Sender(9, ((b"N", delayed(LATE_MS)),))
        unanswered = [sender for sender, at in zip((first, second), acked_at) if at > upto]
        for sender in (new, *unanswered):  # what comes later is stored first
            sender.send_until_acked(again)
        pass_ms(again, 3 * LATE_MS)
        assert sorted(value or b"" for value in again.values("orders")) == [b"A", b"B", b"N", b"a"], label
        first.acked_at, second.acked_at = acked_at


def test_a_partition_whose_new_ledger_was_lost_takes_its_delays_again() -> None:
    """Nothing was acknowledged, so that nothing was promised; the producer sends again after others."""
    node = QueueNode()
    node.create("orders")
    lost = Sender(7, ((b"A", delayed(SOON_MS)), (b"a", [])))
    lost.send(node)
    orders = node.broker.topics.replica("orders", 0)
    orders.sync()
    disk = node.disk.crashed(lost=node.disk.unsynced())
    assert not [name for name in disk.list("logs") if name.startswith("@delays")]
    with capture_logs():
        again = QueueNode(disk, VirtualClock(node.clock.now_ms()))
    for sender in (Sender(8, ((b"B", delayed(SOON_MS)),)), lost, lost):
        sender.send_until_acked(again)
    pass_ms(again, 10 * SOON_MS)
    assert sorted(value or b"" for value in again.values("orders")) == [b"A", b"B", b"a"]

"""A delayed record that the disk cannot give back costs that record, and says so."""

from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.records.messages import NewMessage
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import TestBroker


def send_late(node: TestBroker, value: bytes) -> None:
    node.broker.sender.send("orders", [NewMessage(value, delay_ms=5_000)], lambda sent: None)
    node.commit()


def test_a_damaged_body_costs_its_record_and_the_others_come() -> None:
    disk = MemoryDisk()
    node = TestBroker(disk, VirtualClock())
    node.create("orders")
    for value in (b"first", b"damaged", b"third"):
        send_late(node, value)
    companion = f"logs/@delays.{node.broker.topics.image.topics['orders'].id.hex()}/0"
    (path,) = [f"{companion}/{name}" for name in disk.list(companion) if name.endswith(".log")]
    content = disk.open(path).read(0, disk.open(path).size())
    disk.flip_bit(path, content.index(b"damaged") * 8)
    again = TestBroker(disk.crashed(disk.op_count), VirtualClock(node.clock.now_ms()))
    again.clock.advance(6_000)
    again.commit()
    replica = again.broker.topics.replica("orders", 0)
    found = [
        (record.value, dict(record.headers).get("gq-lost"))
        for batch in replica.batches_from(0)
        for one in split(batch.data)
        if not one.is_control
        for record in decode(one)
    ]
    assert (b"first", None) in found
    assert (b"third", None) in found
    assert all(value != b"damaged" for value, _ in found)

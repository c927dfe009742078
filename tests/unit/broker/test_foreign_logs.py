"""A log that belongs to another topic than its name says: never served, never deleted, and told."""

from typing import Any

from structlog.testing import capture_logs

from goqueue.machines.controller_commands import CreateTopic, DeleteTopic
from goqueue.model.health import Status
from goqueue.records.decode import decode
from goqueue.storage.state import LogState
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker


def values(broker: TestBroker, topic: str = "orders") -> list[bytes | None]:
    replica = broker.broker.topics.replica(topic, 0)
    return [record.value for one in replica.batches_from(replica.start_offset) for record in decode(one)]


def copy_tree(source: MemoryDisk, target: MemoryDisk, path: str) -> None:
    target.make_directory(path)
    for name in source.list(path):
        file = source.open(f"{path}/{name}")
        made = target.open(f"{path}/{name}", create=True)
        made.write(0, [file.read(0, file.size())])
        made.sync()
    target.sync_directory(path)


def made_again() -> tuple[TestBroker, bytes]:
    """A backup brought back the log of a topic that was deleted and made again since."""
    broker = TestBroker()
    broker.create("orders")
    old_id = broker.broker.topics.image.topics["orders"].id
    broker.publish("orders", b"of the first topic")
    broker.stop()
    backup = broker.disk
    second = TestBroker(backup.crashed())
    second.ask(second.broker.topics.submit, DeleteTopic("orders"))
    second.ask(second.broker.topics.submit, CreateTopic("orders", b"n" * 16, 1))
    second.stop()
    disk = second.disk.crashed()
    for name in disk.list("logs/orders/0"):
        disk.remove(f"logs/orders/0/{name}")
    copy_tree(backup, disk, "logs/orders/0")
    with capture_logs():
        return TestBroker(disk), old_id


def test_a_log_of_another_topic_is_put_aside_and_not_served() -> None:
    broker, old_id = made_again()
    assert values(broker) == []
    (name,) = broker.disk.list("aside")
    assert name == f"orders-0-{old_id.hex()}"
    assert LogState.load(broker.disk, f"aside/{name}").topic_id == old_id
    broker.publish("orders", b"goes on")
    broker.commit()
    again = TestBroker(broker.disk.crashed())
    assert values(again) == [b"goes on"]
    assert again.disk.list("aside") == [name]


def check_named(broker: TestBroker, name: str) -> Any:
    return next(each for each in broker.broker.health.checks() if each.name == name)


def test_health_tells_of_a_log_that_was_put_aside() -> None:
    broker, _ = made_again()
    found = check_named(broker, "damage")
    assert found.status is Status.WARN
    assert "aside/orders-0-" in found.message


def test_a_log_that_was_made_before_logs_knew_their_topic_is_served_and_learns_it() -> None:
    broker = TestBroker()
    broker.create("orders")
    broker.publish("orders", b"old")
    broker.commit()
    replica = broker.broker.topics.replica("orders", 0)
    topic_id, replica.log.state.topic_id = replica.log.state.topic_id, b""
    replica.log.state.save(broker.disk, replica.log.directory)
    again = TestBroker(broker.disk.crashed())
    assert values(again) == [b"old"]
    assert LogState.load(again.disk, "logs/orders/0").topic_id == topic_id
    assert again.disk.list("aside") == []

"""A node that finds something damaged or missing serves the rest, and says so: log, health and metrics."""

import pytest
from structlog.testing import capture_logs

from goqueue.machines.groups import commands
from goqueue.machines.transactions.commands import InitProducer
from goqueue.model.health import Status
from goqueue.records.messages import NewMessage
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import TestBroker
from tests.unit.broker.queue_node import queue_node


def stopped() -> MemoryDisk:
    node = TestBroker()
    node.create("orders", 2)
    node.publish("orders", b"a", b"b")
    node.commit()
    node.stop()
    return node.disk


def started(disk: MemoryDisk) -> TestBroker:
    return TestBroker(disk, VirtualClock())


def remove(disk: MemoryDisk, log: str, *suffixes: str) -> None:
    for name in disk.list(f"logs/{log}"):
        if name.endswith(suffixes):
            disk.remove(f"logs/{log}/{name}")


def damage_told(node: TestBroker) -> str:
    (check,) = [check for check in node.broker.health.checks() if check.name == "damage"]
    assert check.status is Status.WARN
    assert node.broker.health.is_ready([]), "what there is, is served"
    return check.message


def has_no_damage(node: TestBroker) -> bool:
    (check,) = [check for check in node.broker.health.checks() if check.name == "damage"]
    return check.status is Status.PASS


def metric(node: TestBroker, line: str) -> bool:
    return line in node.broker.metrics.exposition("")[0].decode()


def test_a_data_log_without_its_segment_is_told_and_goes_on_behind_it() -> None:
    disk = stopped()
    remove(disk, "orders/0", ".log")
    node = started(disk)
    assert damage_told(node) == "offsets 0 to 1 of orders/0 are missing"
    assert metric(node, 'goqueue_storage_missing_offsets_total{topic="orders",node_id="1"} 2')
    assert node.publish("orders", b"c") == 2


def test_a_ledger_without_its_segment_is_told() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"later", delay_ms=60_000))
    node.commit()
    node.stop()
    companion = f"@delays.{node.broker.topics.image.topics['orders'].id.hex()}/0"
    remove(node.disk, companion, ".log")
    again = started(node.disk)
    (told,) = damage_told(again).split("; ")
    assert told.startswith("offsets 0 to ")
    assert told.endswith(f" of {companion} are missing")
    again.stop()
    assert f"of {companion} are missing" in damage_told(started(again.disk)), "as long as they are"


def test_a_ledger_whose_directory_is_gone_is_told() -> None:
    disk = stopped()
    remove(disk, "@schemas/0", "")
    disk.remove("logs/@schemas/0")
    with capture_logs() as told:
        node = started(disk)
    assert damage_told(node) == "the files of @schemas/0 were gone, it was made anew"
    assert [each["log"] for each in told if each["event"] == "log made anew"] == ["@schemas/0"]
    assert metric(node, 'goqueue_storage_logs_made_anew{node_id="1"} 1')


@pytest.mark.parametrize("ledger", ["@groups", "@transactions"])
def test_a_shard_whose_directory_is_gone_is_told_once(ledger: str) -> None:
    node = TestBroker()
    node.create("orders")
    node.ask(node.broker.groups.submit, commands.CommitOffsets("g", (commands.OffsetToCommit("orders", 0, 0),)))
    node.ask(node.broker.transactions.submit, InitProducer("tx", 60_000))
    node.stop()
    (number,) = node.disk.list(f"logs/{ledger}")
    lost = f"{ledger}/{number}"
    remove(node.disk, lost, "")
    node.disk.remove(f"logs/{lost}")
    with capture_logs() as told:
        again = started(node.disk)
    assert damage_told(again) == f"the files of {lost} were gone, it was made anew"
    assert [each["log"] for each in told if each["event"] == "log made anew"] == [lost]
    again.ask(again.broker.groups.submit, commands.CommitOffsets("g", (commands.OffsetToCommit("orders", 0, 0),)))
    again.ask(again.broker.transactions.submit, InitProducer("tx", 60_000))
    again.stop()
    assert has_no_damage(started(again.disk))


def test_a_shard_that_was_never_needed_is_not_missed() -> None:
    node = started(stopped())
    node.ask(node.broker.transactions.submit, InitProducer("tx", 60_000))
    assert has_no_damage(node)
    assert has_no_damage(started(node.disk.crashed()))


def test_a_partition_whose_directory_is_gone_is_told() -> None:
    disk = stopped()
    remove(disk, "orders/1", "")
    disk.remove("logs/orders/1")
    with capture_logs() as told:
        node = started(disk)
    assert damage_told(node) == "the files of orders/1 were gone, it was made anew"
    assert [each["log"] for each in told if each["event"] == "log made anew"] == ["orders/1"]
    node.create("clicks")
    assert "clicks" not in damage_told(node), "a topic that was made just now is new, not damaged"


def test_a_damaged_batch_of_a_ledger_is_told() -> None:
    node = TestBroker()
    node.create("orders")
    node.create("clicks")
    node.commit()
    disk = node.disk.crashed()
    (name,) = [name for name in disk.list("logs/@metadata/0") if name.endswith(".log")]
    file = disk.open(f"logs/@metadata/0/{name}")
    position = file.read(0, file.size()).index(b"orders")
    file.write(position, [b"OOPS"])
    file.sync()
    file.close()
    node = started(disk)
    assert set(node.broker.topics.image.topics) == {"clicks"}
    assert "@metadata/0 has 1 damaged batches" in damage_told(node)
    assert metric(node, 'goqueue_storage_damaged_batches_total{topic="@metadata",node_id="1"} 1')


def test_a_whole_node_tells_of_no_damage() -> None:
    node = started(stopped())
    (check,) = [check for check in node.broker.health.checks() if check.name == "damage"]
    assert (check.status, check.message) == (Status.PASS, "no damage was found")
    assert metric(node, 'goqueue_storage_logs_made_anew{node_id="1"} 0')

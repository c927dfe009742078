"""Deliveries live with their partition: made when a group first reads there, gone with the topic. A group that reads
many partitions is one group all the same.
"""

import errno

import pytest
from structlog.testing import capture_logs

from goqueue.broker.queues.settle import Wanted
from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.deliveries.commands import How, Place
from goqueue.machines.deliveries.direct import Direct
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.model.codes import Code
from goqueue.model.errors import CoordinatorFailed, CoordinatorLoading, DiskFull, LogPoisoned
from goqueue.model.topic_partition import TopicPartition
from goqueue.replica.companion_names import CompanionName
from goqueue.testing import VirtualClock
from tests.unit.broker.queue_node import QueueNode, queue_node


def companions(node: QueueNode) -> set[tuple[bytes, int]]:
    names = node.replicas.companions.on_disk()
    return {(name.topic_id.rstrip(b"."), name.partition) for name in names if name.kind == "deliveries"}


def spread(node: QueueNode, count: int, *partitions: int) -> None:
    for partition in partitions:
        for number in range(count):
            node.publish("orders", b"%d-%d" % (partition, number), partition=partition)
    node.commit()


def test_a_partition_that_no_group_has_read_has_no_ledger_of_deliveries() -> None:
    node = queue_node(partitions=3)
    spread(node, 1, 0, 1, 2)
    assert companions(node) == set()
    assert node.broker.queues.places("workers") == []
    assert node.received(partitions=[1]) == [b"1-0"]
    assert companions(node) == {(b"orders", 1)}
    assert node.broker.queues.places("workers") == [Place("workers", "orders", 1)]


def test_ledgers_of_deliveries_go_with_their_topic() -> None:
    node = queue_node(partitions=2)
    spread(node, 1, 0, 1)
    assert sorted(each or b"" for each in node.received(partitions=[0, 1])) == [b"0-0", b"1-0"]
    node.delete("orders")
    node.commit()
    assert companions(node) == set()
    assert not node.broker.queues.has_group("workers")
    assert list(node.restarted("power").broker.queues.groups()) == []


def test_a_group_goes_on_in_all_its_partitions_after_a_loss_of_power() -> None:
    node = queue_node(partitions=3)
    spread(node, 4, 0, 1, 2)
    held = node.receive(most=100, partitions=[0, 1, 2])
    assert len(held) == 12
    node.ack(*held[::2])
    after = node.restarted("power")
    assert after.broker.queues.places("workers") == [Place("workers", "orders", number) for number in range(3)]
    left = after.receive(most=100, partitions=[0, 1, 2])
    assert sorted(each.value or b"" for each in left) == sorted(each.value or b"" for each in held[1::2])


def test_late_acks_work_after_a_restart_in_every_partition() -> None:
    node = queue_node(partitions=2)
    spread(node, 2, 0, 1)
    held = node.receive(most=100, partitions=[0, 1])
    after = node.restarted("kill")
    after.ack(*held)
    assert after.received(most=100, partitions=[0, 1]) == []


def test_options_of_a_group_hold_in_all_its_partitions_and_after_a_restart() -> None:
    node = queue_node(partitions=2)
    spread(node, 1, 0, 1)
    queues = node.broker.queues
    assert node.reply(lambda done: queues.set_options("workers", {"lease.ms": "5000"}, done)) is Code.NONE
    for again in (node, node.restarted("power")):
        got = again.receive(most=100, partitions=[0, 1])
        assert {each.deadline_ms - again.clock.now_ms() for each in got} == {5000}
        assert dict(again.broker.queues.options("workers")) == {"lease.ms": "5000"}


def test_options_that_change_hold_for_places_that_are_open() -> None:
    node = queue_node(partitions=2)
    assert node.received(partitions=[0, 1]) == []
    queues = node.broker.queues
    node.reply(lambda done: queues.set_options("workers", {"lease.ms": "7000"}, done))
    spread(node, 1, 0, 1)
    got = node.receive(most=100, partitions=[0, 1])
    assert {each.deadline_ms - node.clock.now_ms() for each in got} == {7000}


def test_a_dropped_group_is_forgotten_everywhere_also_after_a_loss_of_power() -> None:
    node = queue_node(partitions=2)
    node.create("bills", 1)
    spread(node, 2, 0, 1)
    node.put("bills", b"bill")
    node.ack(*node.receive(most=100, partitions=[0, 1]), *node.receive("bills"))
    queues = node.broker.queues
    node.reply(lambda done: queues.set_options("workers", {"lease.ms": "5000"}, done))
    assert node.reply(lambda done: queues.drop("workers", ["bills"], done)) is Code.NONE
    assert {place.topic for place in queues.places("workers")} == {"orders"}
    assert node.reply(lambda done: queues.drop("workers", None, done)) is Code.NONE
    assert node.reply(lambda done: queues.drop("workers", None, done)) is Code.GROUP_ID_NOT_FOUND
    after = node.restarted("power")
    assert list(after.broker.queues.groups()) == []
    assert len(after.receive(most=100, partitions=[0, 1])) == 4


def test_a_fork_has_all_places_and_options_of_its_group() -> None:
    node = queue_node(partitions=2)
    spread(node, 2, 0, 1)
    node.ack(*node.receive(most=3, partitions=[0, 1]))
    node.reply(lambda done: node.broker.queues.set_options("workers", {"lease.ms": "5000"}, done))
    assert node.reply(lambda done: node.broker.replays.fork("workers", "fork", done)) is None
    assert node.broker.replays.compare("workers", "fork") == []
    assert dict(node.broker.queues.options("fork")) == {"lease.ms": "5000"}
    after = node.restarted("power")
    assert after.broker.replays.compare("workers", "fork") == []
    assert len(after.receive(group="fork", most=100, partitions=[0, 1])) == 1


def test_a_ledger_that_fails_costs_other_partitions_nothing() -> None:
    node = queue_node(partitions=2)
    spread(node, 2, 0, 1)
    first, second = node.receive(most=1, partitions=[0]), node.receive(most=1, partitions=[1])
    log = CompanionName("deliveries", b"orders".ljust(16, b"."), 0).log
    node.disk.faults.add("sync", errno.EIO, prefix=f"logs/{log}/0")
    with capture_logs():
        node.broker.settler.settle([], lambda verdicts: None)
        answers = node.reply(lambda done: node.broker.queues.seek(Place("workers", "orders", 0), 0, done))
        assert isinstance(answers, Exception)
        assert node.park(partitions=[0]).errors
    node.ack(*second)
    node.settle(node.receive(most=1, partitions=[1]), How.ACK)
    assert node.received(most=100, partitions=[1]) == []
    assert len(first) == 1


def test_a_ledger_that_cannot_be_opened_costs_other_partitions_nothing() -> None:
    node = queue_node(partitions=2)
    spread(node, 2, 0, 1)
    node.ack(*node.receive(most=1, partitions=[0]), *node.receive(most=1, partitions=[1]))
    log = CompanionName("deliveries", b"orders".ljust(16, b"."), 0).log
    node.disk.survive_as_kill()
    node.disk.faults.add("open", errno.EIO, prefix=f"logs/{log}/0", forever=True)
    with capture_logs():
        after = QueueNode(node.disk, node.clock)
        assert after.park(partitions=[0]).errors
    assert after.received(partitions=[1]) == [b"1-1"]


def test_acks_wait_for_the_disk_from_when_their_topic_does() -> None:
    node = queue_node(durability="os")
    node.put("orders", b"a")
    got = node.receive()
    node.ask(node.broker.topics.submit, SetOptions("orders", {"durability": "disk"}))
    node.ack(*got)
    assert node.restarted("power").received() == []


def test_what_was_known_of_records_that_a_log_has_lost_is_dropped_though_the_disk_is_full_at_the_start() -> None:
    node = queue_node(durability="os")
    node.put("orders", b"a")
    node.replicas.sync()
    node.put("orders", b"b", b"c")
    node.ack(*node.receive()[1:])
    path = "logs/orders/0/00000000000000000000.log"
    disk = node.disk.crashed(lost=node.disk.unsynced_by_file()[path])
    disk.capacity_bytes = 1
    with capture_logs():
        after = QueueNode(disk, VirtualClock(node.clock.now_ms()))
    disk.capacity_bytes = None
    after.clock.advance(60_000)
    after.replicas.maintain(after.clock.now_ms(), after.clock.monotonic_s())
    after.put("orders", b"B", b"C")
    assert after.values("orders") == [b"a", b"B", b"C"]
    assert after.received() == [b"a", b"B", b"C"]


@pytest.mark.parametrize("how", ["kill", "power"])
def test_a_crash_right_after_a_full_disk_has_room_again_forgets_no_drop(how: str) -> None:
    node = queue_node(durability="os")
    node.put("orders", b"a")
    node.replicas.sync()
    node.put("orders", b"b", b"c")
    node.ack(*node.receive()[1:])
    path = "logs/orders/0/00000000000000000000.log"
    disk = node.disk.crashed(lost=node.disk.unsynced_by_file()[path])
    disk.capacity_bytes = 1
    with capture_logs():
        after = QueueNode(disk, VirtualClock(node.clock.now_ms()))
    disk.capacity_bytes = None
    with pytest.raises(DiskFull):  # nothing stands where the lost ones stood before the drop is stored
        after.publish("orders", b"B")
    after.clock.advance(1000)
    after.publish("orders", b"B")
    after.publish("orders", b"C")
    after.broker.topics.replica("orders", 0).sync()
    again = after.restarted(how)
    assert again.values("orders") == [b"a", b"B", b"C"]
    assert again.received() == [b"a", b"B", b"C"]


def test_whoever_settles_is_told_of_a_fault_of_ours_and_the_record_is_delivered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = queue_node()
    node.put("orders", b"a")
    (got,) = node.receive()

    def fail(machine: object) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patch, capture_logs():
        patch.setattr(Direct, "number_ahead", fail)
        (verdict,) = node.verdicts(Wanted(got.receipt, How.ACK))
        assert isinstance(verdict, CoordinatorFailed)
    assert node.received() == [b"a"]


def test_an_ack_that_was_stored_is_known_though_we_met_a_fault_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    node = queue_node()
    node.put("orders", b"a", b"b")
    (got,) = node.receive(most=1)

    def fail(machine: object, now_ms: int) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patch, capture_logs():
        patch.setattr(Direct, "number_stored", fail)
        (verdict,) = node.verdicts(Wanted(got.receipt, How.ACK))
        assert isinstance(verdict, CoordinatorFailed)
    assert node.received() == [b"b"]


def test_a_member_is_answered_though_a_ledger_of_its_partitions_cannot_be_asked() -> None:
    node = queue_node(partitions=2)
    spread(node, 2, 0, 1)
    node.ack(*node.receive(most=1, partitions=[0]), *node.receive(most=1, partitions=[1]))
    log = CompanionName("deliveries", b"orders".ljust(16, b"."), 0).log
    node.disk.survive_as_kill()
    node.disk.faults.add("open", errno.EIO, prefix=f"logs/{log}/0", forever=True)
    with capture_logs():
        after = QueueNode(node.disk, node.clock)
    progress, both = after.broker.members.progress, [TopicPartition("orders", number) for number in range(2)]
    member = consumer_commands.ConsumerMember("one")
    assert after.reply(lambda done: progress.even_out("workers", member, both, done)) is None
    unread = after.reply(lambda done: progress.start_at("workers", dict.fromkeys(both, 0), done))
    assert isinstance(unread, LogPoisoned)
    (loading,) = after.broker.queues.companions.coordinators
    loading.unload()
    loading.load()
    waiting = after.reply(lambda done: progress.even_out("workers", member, both, done))
    assert isinstance(waiting, CoordinatorLoading), "it is to ask again, and not to begin elsewhere"

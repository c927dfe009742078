"""Delays live with their partition: a ledger of its own, made when it is first needed and gone with its topic."""

import errno
import gc
import weakref
from typing import Any

from structlog.testing import capture_logs

from goqueue.machines.delays.commands import ScheduleKey, StoreRecurring
from goqueue.model.codes import Code
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused
from goqueue.records.messages import NewMessage
from goqueue.testing import MemoryDisk, VirtualClock
from tests.unit.broker.queue_node import QueueNode

MINUTE_MS = 60_000


def later(value: bytes, partition: int = 0, delay_ms: int = MINUTE_MS) -> NewMessage:
    return NewMessage(value, delay_ms=delay_ms, partition=partition)


def companions(node: QueueNode) -> list[str]:
    return sorted(each.name for each in node.replicas.ledgers if each.name.startswith("@delays"))


def on_disk(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list("logs") if name.startswith("@delays")]


def companion(node: QueueNode, topic: str, partition: int) -> str:
    return f"@delays.{node.broker.topics.image.topics[topic].id.hex()}/{partition}"


def repeat(node: QueueNode, name: str, topic: str, cron: str = "* * * * *", key: bytes | None = None) -> Any:
    wanted = Recurring(name, topic, cron, name.encode(), key)
    return node.reply(lambda done: node.broker.recurring.store(wanted, done))


def crashed(node: QueueNode) -> QueueNode:
    with capture_logs():
        return QueueNode(node.disk.crashed(), VirtualClock(node.clock.now_ms()))


def test_a_partition_without_delays_has_no_ledger_for_them() -> None:
    node = QueueNode()
    node.create("orders", 3)
    node.put("orders", b"now")
    timers = node.clock.timers
    assert (companions(node), on_disk(node.disk)) == ([], [])
    node.put("orders", later(b"late", 1))
    assert companions(node) == [companion(node, "orders", 1)]
    assert node.clock.timers == timers + 1
    node.clock.advance(MINUTE_MS + 10)
    node.commit()
    assert node.clock.timers == timers, "what has nothing to wait for waits for nothing"


def test_a_topic_that_is_deleted_takes_its_delays_with_it_and_leaves_no_ledger() -> None:
    node = QueueNode()
    node.create("orders", 2)
    node.create("other")
    node.put("orders", later(b"a"), later(b"b", 1))
    node.put("other", later(b"o"))
    repeat(node, "every minute", "orders")
    node.delete("orders")
    assert companions(node) == [companion(node, "other", 0)]
    assert on_disk(node.disk) == [companion(node, "other", 0).partition("/")[0]]
    assert node.broker.recurring.all() == []
    assert node.broker.schedules.pending_by_topic() == {"other": 1}
    node.create("orders", 2)
    node.clock.advance(2 * MINUTE_MS)
    node.commit()
    assert (node.values("orders"), node.values("orders", 1), node.values("other")) == ([], [], [b"o"])


def test_the_files_of_companions_are_closed_when_their_topic_is_deleted_without_the_collector_of_cycles() -> None:
    """What was opened at the start is frozen: no collection ever looks at it."""
    node = QueueNode()
    node.create("orders")
    node.put("orders", b"now", later(b"a"))
    assert node.received() == [b"now"]
    node = crashed(node)
    node.put("orders", b"then", later(b"b"))
    assert node.received() == [b"now", b"then"]
    logs = {each.name.partition(".")[0]: weakref.ref(each.log) for each in node.replicas.companions}
    assert logs.keys() == {"@delays", "@deliveries"}
    gc.collect()
    gc.disable()
    try:
        node.delete("orders")
        assert {kind: log() for kind, log in logs.items()} == {"@delays": None, "@deliveries": None}
    finally:
        gc.enable()


def test_a_crash_before_a_deleted_topic_is_gone_leaves_no_ledger_of_it() -> None:
    node = QueueNode()
    node.create("orders")
    node.put("orders", later(b"a"))
    since = node.disk.op_count
    node.delete("orders")
    for upto in range(since, node.disk.op_count + 1):
        with capture_logs():
            again = QueueNode(node.disk.crashed(upto), VirtualClock(node.clock.now_ms()))
        assert bool(on_disk(again.disk)) == ("orders" in again.broker.topics.image.topics), upto


def test_the_offsets_of_partitions_and_topics_have_nothing_to_do_with_each_other() -> None:
    node = QueueNode()
    node.create("orders", 2)
    node.create("other")
    node.put("orders", later(b"a"), later(b"b", 1))
    node.put("other", later(b"o"))
    cancelled = node.reply(lambda done: node.broker.schedules.cancel(ScheduleKey("orders", 0, 0), done))
    assert cancelled.code is Code.NONE
    node.clock.advance(2 * MINUTE_MS)
    node.commit()
    assert (node.values("orders"), node.values("orders", 1), node.values("other")) == ([], [b"b"], [b"o"])


def test_what_waits_is_listed_page_by_page_over_all_partitions() -> None:
    node = QueueNode()
    node.create("orders", 4)
    for partition in (2, 0, 3):
        node.put("orders", *(later(b"%d" % number, partition) for number in range(3)))
    schedules, after, found = node.broker.schedules, None, []
    while page := schedules.waiting("orders", None, after, 2):
        assert len(page) <= 2
        found += [each.key for each in page]
        after = page[-1].key
    assert found == [ScheduleKey("orders", partition, offset) for partition in (0, 2, 3) for offset in range(3)]
    assert [each.body.value for each in schedules.pending("orders", 2, ScheduleKey("orders", 2, 0), 10)] == [b"1", b"2"]
    assert schedules.waiting("orders", 1, None, 10) == schedules.waiting("nowhere", None, None, 10) == []
    assert (schedules.count("orders"), schedules.measure().pending) == (9, 9)


def test_delays_of_many_partitions_are_published_each_in_its_own_after_a_crash() -> None:
    node = QueueNode()
    node.create("orders", 20)
    for partition in range(20):
        node.put("orders", later(b"%d" % partition, partition))
    again = crashed(node)
    assert len(companions(again)) == 20
    again.clock.advance(2 * MINUTE_MS)
    again.commit()
    assert [again.values("orders", partition) for partition in range(20)] == [[b"%d" % each] for each in range(20)]


def test_a_ledger_of_delays_that_cannot_be_opened_costs_its_partition_alone() -> None:
    node = QueueNode()
    node.create("orders", 2)
    node.put("orders", later(b"a"), later(b"b", 1))
    disk = node.disk.crashed()
    disk.faults.add("open", errno.EIO, prefix=f"logs/{companion(node, 'orders', 0)}", forever=True)
    with capture_logs():
        again = QueueNode(disk, VirtualClock(node.clock.now_ms()))
    (refused,) = again.send("orders", later(b"c"))
    assert isinstance(refused.error, Refused)
    assert refused.error.code is Code.KAFKA_STORAGE_ERROR
    assert again.put("orders", b"plain") == [1]
    again.clock.advance(2 * MINUTE_MS)
    again.commit()
    assert (again.values("orders"), again.values("orders", 1)) == ([b"plain"], [b"b"])
    ledgers = next(check for check in again.broker.health.checks() if check.name == "ledgers")
    assert "delays-orders-0" in ledgers.message


# Recurring schedules


def runs(node: QueueNode, topic: str, minutes: int = 2) -> int:
    before = len(node.values(topic))
    node.clock.advance(minutes * MINUTE_MS)
    node.commit()
    return len(node.values(topic)) - before


def test_a_recurring_schedule_that_is_stored_for_another_topic_runs_there_and_nowhere_else() -> None:
    node = QueueNode()
    for topic in ("old", "new"):
        node.create(topic)
    assert repeat(node, "r", "old").code is Code.NONE
    assert runs(node, "old") == 2
    assert repeat(node, "r", "new").code is Code.NONE
    assert [each.topic for each in node.broker.recurring.all()] == ["new"]
    node.clock.advance(3 * MINUTE_MS)
    node.commit()
    assert (len(node.values("old")), len(node.values("new"))) == (2, 3)
    again = crashed(node)
    assert [each.topic for each in again.broker.recurring.all()] == ["new"]
    assert (runs(again, "new"), runs(again, "old")) == (2, 0)


def test_a_crash_while_a_recurring_schedule_is_moved_leaves_it_at_one_place() -> None:
    node = QueueNode()
    for topic in ("old", "new"):
        node.create(topic)
    repeat(node, "r", "old", "0 * * * *")
    since = node.disk.op_count
    repeat(node, "r", "new", "30 * * * *")
    topics = set()
    for upto in range(since, node.disk.op_count + 1):
        for lost in ([], node.disk.unsynced(upto)):
            with capture_logs():
                again = QueueNode(node.disk.crashed(upto, lost=lost), VirtualClock(node.clock.now_ms()))
            (found,) = again.broker.recurring.all()
            assert (found.topic, found.cron) in {("old", "0 * * * *"), ("new", "30 * * * *")}
            topics.add(found.topic)
            again.clock.advance(60 * MINUTE_MS)
            again.commit()
            assert len(again.values("old")) + len(again.values("new")) == 1, upto
    assert topics == {"old", "new"}


def test_a_recurring_schedule_is_dropped_where_the_metadata_does_not_place_it() -> None:
    node = QueueNode()
    node.create("orders")
    repeat(node, "known", "orders")
    home = node.broker.schedules.of("orders", 0)
    assert home is not None
    stray = StoreRecurring("stray", "* * * * *", "UTC", b"")
    node.reply(lambda done: home.submit(stray, done))
    again = crashed(node)
    assert [each.name for each in again.broker.recurring.all()] == ["known"]
    found = again.broker.schedules.of("orders", 0)
    assert found is not None
    assert not found.peek().has_recurring("stray")


def test_a_recurring_schedule_whose_place_cannot_be_stored_does_not_run() -> None:
    node = QueueNode()
    node.create("orders")
    (metadata,) = [each.log for each in node.replicas.ledgers if each.name == "@metadata/0"]
    node.disk.faults.add("allocate", errno.ENOSPC, prefix="logs/@metadata", forever=True)
    metadata._active.allocated = metadata._active.size
    with capture_logs():
        reply = repeat(node, "r", "orders")
    assert isinstance(reply, Exception)
    assert (node.broker.recurring.all(), runs(node, "orders")) == ([], 0)


def test_one_that_is_dropped_is_gone_and_one_that_never_was_is_refused() -> None:
    node = QueueNode()
    node.create("orders")
    repeat(node, "r", "orders")
    assert node.reply(lambda done: node.broker.recurring.drop("r", done)).code is Code.NONE
    assert node.broker.recurring.find("r") is None
    assert runs(node, "orders") == 0
    refused = node.reply(lambda done: node.broker.recurring.drop("r", done))
    assert refused.code is Code.INVALID_REQUEST
    assert crashed(node).broker.recurring.all() == []


def test_records_are_delayed_at_places_that_a_log_has_lost_though_the_disk_was_full_at_the_start() -> None:
    node = QueueNode()
    node.create("orders", durability="os")
    node.put("orders", b"a")
    node.replicas.sync()
    node.put("orders", later(b"b"), later(b"c"))
    path = "logs/orders/0/00000000000000000000.log"
    disk = node.disk.crashed(lost=node.disk.unsynced_by_file()[path])
    disk.capacity_bytes = 1
    with capture_logs():
        after = QueueNode(disk, VirtualClock(node.clock.now_ms()))
    disk.capacity_bytes = None
    after.clock.advance(1000)
    after.replicas.maintain(after.clock.now_ms(), after.clock.monotonic_s())
    after.put("orders", later(b"B"), later(b"C"))
    after.clock.advance(2 * MINUTE_MS)
    after.commit()
    assert after.values("orders") == [b"a", b"B", b"C"]


def test_a_delay_lasts_as_long_as_it_was_asked_for_though_the_clock_is_set_while_the_disk_is_full() -> None:
    node = QueueNode()
    node.create("orders")
    node.put("orders", later(b"a"))
    node = crashed(node)  # nothing is reserved for what comes
    node.disk.capacity_bytes = 1
    with capture_logs():
        node.clock.step(-60 * MINUTE_MS)
        node.clock.advance(5000)
        node.disk.capacity_bytes = None
        node.replicas.maintain(node.clock.now_ms(), node.clock.monotonic_s())
        node.clock.advance(MINUTE_MS)
    node.commit()
    assert node.values("orders") == [b"a"]

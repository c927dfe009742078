"""What waits for its time can be looked at, cancelled and moved; it may hold its key; and it may come back for ever."""

from typing import Any

import pytest

from goqueue.broker.delays.partition import Found
from goqueue.machines.delays.commands import ScheduleKey
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, GoQueueError, InvalidWish
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import QueueNode, queue_node

TICK_MS = 10
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
STARTS = ("stop", "kill", "power")


def later(value: bytes, delay_ms: int = 1000, **fields: Any) -> NewMessage:
    return NewMessage(value, delay_ms=delay_ms, **fields)


def cancel(node: QueueNode, offset: int, partition: int = 0, topic: str = "orders") -> Any:
    return node.reply(lambda done: node.broker.schedules.cancel(ScheduleKey(topic, partition, offset), done))


def reschedule(node: QueueNode, offset: int, due_ms: int) -> Any:
    key = ScheduleKey("orders", 0, offset)
    return node.reply(lambda done: node.broker.schedules.reschedule(key, due_ms, done))


def pending(node: QueueNode, partition: int | None = None, after: ScheduleKey | None = None, limit: int = 99) -> Any:
    found: list[Found] = node.broker.schedules.pending("orders", partition, after, limit)
    return [(each.schedule.key[1:], each.body.value) for each in found]


# -- cancelling


def test_a_cancelled_record_is_never_delivered_and_all_others_are() -> None:
    node = queue_node()
    node.put("orders", *(later(b"%d" % number) for number in range(10)))
    node.pass_ms(500)
    assert [cancel(node, offset).code for offset in (0, 3, 4, 9)] == [Code.NONE] * 4
    node.pass_ms(500 + TICK_MS)
    expected = [b"1", b"2", b"5", b"6", b"7", b"8"]
    assert node.values("orders") == expected
    node.pass_ms(HOUR_MS)
    assert node.values("orders") == expected
    assert node.broker.schedules.measure().cancelled == 4


@pytest.mark.parametrize("how", STARTS)
def test_cancelled_stays_cancelled_over_a_restart(how: str) -> None:
    node = queue_node()
    node.put("orders", later(b"a"), later(b"b"))
    assert cancel(node, 0).code is Code.NONE
    node = node.restarted(how)
    node.pass_ms(1000 + TICK_MS)
    assert node.values("orders") == [b"b"]


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "code"),
    [
        ("orders", 0, 0, Code.INVALID_REQUEST),  # never delayed
        ("orders", 0, 1, Code.INVALID_REQUEST),  # fired
        ("orders", 0, 2, Code.INVALID_REQUEST),  # cancelled
        ("orders", 0, 99, Code.INVALID_REQUEST),
        ("orders", 7, 0, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("nowhere", 0, 0, Code.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_cancelling_what_does_not_wait_is_refused(topic: str, partition: int, offset: int, code: Code) -> None:
    node = queue_node()
    node.put("orders", b"a", later(b"b"), later(b"c"))
    assert cancel(node, 2).code is Code.NONE
    node.pass_ms(1000 + TICK_MS)
    reply = cancel(node, offset, partition, topic)
    assert (reply.code, bool(reply.message)) == (code, True)
    assert node.values("orders") == [b"a", b"b"]


# -- looking


def test_what_waits_is_listed_by_partition_and_offset_page_by_page() -> None:
    node = queue_node(partitions=2)
    node.send("orders", *(later(b"%d" % number, 1000 * (9 - number), partition=number % 2) for number in range(6)))
    all_of_it = [((0, 0), b"0"), ((0, 1), b"2"), ((0, 2), b"4"), ((1, 0), b"1"), ((1, 1), b"3"), ((1, 2), b"5")]
    assert pending(node) == all_of_it
    assert pending(node, partition=1) == all_of_it[3:]
    paged, after = [], None
    while page := pending(node, after=after, limit=4):
        paged += page
        after = ScheduleKey("orders", *page[-1][0])
    assert paged == all_of_it


def test_one_that_waits_is_found_by_its_place() -> None:
    node = queue_node()
    now_ms = node.clock.now_ms()
    node.put("orders", b"a", later(b"b", key=b"k", headers=[("h", b"1")]))
    found = node.broker.schedules.look_up(ScheduleKey("orders", 0, 1))
    assert found is not None
    assert (found.schedule.due_ms, found.body.published_ms) == (now_ms + 1000, now_ms)
    assert (found.body.key, found.body.value, found.body.headers) == (b"k", b"b", [("h", b"1")])
    assert node.broker.schedules.look_up(ScheduleKey("orders", 0, 0)) is None
    node.pass_ms(1000 + TICK_MS)
    assert node.broker.schedules.look_up(ScheduleKey("orders", 0, 1)) is None


# -- moving


@pytest.mark.parametrize("how", [None, *STARTS])
def test_a_record_can_be_moved_to_another_time_and_stays_there(how: str | None) -> None:
    node = queue_node()
    now_ms = node.clock.now_ms()
    node.put("orders", later(b"sooner", HOUR_MS), later(b"later", 1000), later(b"as it was", 2000))
    assert reschedule(node, 0, now_ms + 3000).code is Code.NONE
    assert reschedule(node, 1, now_ms + 4000).code is Code.NONE
    if how is not None:
        node = node.restarted(how)
    node.pass_ms(2999)
    assert node.values("orders") == [b"as it was"]
    node.pass_ms(1 + TICK_MS)
    assert node.values("orders") == [b"as it was", b"sooner"]
    node.pass_ms(1000)
    assert node.values("orders") == [b"as it was", b"sooner", b"later"]
    assert pending(node) == []


def test_a_record_moved_into_the_past_comes_at_once_and_cannot_be_moved_again() -> None:
    node = queue_node()
    node.put("orders", later(b"x", HOUR_MS))
    assert reschedule(node, 0, 0).code is Code.NONE
    node.pass_ms(TICK_MS)
    assert node.values("orders") == [b"x"]
    refusal = reschedule(node, 0, 0)
    assert isinstance(refusal, Refused)
    assert refusal.code is Code.INVALID_REQUEST


# -- hold_key


def test_records_pass_a_delayed_one_of_their_key_unless_the_topic_holds_keys() -> None:
    node = queue_node()
    node.put("orders", later(b"1", key=b"k"), NewMessage(b"2", key=b"k"))
    node.pass_ms(1000 + TICK_MS)
    assert node.values("orders") == [b"2", b"1"]


@pytest.mark.parametrize("how", [None, *STARTS])
def test_with_hold_key_the_order_of_a_key_is_that_of_its_sending(how: str | None) -> None:
    node = queue_node(delay_order="hold_key")
    node.put("orders", later(b"k1", 2000, key=b"k"), NewMessage(b"k2", key=b"k"), NewMessage(b"other", key=b"o"))
    node.put("orders", later(b"k3", 500, key=b"k"), NewMessage(b"none"))
    if how is not None:
        node = node.restarted(how)
    node.put("orders", NewMessage(b"k4", key=b"k"))
    assert node.values("orders") == [b"other", b"none"]
    node.pass_ms(2000 + TICK_MS)
    node.put("orders", NewMessage(b"k5", key=b"k"))
    node.pass_ms(TICK_MS)
    assert node.values("orders") == [b"other", b"none", b"k1", b"k2", b"k3", b"k4", b"k5"]
    assert node.put("orders", NewMessage(b"k6", key=b"k")) == [node.broker.topics.replica("orders", 0).end_offset - 1]
    assert node.values("orders")[-1] == b"k6"


def test_a_key_is_free_again_when_what_held_it_is_cancelled_or_moved() -> None:
    node = queue_node(delay_order="hold_key")
    node.put("orders", later(b"1", HOUR_MS, key=b"k"))
    cancel(node, 0)
    node.put("orders", NewMessage(b"2", key=b"k"))
    assert node.values("orders") == [b"2"]
    (offset,) = node.put("orders", later(b"3", HOUR_MS, key=b"k"))
    reschedule(node, offset, node.clock.now_ms() + 1000)
    node.put("orders", NewMessage(b"4", key=b"k"))
    node.pass_ms(1000 + TICK_MS)
    assert node.values("orders") == [b"2", b"3", b"4"]


@pytest.mark.parametrize("lost", ["refused", "repeated", "topic deleted"])
def test_a_key_is_not_held_by_what_was_never_kept(lost: str) -> None:
    node = queue_node(delay_order="hold_key", max_message_bytes="400")
    if lost == "refused":
        assert isinstance(node.send("orders", later(b"x" * 900, HOUR_MS, key=b"k"))[0].error, BatchTooLarge)
    elif lost == "topic deleted":
        node.put("orders", later(b"x", HOUR_MS, key=b"k"))
        node.delete("orders")
        node.create("orders", delay_order="hold_key")
    else:
        record: NewRecord = (1000, b"k", b"x", [("gq-delay-ms", b"60000")])
        for _ in range(2):
            data = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=0)
            node.broker.publisher.publish("orders", 0, memoryview(data))
            node.pass_ms(35_000)
    before = [] if lost != "repeated" else [b"x"]
    assert node.values("orders") == before
    node.put("orders", NewMessage(b"now", key=b"k"))
    assert node.values("orders") == [*before, b"now"]


def test_a_key_stays_held_while_what_holds_it_is_being_published() -> None:
    node = queue_node(delay_order="hold_key")
    node.put("orders", later(b"1", 1000, key=b"k"), later(b"other", HOUR_MS, key=b"o"))
    node.clock.advance(1000 + TICK_MS)  # the decision to publish is made, and not synced yet
    assert node.broker.schedules.measure().firing == 1
    node.broker.schedules.cancel(ScheduleKey("orders", 0, 1), lambda reply: None)
    node.broker.sender.send("orders", [NewMessage(b"2", key=b"k")], lambda sent: None)
    node.pass_ms(TICK_MS)
    assert node.values("orders") == [b"1", b"2"]


# -- recurring


def store(node: QueueNode, **fields: Any) -> Any:
    wanted = Recurring(**{"name": "tick", "topic": "orders", "cron": "*/5 * * * *", "value": b"tick", **fields})
    return node.reply(lambda done: node.broker.recurring.store(wanted, done))


def drop(node: QueueNode, name: str) -> Any:
    return node.reply(lambda done: node.broker.recurring.drop(name, done))


def times(node: QueueNode) -> list[int]:
    return [each.timestamp for each in node.records("orders")]


@pytest.mark.parametrize("how", [None, *STARTS])
def test_a_recurring_message_comes_once_at_each_of_its_times(how: str | None) -> None:
    node = queue_node()
    first_ms = -(-node.clock.now_ms() // (5 * MINUTE_MS)) * 5 * MINUTE_MS
    reply = store(node, key=b"k", headers=[("h", b"1")])
    assert (reply.code, reply.next_ms) == (Code.NONE, first_ms)
    for _ in range(15):
        node.pass_ms(2 * MINUTE_MS)
        if how is not None:
            node = node.restarted(how)
    node.pass_ms(1000)
    assert times(node) == [first_ms + number * 5 * MINUTE_MS for number in range(6)]
    assert {(each.key, each.value, tuple(each.headers)) for each in node.records("orders")} == {
        (b"k", b"tick", (("h", b"1"),))
    }


def test_runs_missed_while_the_node_was_down_are_made_up_for_once() -> None:
    node = queue_node()
    first_ms = store(node).next_ms
    node = node.restarted("kill", after_ms=HOUR_MS)
    node.pass_ms(TICK_MS)
    assert times(node) == [first_ms + 11 * 5 * MINUTE_MS]
    (found,) = node.broker.recurring.all()
    assert found.next_ms == first_ms + 12 * 5 * MINUTE_MS


def test_a_recurring_message_can_be_replaced_and_dropped() -> None:
    node = queue_node()
    store(node)
    store(node, value=b"tock", cron="0 * * * *")
    (found,) = node.broker.recurring.all()
    assert (found.name, found.cron, found.timezone) == ("tick", "0 * * * *", "UTC")
    node.pass_ms(HOUR_MS)
    assert node.values("orders") == [b"tock"]
    assert drop(node, "tick").code is Code.NONE
    assert drop(node, "tick").code is not Code.NONE
    node.pass_ms(3 * HOUR_MS)
    assert node.values("orders") == [b"tock"]


def test_a_recurring_message_ends_with_its_topic() -> None:
    node = queue_node()
    store(node)
    node.delete("orders")
    assert node.broker.recurring.all() == []
    node.create("orders")
    node.pass_ms(HOUR_MS)
    assert node.values("orders") == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"cron": "every day"}, "five fields"),
        ({"cron": "99 * * * *"}, "99"),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"topic": "nowhere"}, "there is no topic 'nowhere'"),
        ({"headers": [("gq-priority", b"urgent")]}, "gq-priority"),
        ({"value": b"x" * 2_000_000}, "at most"),
    ],
)
def test_a_recurring_message_that_cannot_be_is_refused_with_the_reason(fields: dict[str, Any], says: str) -> None:
    node = queue_node()
    reply = store(node, **fields)
    if isinstance(reply, GoQueueError):
        assert isinstance(reply, Refused | InvalidWish | BatchTooLarge)
        assert says in str(reply)
    else:
        assert reply.code is not Code.NONE
        assert says in reply.message
    assert node.broker.recurring.all() == []

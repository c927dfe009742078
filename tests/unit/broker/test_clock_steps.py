"""The wall clock is set, forward or back: durations stay as long as they are, and times are what the clock says."""

from typing import Any

import pytest

from goqueue.machines.deliveries.commands import How, Place, Replay
from goqueue.machines.groups.commands import DescribeGroup, GroupProtocol, JoinGroup
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat, DescribeConsumerGroup
from goqueue.machines.transactions.commands import AddPartitions, EndTransaction, InitProducer
from goqueue.model.codes import Code
from goqueue.model.recurring import Recurring
from goqueue.records.messages import NewMessage
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import data
from tests.unit.broker.queue_node import QueueNode, queue_node

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
STEPS = [-HOUR_MS, HOUR_MS, DAY_MS]
steps = pytest.mark.parametrize("step_ms", STEPS)


def at(node: QueueNode, value: bytes, in_ms: int) -> NewMessage:
    return NewMessage(value, deliver_at_ms=node.clock.now_ms() + in_ms)


# -- durations


@steps
def test_a_lease_lasts_as_long_as_it_was_given_for(step_ms: int) -> None:
    node = queue_node(lease_ms="20000")
    node.put("orders", b"one")
    (got,) = node.receive()
    node.pass_ms(5_000)
    node.clock.step(step_ms)
    node.pass_ms(14_900)
    assert node.received() == []
    node.pass_ms(200)
    (again,) = node.receive()
    assert (again.value, again.attempt) == (b"one", 2)
    assert again.deadline_ms == node.clock.now_ms() + 20_000
    assert got.deadline_ms != again.deadline_ms


@steps
def test_a_lease_that_was_extended_lasts_as_long_as_it_was_extended_for(step_ms: int) -> None:
    node = queue_node(lease_ms="20000")
    node.put("orders", b"one", b"two")
    got = node.receive()
    node.settle(got[:1], How.EXTEND, delay_ms=60_000)
    node.clock.step(step_ms)
    node.pass_ms(21_000)
    assert node.received() == [b"two"]
    node.pass_ms(39_500)
    assert node.received() == [b"one", b"two"]


@steps
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_record_given_back_with_a_delay_waits_that_long_over_a_restart_too(step_ms: int, how: str) -> None:
    node = queue_node(lease_ms="20000")
    node.put("orders", b"one")
    node.settle(node.receive(), How.RETRY, delay_ms=30_000)
    node.clock.step(step_ms)
    node.pass_ms(10_000)
    assert node.received() == []
    node = node.restarted(how)
    node.pass_ms(19_000)
    assert node.received() == []
    node.pass_ms(1_500)
    assert node.received() == [b"one"]


@pytest.mark.parametrize("when", ["before the step", "after it"])
def test_a_record_whose_delay_is_over_does_not_wait_again_because_the_clock_was_set_back(when: str) -> None:
    node = queue_node(lease_ms="20000")
    node.put("orders", b"one")
    node.settle(node.receive(), How.RETRY, delay_ms=1_000)
    if when == "before the step":  # nobody has looked at it since
        node = node.restarted("kill")
    node.pass_ms(5_000)
    node.clock.step(-HOUR_MS)
    node.pass_ms(2_000)
    if when == "after it":
        node = node.restarted("kill")
    assert node.received() == [b"one"]


@steps
def test_a_replay_keeps_its_pace(step_ms: int) -> None:
    node = queue_node()
    node.put("orders", *(b"%d" % number for number in range(5)))
    node.ack(*node.receive())
    place = Place("workers", "orders", 0)
    replay = Replay(place, 0, 5, ((0, 4),), records_per_second=1)
    node.reply(lambda done: node.broker.queues.submit(replay, done))
    assert node.received(most=1) == [b"0"]
    node.clock.step(step_ms)
    node.pass_ms(500)
    assert node.received(most=5) == []
    node.pass_ms(600)
    assert node.received(most=5) == [b"1"]


@steps
def test_a_transaction_times_out_after_its_time(step_ms: int) -> None:
    node = queue_node()
    submit = node.broker.transactions.submit
    _, producer_id, epoch = node.ask(submit, InitProducer("shop", 30_000))
    assert node.ask(submit, AddPartitions("shop", producer_id, epoch, (("orders", 0),))).code is Code.NONE
    node.clock.step(step_ms)
    node.pass_ms(29_000)
    assert node.broker.transactions.peek().is_open(producer_id, epoch, "orders", 0)
    node.pass_ms(2_000)
    assert not node.broker.transactions.peek().is_open(producer_id, epoch, "orders", 0)
    assert node.ask(submit, EndTransaction("shop", producer_id, epoch, True)).code is Code.PRODUCER_FENCED


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_transaction_times_out_after_its_time_though_the_clock_was_set_back_before_a_restart(how: str) -> None:
    node = queue_node()
    submit = node.broker.transactions.submit
    _, producer_id, epoch = node.ask(submit, InitProducer("shop", 30_000))
    assert node.ask(submit, AddPartitions("shop", producer_id, epoch, (("orders", 0),))).code is Code.NONE
    node = node.restarted(how, after_ms=-HOUR_MS)
    node.pass_ms(31_000)
    assert not node.broker.transactions.peek().is_open(producer_id, epoch, "orders", 0)


def kip_848_member(node: QueueNode) -> None:
    topics = ("orders",)
    heartbeat = ConsumerHeartbeat(
        "readers", "one", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=topics, owned=(), session_ms=20_000
    )
    assert node.ask(node.broker.groups.submit, heartbeat).code is Code.NONE


def classic_member(node: QueueNode) -> None:
    protocols = (GroupProtocol("range", b""),)
    join = JoinGroup("readers", "", "one", 20_000, 20_000, "consumer", protocols, knows_member_id_required=False)
    replies: list[Any] = []
    node.broker.groups.submit(join, replies.append)
    node.pass_ms(4_000)
    assert [reply.code for reply in replies] == [Code.NONE]


def members(node: QueueNode) -> int:
    questions = (DescribeGroup("readers"), DescribeConsumerGroup("readers"))
    found = [node.ask(node.broker.groups.submit, each) for each in questions]
    return sum(len(getattr(each, "members", ())) for each in found)


@steps
@pytest.mark.parametrize("join", [kip_848_member, classic_member])
def test_a_member_that_falls_silent_leaves_its_group_after_its_session(step_ms: int, join: Any) -> None:
    node = queue_node()
    join(node)
    node.clock.step(step_ms)
    node.pass_ms(14_000)
    assert members(node) == 1
    node.pass_ms(7_000)
    assert members(node) == 0


@steps
def test_a_producer_is_known_for_a_day_after_its_last_batch(step_ms: int) -> None:
    node = queue_node()
    numbered = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    node.publish("orders", b"one", **numbered)
    node.keep_up()
    for _ in range(2):
        node.clock.step(step_ms)
        node.keep_up()
        assert node.publish("orders", b"one", **numbered) == 0
    node.pass_ms(DAY_MS - 1)
    node.keep_up()
    assert node.publish("orders", b"one", **numbered) == 0
    node.pass_ms(1)
    node.keep_up()
    assert node.broker.topics.replica("orders", 0).producers.describe() == []


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
def test_what_the_page_cache_holds_is_synced_every_second(step_ms: int) -> None:
    node = queue_node(durability="os")
    node.publish("orders", b"one")
    node.clock.step(step_ms)
    node.pass_ms(SECOND_MS)
    assert node.broker.topics.replica("orders", 0).log.synced_offset == 1


# -- times


@pytest.mark.parametrize("step_ms", [HOUR_MS, DAY_MS])
def test_what_the_clock_has_passed_is_due_within_a_second(step_ms: int) -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"delay", delay_ms=MINUTE_MS), at(node, b"time", 30 * MINUTE_MS))
    node.clock.step(step_ms)
    node.pass_ms(SECOND_MS)
    assert sorted(node.values("orders")) == [b"delay", b"time"]  # type: ignore[type-var]


def test_a_delay_is_no_longer_because_the_clock_was_set_back_but_a_time_is_a_time() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"delay", delay_ms=5_000), at(node, b"time", 5_000))
    node.clock.step(-HOUR_MS)
    node.put("orders", NewMessage(b"later delay", delay_ms=8_000))
    node.pass_ms(4_900)
    assert node.values("orders") == []
    node.pass_ms(200)
    assert node.values("orders") == [b"delay"]
    node.pass_ms(MINUTE_MS)
    assert node.values("orders") == [b"delay", b"later delay"]
    node.pass_ms(HOUR_MS - 2 * MINUTE_MS)
    assert node.values("orders") == [b"delay", b"later delay"]
    node.pass_ms(2 * MINUTE_MS)
    assert node.values("orders") == [b"delay", b"later delay", b"time"]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_delay_keeps_its_length_over_a_step_back_a_restart_and_a_correction(how: str) -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"delay", delay_ms=2 * HOUR_MS))
    node.clock.step(-HOUR_MS)
    node.pass_ms(10 * MINUTE_MS)
    node.put("orders", NewMessage(b"second", delay_ms=2 * HOUR_MS))
    node = node.restarted(how)
    node.clock.step(HOUR_MS)
    node.pass_ms(HOUR_MS + 49 * MINUTE_MS)
    assert node.values("orders") == []
    node.pass_ms(2 * MINUTE_MS)
    assert node.values("orders") == [b"delay"]
    node.pass_ms(10 * MINUTE_MS)
    assert node.values("orders") == [b"delay", b"second"]


def test_keys_that_are_held_behind_a_delay_follow_it_when_the_clock_is_set_back() -> None:
    node = queue_node(delay_order="hold_key")
    node.put("orders", NewMessage(b"delay", key=b"k", delay_ms=5_000), NewMessage(b"behind", key=b"k"))
    node.clock.step(-HOUR_MS)
    node.put("orders", NewMessage(b"last", key=b"k"))
    node.pass_ms(5_100)
    assert node.values("orders") == [b"delay", b"behind", b"last"]


def test_a_node_whose_clock_was_a_day_slow_at_its_start_does_what_is_due_when_that_is_corrected() -> None:
    now_ms = VirtualClock().now_ms()
    node = QueueNode(MemoryDisk(), VirtualClock(now_ms - DAY_MS))
    node.create("orders", 1)
    wanted = Recurring("every hour", "orders", "0 * * * *", b"tick")
    assert node.reply(lambda done: node.broker.recurring.store(wanted, done)).code is Code.NONE
    node.put("orders", NewMessage(b"time", deliver_at_ms=now_ms + 5_000), NewMessage(b"delay", delay_ms=3_000))
    node.clock.step(DAY_MS)
    node.pass_ms(SECOND_MS)
    assert sorted(node.values("orders")) == [b"delay", b"tick"]  # type: ignore[type-var]
    node.pass_ms(5_000)
    assert sorted(node.values("orders")) == [b"delay", b"tick", b"time"]  # type: ignore[type-var]


def test_a_recurring_schedule_runs_no_moment_twice_when_the_clock_is_set_back() -> None:
    node = queue_node()
    wanted = Recurring("every minute", "orders", "* * * * *", b"tick")
    assert node.reply(lambda done: node.broker.recurring.store(wanted, done)).code is Code.NONE
    node.pass_ms(2 * MINUTE_MS + SECOND_MS)
    assert node.values("orders") == [b"tick"] * 2
    node.clock.step(-10 * MINUTE_MS)
    node.pass_ms(10 * MINUTE_MS - SECOND_MS)
    assert node.values("orders") == [b"tick"] * 2
    node.pass_ms(MINUTE_MS + SECOND_MS)
    assert node.values("orders") == [b"tick"] * 3


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_record_lives_until_the_clock_says_that_it_is_over(step_ms: int) -> None:
    node = queue_node(lease_ms="20000")
    node.put("orders", NewMessage(b"short", expires_at_ms=node.clock.now_ms() + 30 * MINUTE_MS), b"long")
    assert node.received() == [b"short", b"long"]
    node.clock.step(step_ms)
    node.pass_ms(21_000)
    assert node.received() == ([b"long"] if step_ms > 0 else [b"short", b"long"])


def kept(node: QueueNode) -> list[bytes | None]:
    node.keep_up()
    return node.values("orders")


def stamped(node: QueueNode, *values: bytes) -> None:
    """As a producer does: with the time that it is."""
    node.publish("orders", *values, timestamp=node.clock.now_ms())
    node.commit()


def test_a_clock_that_is_wrong_for_minutes_deletes_nothing() -> None:
    node = queue_node(retention_ms=str(DAY_MS))
    stamped(node, b"one")
    for _ in range(3):
        node.clock.step(7 * DAY_MS)
        for _ in range(9):
            assert kept(node) == [b"one"]
            node.pass_ms(MINUTE_MS)
        node.clock.step(-7 * DAY_MS)
        assert kept(node) == [b"one"]
        node.pass_ms(MINUTE_MS)
    node.pass_ms(DAY_MS)
    assert kept(node) == []


def test_a_clock_that_was_set_forward_and_stays_there_decides_what_is_old() -> None:
    node = queue_node(retention_ms=str(DAY_MS))
    stamped(node, b"one")
    node.clock.step(HOUR_MS)
    node.keep_up()
    node.pass_ms(DAY_MS - HOUR_MS)
    assert kept(node) == [b"one"]
    node.pass_ms(1)
    assert kept(node) == []


def test_a_clock_that_goes_on_being_set_forward_is_not_believed_before_it_stays() -> None:
    node = queue_node(retention_ms=str(DAY_MS))
    stamped(node, b"one")
    for _ in range(5):
        node.clock.step(DAY_MS)
        assert kept(node) == [b"one"]
        node.pass_ms(9 * MINUTE_MS)
        assert kept(node) == [b"one"]
    node.pass_ms(MINUTE_MS)
    assert kept(node) == []


def test_a_clock_that_was_set_back_deletes_nothing_that_is_young_by_it() -> None:
    node = queue_node(retention_ms=str(DAY_MS))
    stamped(node, b"one")
    node.pass_ms(DAY_MS)
    node.clock.step(-HOUR_MS)
    node.pass_ms(HOUR_MS)
    assert kept(node) == [b"one"]
    node.pass_ms(1)
    assert kept(node) == []


def test_a_tombstone_is_not_compacted_away_by_a_clock_that_is_wrong_for_minutes() -> None:
    node = queue_node(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="1000")

    def put(key: bytes, value: bytes | None) -> list[bytes | None]:
        node.broker.publisher.publish("orders", 0, data(value, key=key, timestamp=node.clock.now_ms()))
        node.commit()
        node.pass_ms(2 * SECOND_MS)
        return kept(node)

    put(b"k", b"one")
    put(b"k", None)
    assert put(b"o", b"1") == [None, b"1"]
    node.clock.step(7 * DAY_MS)
    put(b"o", b"2")
    assert None in put(b"o", b"3")
    node.clock.step(-7 * DAY_MS)
    assert None in put(b"o", b"4")
    node.pass_ms(7 * DAY_MS)
    put(b"o", b"5")
    assert None not in put(b"o", b"6")

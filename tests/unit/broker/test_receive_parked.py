"""Whoever waits for records: woken by whatever makes something ready, and gone without a trace."""

import pytest

from goqueue.machines.deliveries.commands import How, Place
from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import QueueNode, queue_node

LEASE_MS = 30_000
WAIT_MS = 20_000


def is_clean(node: QueueNode, partitions: int = 1) -> bool:
    """Nobody waits, watches or has a timer."""
    watchers = [node.broker.topics.replica("orders", each)._watchers for each in range(partitions)]
    return not node.broker.receiver._parked and not any(watchers)


def test_without_a_wait_an_empty_answer_comes_at_once() -> None:
    node = queue_node()
    assert node.park().replies == [[]]


def test_an_empty_answer_comes_when_the_wait_is_over_and_not_before() -> None:
    node = queue_node(partitions=2)
    parked = node.park(wait_ms=WAIT_MS)
    timers = node.clock.timers
    node.pass_ms(WAIT_MS - 1)
    assert not parked.is_over
    node.pass_ms(1)
    assert parked.replies == [[]]
    assert is_clean(node, 2)
    assert node.clock.timers == timers - 1


def test_a_publish_wakes_who_waits() -> None:
    node = queue_node(partitions=3)
    parked = node.park(wait_ms=WAIT_MS)
    node.put("orders", NewMessage(b"a", partition=2))
    assert parked.values == [b"a"]
    assert is_clean(node, 3)


def test_the_end_of_another_consumers_lease_wakes_who_waits() -> None:
    node = queue_node()
    node.put("orders", b"a")
    node.receive()
    parked = node.park(consumer="two", wait_ms=2 * LEASE_MS)
    node.pass_ms(LEASE_MS - 1)
    assert not parked.is_over
    node.pass_ms(1)
    assert [(each.value, each.attempt) for each in parked.got] == [(b"a", 2)]


@pytest.mark.parametrize("delay_ms", [0, 1, 1999])
def test_the_end_of_a_chosen_delay_wakes_who_waits(delay_ms: int) -> None:
    node = queue_node()
    node.put("orders", b"a")
    held = node.receive()
    parked = node.park(consumer="two", wait_ms=WAIT_MS)
    node.settle(held, How.RETRY, delay_ms)
    node.pass_ms(max(0, delay_ms - 1))
    assert parked.is_over is (delay_ms == 0)
    node.pass_ms(1)
    assert parked.values == [b"a"]


def test_a_long_backoff_does_not_hold_up_a_short_one() -> None:
    node = queue_node()
    node.put("orders", b"long", b"short")
    first, second = node.receive()
    node.settle([first], How.RETRY, 60_000)
    node.settle([second], How.RETRY, 1000)
    parked = node.park(wait_ms=WAIT_MS)
    node.pass_ms(1000)
    assert parked.values == [b"short"]


def test_an_ack_that_frees_room_wakes_who_held_too_much() -> None:
    node = queue_node(unacked_max="2")
    node.put("orders", b"a", b"b", b"c")
    held = node.receive()
    parked = node.park(wait_ms=WAIT_MS)
    assert not parked.is_over
    node.ack(held[0])
    assert parked.values == [b"c"]


def test_an_ack_that_frees_a_key_wakes_who_waits() -> None:
    node = queue_node(lease_order="key")
    node.put("orders", NewMessage(b"1", key=b"k"), NewMessage(b"2", key=b"k"))
    held = node.receive()
    parked = node.park(consumer="two", wait_ms=WAIT_MS)
    node.ack(*held)
    assert parked.values == [b"2"]


def test_those_who_waited_longest_are_served_first_and_each_by_what_there_is() -> None:
    node = queue_node()
    parked = [node.park(consumer=f"c{number}", most=2, wait_ms=WAIT_MS) for number in range(3)]
    node.put("orders", b"a", b"b", b"c")
    assert [each.is_over for each in parked] == [True, True, False]
    assert [each.values for each in parked[:2]] == [[b"a", b"b"], [b"c"]]
    node.put("orders", b"d")
    assert parked[2].values == [b"d"]


def test_who_may_hold_no_more_is_passed_over_for_the_next() -> None:
    node = queue_node(unacked_max="1")
    node.put("orders", b"a")
    node.receive(consumer="full")
    full = node.park(consumer="full", wait_ms=WAIT_MS)
    free = node.park(consumer="free", wait_ms=WAIT_MS)
    node.put("orders", b"b")
    assert (full.is_over, free.values) == (False, [b"b"])


def test_who_waits_in_one_group_is_not_woken_for_another() -> None:
    node = queue_node()
    node.put("orders", b"a")
    held = node.receive(group="g")
    parked = node.park(group="h", wait_ms=WAIT_MS, start="latest")
    node.settle(held, How.RETRY, 0)
    assert not parked.is_over
    node.put("orders", b"b")
    assert parked.values == [b"b"]


def test_who_gave_up_waiting_leaves_nothing_behind_and_takes_nothing() -> None:
    node = queue_node(partitions=2)
    timers = node.clock.timers
    parked = node.park(wait_ms=WAIT_MS)
    parked.cancel()
    parked.cancel()
    assert (is_clean(node, 2), node.clock.timers) == (True, timers)
    node.put("orders", b"a")
    node.pass_ms(WAIT_MS)
    assert parked.replies == []
    (got,) = node.receive(consumer="two")
    assert (got.value, got.attempt) == (b"a", 1)


def test_who_gives_up_before_its_group_is_open_is_not_answered() -> None:
    node = queue_node()
    node.put("orders", b"a")
    node.commit()
    commit, node.commit = node.commit, lambda: None  # type: ignore[method-assign]
    parked = node.park(wait_ms=WAIT_MS)
    parked.cancel()
    node.commit = commit  # type: ignore[method-assign]
    node.pass_ms(WAIT_MS)
    assert (parked.replies, is_clean(node)) == ([], True)


def test_all_who_wait_hear_that_their_topic_is_gone() -> None:
    node = queue_node()
    parked = [node.park(consumer=f"c{number}", wait_ms=WAIT_MS) for number in range(3)]
    node.delete("orders")
    assert [each.errors for each in parked] == [["there is no partition 0 of 'orders'"]] * 3
    assert not node.broker.receiver._parked


def test_a_topic_made_again_under_the_same_name_is_a_new_one_for_a_group() -> None:
    node = queue_node()
    node.put("orders", b"old", b"older")
    node.ack(*node.receive(most=1))
    node.delete("orders")
    assert node.broker.queues.places("workers") == []
    node.create("orders")
    parked = node.park(wait_ms=WAIT_MS)
    node.put("orders", b"new")
    assert parked.values == [b"new"]


def test_a_failed_disk_is_told_to_all_who_wait() -> None:
    node = queue_node()
    parked = [node.park(consumer=f"c{number}", wait_ms=WAIT_MS) for number in range(2)]
    node.disk.faults.add("sync", 5, prefix="logs/orders/")
    assert node.send("orders", b"a")[0].error is not None
    assert [len(each.errors) for each in parked] == [1, 1]
    assert not node.broker.receiver._parked


def test_a_receive_from_within_an_answer_waits_for_its_turn() -> None:
    """A door may ask again as soon as it hears that something was settled."""
    node = queue_node()
    node.put("orders", b"a", b"b")
    (held,) = node.receive(most=1)
    asked: list[object] = []
    node.broker.settler.settle(
        [], lambda verdicts: asked.append(node.broker.receiver.queues.measure(Place("workers", "orders", 0)))
    )
    assert len(asked) == 1
    node.ack(held)
    assert node.received() == [b"b"]

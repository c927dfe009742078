"""Settling: what a consumer says about a record holds, is durable when it is answered, and is told from nonsense."""

from functools import partial
from typing import Any

import pytest

from goqueue.broker.queues.settle import Wanted
from goqueue.machines.deliveries.commands import ANY_LEASE, How, Place, Settle, Settlement, Verdict
from goqueue.model.errors import InvalidOption, MalformedReceipt
from goqueue.model.receipts import Receipt, encode_receipt
from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import Got, QueueNode, queue_node

LEASE_MS = 30_000
STARTS = ("stop", "kill", "power")
DONE, UNKNOWN, REPEATED, EXPIRED = Verdict.DONE, Verdict.UNKNOWN, Verdict.REPEATED, Verdict.EXPIRED


def leased(*values: bytes) -> tuple[QueueNode, list[Got]]:
    node = queue_node()
    node.put("orders", *values)
    return node, node.receive(most=len(values))


def verdict(node: QueueNode, got: Got, how: How = How.ACK, delay_ms: int = -1) -> Verdict:
    (found,) = node.verdicts(Wanted(got.receipt, how, delay_ms))
    assert isinstance(found, Verdict)
    return found


# -- ack


@pytest.mark.parametrize("how", STARTS)
def test_an_acked_record_never_comes_back(how: str) -> None:
    node, (_, second) = leased(b"a", b"b")
    node.ack(second)
    node.pass_ms(10 * LEASE_MS)
    assert [each.value for each in node.receive()] == [b"a"]
    node = node.restarted(how)
    assert node.received() == [b"a"]
    assert verdict(node, second) is REPEATED


def test_an_ack_is_answered_when_it_is_durable() -> None:
    node, (got,) = leased(b"a")
    answers: list[Any] = []
    node.broker.settler.settle([Wanted(got.receipt)], answers.append)
    node.clock.run()
    assert answers == []
    node.commit()
    assert answers == [[DONE]]


def test_an_ack_after_the_lease_ended_counts_if_nobody_else_was_given_the_record() -> None:
    node, (got,) = leased(b"a")
    node.pass_ms(LEASE_MS + 5000)
    assert verdict(node, got) is DONE
    node.pass_ms(10 * LEASE_MS)
    assert node.received() == []


def test_an_ack_after_the_record_was_given_to_another_is_too_late() -> None:
    node, (got,) = leased(b"a")
    node.pass_ms(LEASE_MS)
    (other,) = node.receive(consumer="two")
    for how in (How.ACK, How.RETRY, How.REJECT, How.EXTEND):
        assert verdict(node, got, how) is EXPIRED
    assert verdict(node, other) is DONE


# -- nack


def test_a_nacked_record_comes_back_after_the_delay_that_was_chosen() -> None:
    node, (got,) = leased(b"a")
    node.settle([got], How.RETRY, delay_ms=2000)
    node.pass_ms(1999)
    assert node.received() == []
    node.pass_ms(1)
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"a", 2)]


def test_without_a_chosen_delay_the_wait_doubles_up_to_its_limit() -> None:
    node = queue_node(retry_backoff_ms="100", retry_backoff_max_ms="700", attempts_max="8")
    node.put("orders", b"a")
    waits = []
    for _ in range(6):
        (got,) = node.receive()
        node.settle([got], How.RETRY)
        began_ms = node.clock.now_ms()
        parked = node.park(wait_ms=10_000)
        while not parked.is_over:
            node.pass_ms(10)
        waits.append(node.clock.now_ms() - began_ms)
        node.settle(parked.got, How.UNDO)
    assert waits == [100, 200, 400, 700, 700, 700]


@pytest.mark.parametrize("how", STARTS)
def test_a_chosen_delay_outlives_a_restart(how: str) -> None:
    node, (got,) = leased(b"a")
    node.settle([got], How.RETRY, delay_ms=5000)
    node = node.restarted(how)
    node.pass_ms(4999)
    assert node.received() == []
    node.pass_ms(1)
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"a", 2)]


# -- extend


def test_an_extended_lease_ends_when_it_was_asked_to_from_then_on() -> None:
    node, (first, second) = leased(b"a", b"b")
    node.pass_ms(LEASE_MS - 1)
    assert verdict(node, first, How.EXTEND, 60_000) is DONE
    node.pass_ms(1)
    assert node.received(consumer="two") == [b"b"]
    node.pass_ms(59_998)
    assert node.received(consumer="two", lease_ms=1) == [b"b"]
    node.pass_ms(1)
    assert b"a" in node.received(consumer="two")
    assert verdict(node, second) is EXPIRED


def test_a_lease_that_ended_cannot_be_extended() -> None:
    node, (got,) = leased(b"a")
    node.pass_ms(LEASE_MS)
    assert verdict(node, got, How.EXTEND, 1000) is EXPIRED
    assert node.received() == [b"a"]


def test_an_extension_may_shorten_a_lease_down_to_nothing() -> None:
    node, (got,) = leased(b"a")
    assert verdict(node, got, How.EXTEND, 0) is DONE
    node.pass_ms(1)
    assert node.received(consumer="two") == [b"a"]


# -- what cannot be settled


def test_malformed_unknown_repeated_and_expired_are_told_apart() -> None:
    node, (acked, late) = leased(b"a", b"b")
    node.put("orders", b"never delivered")
    place = Place("workers", "orders", 0)
    node.ack(acked)
    node.pass_ms(LEASE_MS)
    node.receive(consumer="two", most=1)
    epoch = node.broker.topics.leader_epoch("orders", 0)
    receipt = partial(node.broker.settler.receipt, epoch=epoch)
    forged = encode_receipt(Receipt(1, *place, 0, 1), b"another key of some bytes")
    answers = node.verdicts(
        Wanted("nonsense"),
        Wanted(forged),
        Wanted(acked.receipt[:-1] + ("A" if acked.receipt[-1] != "A" else "B")),
        Wanted(receipt(place, 2, 99_999)),
        Wanted(receipt(Place("nobody", "orders", 0), 0, 1)),
        Wanted(receipt(Place("workers", "nowhere", 0), 0, 1)),
        Wanted(acked.receipt),
        Wanted(late.receipt),
    )
    assert [type(each) for each in answers[:3]] == [MalformedReceipt] * 3
    assert answers[3:] == [UNKNOWN, UNKNOWN, UNKNOWN, REPEATED, EXPIRED]


def test_a_rejected_and_a_nacked_record_cannot_be_settled_again() -> None:
    node, (rejected, nacked) = leased(b"a", b"b")
    node.settle([rejected], How.REJECT)
    node.settle([nacked], How.RETRY, delay_ms=0)
    assert verdict(node, rejected) is REPEATED
    (again,) = node.receive()
    assert verdict(node, nacked) is EXPIRED
    assert verdict(node, again) is DONE


def test_a_receipt_of_a_deleted_topic_is_unknown_also_when_its_name_is_used_again() -> None:
    node, (got,) = leased(b"a")
    node.delete("orders")
    assert verdict(node, got) is UNKNOWN
    node.create("orders")
    node.put("orders", b"new")
    node.receive()
    assert verdict(node, got) is not DONE


# -- receipts across a restart


@pytest.mark.parametrize("how", STARTS)
def test_work_done_over_a_restart_may_be_settled_with_its_old_receipt(how: str) -> None:
    node, got = leased(b"a", b"b", b"c", b"d")
    node = node.restarted(how)
    assert [verdict(node, each, settled) for each, settled in zip(got, (How.ACK, How.REJECT), strict=False)] == [
        DONE,
        DONE,
    ]
    assert verdict(node, got[2], How.RETRY, 1000) is DONE
    assert node.received() == [b"d"]
    assert verdict(node, got[3]) is EXPIRED
    assert [verdict(node, each) for each in got[:2]] == [REPEATED, REPEATED]
    node.pass_ms(1000)
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"c", 2)]
    assert node.values("orders.dlq") == [b"b"]


# -- many at once


def test_a_batch_of_receipts_has_an_answer_for_each_in_its_order() -> None:
    node = queue_node(partitions=3)
    node.put("orders", *(NewMessage(b"%d" % number, partition=number % 3) for number in range(9)))
    got = sorted(node.receive(), key=lambda each: each.value or b"")
    wanted = [Wanted(each.receipt) for each in got[:4]]
    wanted += [Wanted("nonsense"), Wanted(got[0].receipt), Wanted(got[4].receipt, How.RETRY, 0)]
    wanted += [Wanted(got[5].receipt, How.REJECT)]
    answers = node.verdicts(*wanted)
    assert answers[:4] == [DONE] * 4
    assert isinstance(answers[4], MalformedReceipt)
    assert answers[5:] == [REPEATED, DONE, DONE]
    assert node.received() == [b"4"]
    node.pass_ms(LEASE_MS)
    assert sorted(value or b"" for value in node.received()) == [b"4", b"6", b"7", b"8"]


def test_nothing_to_settle_is_answered_too() -> None:
    assert queue_node().verdicts() == []


def test_a_range_is_settled_as_a_whole_or_not_at_all() -> None:
    node, got = leased(*(b"%d" % number for number in range(10)))
    place = Place("workers", "orders", 0)

    def settle(first: int, last: int, consumer: str) -> Verdict:
        command = Settle(place, (Settlement(first, last, lease=ANY_LEASE),), consumer)
        (found,) = node.reply(lambda done: node.broker.queues.submit(command, done)).verdicts
        assert isinstance(found, Verdict)
        return found

    assert settle(2, 5, "two") is EXPIRED
    assert settle(2, 5, "one") is DONE
    assert settle(4, 7, "one") is REPEATED
    assert settle(8, 20, "one") is UNKNOWN
    node.pass_ms(LEASE_MS)
    assert node.received() == [b"0", b"1", b"6", b"7", b"8", b"9"]
    assert verdict(node, got[0]) is EXPIRED


def test_thousands_of_acks_in_any_order_leave_nothing_behind() -> None:
    """Acks are ranges and blocks: what is settled below the first open record takes no room at all."""
    node = queue_node(unacked_max="1000000")
    for _ in range(6):
        node.publish("orders", *[b"x"] * 1000)
    node.commit()
    got = node.receive(most=6000)
    node.ack(*got[1::2])
    node.ack(*got[0::2])
    measure = node.broker.queues.measure(Place("workers", "orders", 0))
    assert (measure.start_offset, sum(measure.ready), sum(measure.leased)) == (6000, 0, 0)
    state = node.broker.queues.state_of("workers")
    assert [(each.start_offset, each.settled) for each in state.places] == [(6000, ())]


# -- options


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("lease.ms", "soon", "must be a number"),
        ("lease.ms", "0", "must be from 1"),
        ("attempts.max", "201", "must be from 0 to 200"),
        ("lane.weights", "1,2,3", "five whole numbers"),
        ("start", "middle", "must be earliest, latest or such as by_duration"),
        ("session.ms", "1", "must be from 1000"),
        ("retention.ms", "1", "unknown option of a group 'retention.ms'"),
    ],
)
def test_an_option_of_a_group_that_cannot_be_is_refused_and_none_is_set(name: str, text: str, says: str) -> None:
    node = queue_node()
    with pytest.raises(InvalidOption, match=says):
        node.broker.queues.set_options("workers", {"unacked.max": "5", name: text}, lambda reply: None)
    node.commit()
    assert node.broker.queues.options("workers") == {}


@pytest.mark.parametrize("how", STARTS)
def test_options_of_a_group_are_kept_over_a_restart(how: str) -> None:
    node, _ = leased(b"a")
    node.reply(lambda done: node.broker.queues.set_options("workers", {"lease.ms": "500"}, done))
    node = node.restarted(how)
    (got,) = node.receive()
    assert got.deadline_ms - node.clock.now_ms() == 500

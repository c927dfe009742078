"""Dead letters: what a group gives up on is kept elsewhere with all that is known about it, and never comes back."""

import errno
from typing import Any

import pytest

from goqueue.broker.dead_letters.identities import LetterProducers
from goqueue.broker.queues.settle import Wanted
from goqueue.machines.controller_commands import AddPartitions
from goqueue.machines.deliveries.commands import How, Place, Verdict
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, Indeterminate
from goqueue.model.kept_options import LONG_MAX
from goqueue.model.lanes import Lane
from goqueue.model.partition_limits import PartitionLimits
from goqueue.records.dead_letters import NAME_CHARS_MAX, dead_letter_topic
from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import QueueNode, queue_node

LEASE_MS = 30_000
STARTS = ("stop", "kill", "power")


def letters(node: QueueNode, topic: str = "orders.dlq", partition: int = 0) -> list[dict[str, str]]:
    """What is said about each, less the prefix."""
    return [
        {name.removeprefix("gq-dlq-"): (text or b"").decode() for name, text in each.headers if name[:7] == "gq-dlq-"}
        for each in node.records(topic, partition)
    ]


def dead(node: QueueNode) -> list[tuple[bytes | None, str]]:
    if "orders.dlq" not in node.broker.topics.image.topics:
        return []
    said = [each["reason"] for each in letters(node)]
    return list(zip(node.values("orders.dlq"), said, strict=True))


# -- what makes one


def test_a_rejected_record_is_a_dead_letter_at_once_and_settled() -> None:
    node = queue_node()
    node.put("orders", b"bad", b"good")
    bad, good = node.receive()
    node.settle([bad], How.REJECT, reason="cannot parse")
    assert dead(node) == [(b"bad", "rejected")]
    node.ack(good)
    node.pass_ms(10 * LEASE_MS)
    assert node.received() == []
    place = Place("workers", "orders", 0)
    assert node.broker.queues.measure(place).start_offset == 2


@pytest.mark.parametrize("how", ["lease ends", "nack"])
def test_after_as_many_deliveries_as_allowed_it_is_a_dead_letter_and_never_comes_again(how: str) -> None:
    node = queue_node(attempts_max="3")
    node.put("orders", b"a")
    times = []
    for attempt in (1, 2, 3):
        (got,) = node.receive()
        times.append(node.clock.now_ms())
        assert got.attempt == attempt
        assert dead(node) == []
        if how == "nack":
            node.settle([got], How.RETRY, delay_ms=0)
        else:
            node.pass_ms(LEASE_MS)
    node.pass_ms(100)
    assert dead(node) == [(b"a", "attempts")]
    (about,) = letters(node)
    assert (about["attempts"], about["first-delivered-at"]) == ("3", str(times[0]))
    for _ in range(5):
        node.pass_ms(LEASE_MS)
        assert node.received() == []
    assert dead(node) == [(b"a", "attempts")]


def test_nothing_dies_of_attempts_that_reached_nobody() -> None:
    """Time alone kills nothing that has no time to live, and neither does a group that nobody reads."""
    node = queue_node(attempts_max="1")
    node.put("orders", b"a")
    node.park(wait_ms=0, most=0)
    node.pass_ms(100 * LEASE_MS)
    assert dead(node) == []
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"a", 1)]


def test_attempts_are_counted_over_restarts() -> None:
    node = queue_node(attempts_max="3")
    node.put("orders", b"a")
    for how in STARTS:
        node.settle(node.receive(), How.RETRY, delay_ms=0)
        node.pass_ms(100)
        node = node.restarted(how)
    assert node.received() == []
    assert dead(node) == [(b"a", "attempts")]
    assert letters(node)[0]["attempts"] == "3"


def test_a_topic_without_a_limit_on_bytes_has_dead_letters() -> None:
    """What is said about a dead letter makes it larger than its topic allows, and there is no larger number."""
    node = queue_node(max_message_bytes=str(LONG_MAX))
    node.put("orders", b"bad")
    node.settle(node.receive(), How.REJECT)
    assert dead(node) == [(b"bad", "rejected")]


def test_an_expired_record_is_a_dead_letter_where_the_topic_keeps_them() -> None:
    node = queue_node(message_ttl_ms="5000")
    node.put("orders", b"a")
    assert node.received(group="watching", lease_ms=1) == [b"a"]
    node.pass_ms(5000)
    assert dead(node) == [(b"a", "expired")]
    assert node.received(group="watching") == []


def test_an_expired_record_is_dropped_where_the_topic_says_so() -> None:
    node = queue_node(message_ttl_ms="5000", expired_messages="drop")
    node.put("orders", b"a")
    assert node.received(lease_ms=1) == [b"a"]
    node.pass_ms(5000)
    assert (node.received(), dead(node)) == ([], [])


def test_a_dead_letter_does_not_expire_again() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"a", expires_at_ms=node.clock.now_ms() + 1000))
    node.received(lease_ms=1)
    node.pass_ms(60_000)
    assert node.received("orders.dlq", group="undertaker") == [b"a"]


# -- what it says


def test_a_dead_letter_has_the_bytes_of_its_record_and_says_where_when_why_and_for_whom() -> None:
    node = queue_node(partitions=2, attempts_max="5")
    headers = [("trace", b"1"), ("trace", b"2"), ("none", None)]
    sent_ms = node.clock.now_ms()
    node.put("orders", NewMessage(b"first", partition=1))
    node.put("orders", NewMessage(b"\x00bad", b"key", headers, partition=1, lane=Lane.HIGH, timestamp_ms=sent_ms - 77))
    (bad,) = (each for each in node.receive() if each.key == b"key")
    node.settle([bad], How.RETRY, delay_ms=2000)
    node.pass_ms(2000)
    (again,) = node.receive()
    node.pass_ms(500)
    node.settle([again], How.REJECT, reason="cannot parse: ünexpected")
    (record,) = node.records("orders.dlq", 1)
    assert (record.key, record.value) == (b"key", b"\x00bad")
    assert record.headers[:4] == [*headers, ("gq-priority", b"high")]
    assert letters(node, partition=1) == [
        {
            "topic": "orders",
            "partition": "1",
            "offset": "1",
            "group": "workers",
            "reason": "rejected",
            "error": "cannot parse: ünexpected",
            "attempts": "2",
            "first-delivered-at": str(sent_ms),
            "died-at": str(sent_ms + 2500),
            "timestamp": str(sent_ms - 77),
        }
    ]
    assert record.timestamp == sent_ms + 2500


def test_two_groups_have_a_dead_letter_each() -> None:
    node = queue_node()
    node.put("orders", b"a")
    for group in ("g", "h"):
        node.settle(node.receive(group=group), How.REJECT, reason=f"says {group}")
    assert [(each["group"], each["error"]) for each in letters(node)] == [("g", "says g"), ("h", "says h")]


def test_a_long_complaint_is_cut() -> None:
    node = queue_node()
    node.put("orders", b"a")
    node.settle(node.receive(), How.REJECT, reason="x" * 5000)
    assert letters(node)[0]["error"] == "x" * 1000


# -- where


def test_the_topic_of_dead_letters_is_made_when_the_first_dies() -> None:
    node = queue_node(partitions=3)
    node.put("orders", *(NewMessage(b"%d" % number, partition=number) for number in range(3)))
    got = node.receive()
    assert "orders.dlq" not in node.broker.topics.image.topics
    node.settle(got, How.REJECT)
    assert node.broker.topics.image.topics["orders.dlq"].partitions == 3
    assert [node.values("orders.dlq", partition) for partition in range(3)] == [[b"0"], [b"1"], [b"2"]]


def test_a_topic_of_that_name_that_exists_is_used_as_it_is() -> None:
    node = queue_node(partitions=3)
    node.create("orders.dlq", 1, retention_ms="1000000", max_message_bytes="700")
    values = [b"%d" % number * 100 for number in range(6)]
    node.put("orders", *(NewMessage(value, partition=2) for value in values))
    node.settle(node.receive(), How.REJECT)
    node.pass_ms(100)
    assert node.values("orders.dlq") == values


def test_the_largest_record_that_a_topic_takes_fits_its_dead_letters() -> None:
    node = queue_node(max_message_bytes="3000000")
    node.put("orders", b"x" * 2_999_000)
    node.settle(node.receive(), How.REJECT, reason="y" * 1000)
    node.pass_ms(2000)
    assert node.values("orders.dlq") == [b"x" * 2_999_000]


def test_dead_letters_of_dead_letters_have_a_topic_too() -> None:
    node = queue_node()
    node.put("orders", b"a")
    node.settle(node.receive(), How.REJECT)
    node.settle(node.receive("orders.dlq"), How.REJECT)
    assert node.values("orders.dlq.dlq") == [b"a"]


def test_a_name_that_would_be_too_long_is_cut_and_stays_unlike_others() -> None:
    long, other = "a" * 248, "a" * 247 + "b"
    assert dead_letter_topic("orders") == "orders.dlq"
    assert len(dead_letter_topic(long)) == NAME_CHARS_MAX
    assert dead_letter_topic(long) != dead_letter_topic(other)


# -- whatever goes wrong


def test_more_die_at_once_than_fit_into_a_batch_and_each_is_written_once() -> None:
    node = queue_node()
    values = [b"%03d" % number for number in range(350)]
    node.put("orders", *values)
    node.settle(node.receive(most=1000), How.REJECT)
    assert node.values("orders.dlq") == values
    assert node.received() == []


def test_dead_letters_that_cannot_be_written_are_kept_and_tried_again() -> None:
    node = queue_node()
    node.put("orders", b"a")
    node.create("orders.dlq")
    fault = node.disk.faults.add("write", errno.EIO, prefix="logs/orders.dlq/")
    node.settle(node.receive(), How.REJECT)
    assert fault.hits == 1
    assert node.broker.queues.measure(Place("workers", "orders", 0)).dead == 1
    node.pass_ms(10_000)
    assert node.received() == []
    node = node.restarted("power")  # a log that failed is out of service until then
    node.pass_ms(1000)
    assert dead(node) == [(b"a", "rejected")]
    assert node.received() == []


@pytest.mark.parametrize("how", STARTS)
def test_a_dead_letter_survives_a_restart_and_its_record_stays_settled(how: str) -> None:
    node = queue_node()
    node.put("orders", b"a")
    (got,) = node.receive()
    node.settle([got], How.REJECT)
    node = node.restarted(how)
    node.pass_ms(10 * LEASE_MS)
    assert (node.received(), dead(node)) == ([], [(b"a", "rejected")])
    assert node.verdicts(Wanted(got.receipt)) == [Verdict.REPEATED]


def test_a_dead_letter_whose_record_retention_took_is_given_up() -> None:
    node = queue_node()
    node.put("orders", b"a", b"b")
    first, second = node.receive()
    node.broker.settler.settle([Wanted(first.receipt, How.REJECT)], lambda verdicts: None)
    node.broker.topics.replica("orders", 0).delete_before(1)
    node.pass_ms(2000)
    assert node.broker.queues.measure(Place("workers", "orders", 0)).dead == 0
    node.ack(second)
    assert node.received() == []


def test_where_the_node_cannot_have_many_more_partitions_one_takes_all_dead_letters() -> None:
    node = queue_node()
    node.ask(node.broker.topics.submit, AddPartitions("orders", 3))
    topics: Any = node.broker.topics
    topics._store._store._coordinator.peek()._limits = PartitionLimits(in_all=4)
    node.put("orders", b"bad")
    node.settle(node.receive(), How.REJECT)
    assert node.broker.topics.image.topics["orders.dlq"].partitions == 1
    assert dead(node) == [(b"bad", "rejected")]


def test_a_topic_whose_name_collides_does_not_hold_up_dead_letters() -> None:
    node = queue_node()
    assert node.create("orders_dlq").code is Code.NONE
    node.put("orders", b"bad")
    node.settle(node.receive(), How.REJECT)
    assert dead(node) == [(b"bad", "rejected")]
    assert node.values("orders_dlq") == []


# -- in a cluster


class LossyAppends:
    """Another node, which is this one: it writes what it is given, or not, and its answer is lost, or not."""

    def __init__(self, node: QueueNode, *lost: str) -> None:
        self._node = node
        self._lost = list(lost)
        """`before`: not written, `after`: written, and nobody is told either way."""

    def is_elsewhere(self, topic: str, partition: int) -> bool:
        return self._node.broker.topics.exists(topic, partition)

    def bytes_max(self, topic: str) -> int:
        assert topic in self._node.broker.topics.image.topics
        return 100_000

    def append(self, topic: str, partition: int, batch: bytes, on_appended: Any) -> None:
        what = self._lost.pop(0) if self._lost else ""
        base_offset = -1
        if what != "before":
            try:
                _, appended = self._node.broker.publisher.publish(topic, partition, memoryview(bytearray(batch)))
            except GoQueueError as error:
                on_appended(error)
                return
            base_offset = appended.base_offset
        on_appended(Indeterminate("the answer was lost") if what else base_offset)


def lossy_node(*lost: str) -> QueueNode:
    node = queue_node()
    writer = node.broker.reliabilities._writer
    writer.appends = LossyAppends(node, *lost)  # type: ignore[assignment]
    writer.producers = LetterProducers(node.broker.transactions.ids)
    return node


@pytest.mark.parametrize("lost", [("after",), ("before",), ("after", "after", "before", "after"), ("before", "after")])
def test_a_dead_letter_whose_answer_was_lost_is_there_once(lost: tuple[str, ...]) -> None:
    node = lossy_node(*lost)
    node.put("orders", b"a", b"b", b"c")
    first, *rest = node.receive()
    node.settle([first], How.REJECT)
    node.settle(rest, How.REJECT)  # they died meanwhile, and wait for the first
    node.pass_ms(10_000)
    assert [value for value, _ in dead(node)] == [b"a", b"b", b"c"]
    assert node.broker.queues.measure(Place("workers", "orders", 0)).start_offset == 3


def test_letters_go_on_as_another_producer_where_the_log_has_lost_some() -> None:
    node = lossy_node()
    node.put("orders", b"a", b"b")
    first, second = node.receive()
    node.settle([first], How.REJECT)
    node.pass_ms(2000)
    states = node.broker.topics.replica("orders.dlq", 0).producers._producers
    for each in states.values():
        each.batches = [(7, 7, 7, 7, 0)]  # as if others had been there in its place
    node.settle([second], How.REJECT)
    node.pass_ms(5000)
    assert [value for value, _ in dead(node)] == [b"a", b"b"]
    assert len(states) == 2

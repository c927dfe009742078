"""Sending: messages find their partitions, each has its own answer, and none suffers for another."""

import errno
from collections import Counter
from typing import Any

import pytest

from goqueue.machines.controller_commands import AddPartitions, SetOptions
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import BatchTooLarge, InvalidWish
from goqueue.model.lanes import Lane
from goqueue.model.recurring import Recurring
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.partitioners import Partitioner, partition_for
from tests.unit.broker.queue_node import QueueNode, queue_node

KEYS = [b"customer-%d" % number for number in range(50)]


def partitions_of(sent: list[Sent]) -> list[int]:
    assert [each.error for each in sent] == [None] * len(sent)
    return [each.partition for each in sent]


# -- which partition


@pytest.mark.parametrize("partitioner", [each for each in Partitioner if each is not Partitioner.ROUND_ROBIN])
def test_a_key_goes_where_its_topic_says(partitioner: Partitioner) -> None:
    node = queue_node(partitions=7)
    node.create("prices", 7, partitioner=partitioner.value)
    messages = [NewMessage(b"x", key) for key in KEYS]
    first = partitions_of(node.send("prices", *messages))
    node.send("prices", b"keyless", b"keyless")
    assert partitions_of(node.send("prices", *messages)) == first
    assert first == [partition_for(key, 7, partitioner) for key in KEYS]
    assert [node.broker.sender.choose("prices", each) for each in messages] == first


def test_without_a_word_a_key_goes_where_kafkas_java_client_puts_it() -> None:
    """So that its records and ours with one key meet. The numbers are those of Kafka's own test of its hash."""
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, hashed in known.items():
        node = queue_node(partitions=5)
        (sent,) = node.send("orders", NewMessage(b"x", key))
        assert sent.partition == (hashed & 0x7FFFFFFF) % 5


def test_what_a_topic_says_of_keys_holds_from_when_it_is_said() -> None:
    node = queue_node(partitions=7)
    messages = [NewMessage(b"x", key) for key in KEYS]
    assert partitions_of(node.send("orders", *messages)) == [partition_for(key, 7, Partitioner.MURMUR2) for key in KEYS]
    node.ask(node.broker.topics.submit, SetOptions("orders", {"partitioner": "crc32"}))
    assert partitions_of(node.send("orders", *messages)) == [partition_for(key, 7, Partitioner.CRC32) for key in KEYS]


@pytest.mark.parametrize("kind", [Partitioner.MURMUR2, Partitioner.MURMUR3, Partitioner.CRC32])
def test_a_recurring_schedule_publishes_where_the_topic_puts_its_key(kind: Partitioner) -> None:
    node = queue_node(partitions=7)
    node.create("prices", 7, partitioner=kind.value)
    for number, key in enumerate(KEYS[:5]):
        node.ask(node.broker.recurring.store, Recurring(f"s{number}", "prices", "* * * * *", b"x", key=key))
    found = {each.name: each.partition for each in node.broker.recurring.all()}
    assert found == {f"s{number}": partition_for(key, 7, kind) for number, key in enumerate(KEYS[:5])}


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_messages_without_a_key_are_spread_within_one(partitions: int, batch: int) -> None:
    node = queue_node(partitions=partitions)
    node.create("prices", partitions)
    counted: Counter[int] = Counter(dict.fromkeys(range(partitions), 0))
    for _ in range(9):
        counted.update(partitions_of(node.send("orders", *[b"x"] * batch)))
        node.send("prices", b"in between")
        assert max(counted.values()) - min(counted.values()) <= 1


def test_round_robin_looks_at_no_key() -> None:
    node = queue_node()
    node.create("prices", 3, partitioner="round_robin")
    sent = node.send("prices", *[NewMessage(b"x", b"k")] * 9)
    assert partitions_of(sent) == [0, 1, 2] * 3


def test_a_partition_that_is_named_is_taken_whatever_the_key() -> None:
    node = queue_node(partitions=3)
    sent = node.send("orders", *(NewMessage(b"%d" % number, b"k", partition=2 - number) for number in range(3)))
    assert sent == [Sent(2, 0), Sent(1, 0), Sent(0, 0)]


def test_new_partitions_are_used_at_once() -> None:
    node = queue_node()
    node.send("orders", b"x")
    node.ask(node.broker.topics.submit, AddPartitions("orders", 3))
    assert set(partitions_of(node.send("orders", *[b"x"] * 3))) == {0, 1, 2}


def test_a_deleted_topic_is_forgotten_and_its_turns_begin_anew() -> None:
    node = queue_node(partitions=2)
    assert partitions_of(node.send("orders", b"x")) == [0]
    node.delete("orders")
    assert node.broker.sender._turns._turns == {}
    node.create("orders", 2)
    assert partitions_of(node.send("orders", b"x")) == [0]


# -- what is stored


def test_a_message_is_stored_as_it_was_given() -> None:
    node = queue_node()
    now_ms = node.clock.now_ms()
    node.put("orders", NewMessage(b"v", b"k", [("h", b"1"), ("h", None)], timestamp_ms=77))
    node.put("orders", NewMessage(None, b""), NewMessage(b"", None, lane=Lane.LOW, expires_at_ms=now_ms + 5))
    assert [(each.timestamp, each.key, each.value, each.headers) for each in node.records("orders")] == [
        (77, b"k", b"v", [("h", b"1"), ("h", None)]),
        (now_ms, b"", None, []),
        (now_ms, None, b"", [("gq-priority", b"low"), ("gq-expires-at", b"%d" % (now_ms + 5))]),
    ]


def test_messages_of_one_call_keep_their_order_in_every_partition() -> None:
    node = queue_node(partitions=3)
    node.send("orders", *(NewMessage(b"%d" % number, KEYS[number % 5]) for number in range(60)))
    for partition in range(3):
        values = [int(value or b"") for value in node.values("orders", partition)]
        assert values == sorted(values)


def test_the_headers_of_the_caller_are_not_changed() -> None:
    node = queue_node()
    message = NewMessage(b"x", headers=[("h", b"1")], lane=Lane.HIGH, delay_ms=5)
    node.put("orders", message, message)
    assert message.headers == [("h", b"1")]
    assert NewMessage(b"y").headers == []


# -- one answer each


def test_the_answer_comes_once_and_when_all_is_durable() -> None:
    node = queue_node(partitions=2)
    answers: list[list[Sent]] = []
    node.broker.sender.send("orders", [NewMessage(b"a"), NewMessage(b"b", delay_ms=9)], answers.append)
    node.clock.run()
    assert answers == []
    node.commit()
    assert answers == [[Sent(0, 0), Sent(1, 0)]]


def test_nothing_to_send_is_answered_too() -> None:
    assert queue_node().send("orders") == []


BAD: list[tuple[Any, type[Exception] | Code]] = [
    (NewMessage(b"x", partition=2), Code.UNKNOWN_TOPIC_OR_PARTITION),
    (NewMessage(b"x", partition=-1), Code.UNKNOWN_TOPIC_OR_PARTITION),
    (NewMessage("text", partition=0), Code.INVALID_RECORD),  # type: ignore[arg-type]
    (NewMessage(b"x", headers=[("h", "text")], partition=0), Code.INVALID_RECORD),  # type: ignore[list-item]
    (NewMessage(b"x", headers=[(b"h", b"1")], partition=0), Code.INVALID_RECORD),  # type: ignore[list-item]
    (NewMessage(b"x", timestamp_ms=2**63, partition=0), Code.INVALID_RECORD),
    (NewMessage(b"x", timestamp_ms=-(2**63) - 1, partition=0), Code.INVALID_RECORD),
    (NewMessage(b"x", headers=[("gq-priority", b"urgent")], partition=0), InvalidWish),
    (NewMessage(b"x", delay_ms=1, deliver_at_ms=1, partition=0), InvalidWish),
    (NewMessage(b"x", delay_ms=-1, partition=0), InvalidWish),
    (NewMessage(b"x" * 5000, partition=0), BatchTooLarge),
]


@pytest.mark.parametrize(("bad", "expected"), BAD)
@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_message_that_cannot_be_is_refused_and_the_others_are_not(bad: Any, expected: Any, at: int) -> None:
    node = queue_node(partitions=2, max_message_bytes="2000")
    messages: list[NewMessage] = [NewMessage(b"%d" % number, partition=number % 2) for number in range(5)]
    messages.insert(at, bad)
    sent = node.send("orders", *messages)
    error = sent[at].error
    assert error is not None
    assert str(error)
    assert code_of(error) is expected if isinstance(expected, Code) else isinstance(error, expected)
    assert [each.error for number, each in enumerate(sent) if number != at] == [None] * 5
    stored = {(each.partition, each.offset): each for number, each in enumerate(sent) if number != at}
    assert len(stored) == 5
    assert [node.values("orders", 0), node.values("orders", 1)] == [[b"0", b"2", b"4"], [b"1", b"3"]]


def test_more_than_fits_into_one_batch_is_sent_in_several() -> None:
    node = queue_node(max_message_bytes="1000")
    values = [b"%02d" % number * 100 for number in range(30)]
    assert node.put("orders", *values) == list(range(30))
    assert node.values("orders") == values


@pytest.mark.parametrize("topic", ["nowhere", "", "@delays"])
def test_a_topic_that_is_not_there_is_an_answer_for_each(topic: str) -> None:
    sent = queue_node().send(topic, b"a", b"b")
    assert [code_of(each.error) for each in sent if each.error] == [Code.UNKNOWN_TOPIC_OR_PARTITION] * 2


def failing(node: QueueNode) -> list[Sent]:
    node.disk.faults.add("sync", errno.EIO, prefix="logs/orders/0")
    return node.send("orders", *(NewMessage(b"x", partition=number % 2) for number in range(4)))


def test_a_partition_that_fails_says_so_and_the_others_are_acknowledged() -> None:
    node = queue_node(partitions=2)
    node.put("orders", b"a", b"b")
    sent = failing(node)
    assert [each.error is None for each in sent] == [False, True, False, True]
    assert node.values("orders", 1) == [b"b", b"x", b"x"]

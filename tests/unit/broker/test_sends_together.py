"""Sends of one turn of the event loop: one batch per partition, an answer of its own to each."""

import errno
from contextlib import suppress
from typing import Any

from structlog.testing import capture_logs

from goqueue.broker.publishing.together import BYTES_MAX
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import BatchTooLarge
from goqueue.records.messages import NewMessage, Sent
from goqueue.replica.roles import MYSELF, Reign
from tests.unit.broker.queue_node import QueueNode, queue_node


def send(node: QueueNode, *messages: NewMessage, topic: str = "orders", **asked: Any) -> list[Sent]:
    """What it is told, once it is told."""
    told: list[Sent] = []
    node.broker.sender.send(topic, messages, told.extend, **asked)
    return told


def here(value: bytes, **fields: Any) -> NewMessage:
    return NewMessage(value, partition=0, **fields)


def test_what_several_send_in_one_turn_is_one_batch_and_each_is_told_where_its_own_is() -> None:
    node = queue_node()
    batches = node.broker.publisher.batches
    told = [send(node, here(b"a")), send(node, here(b"b"), here(b"c")), send(node, here(b"d"))]
    assert told == [[], [], []]
    node.commit()
    assert [[each.offset for each in one] for one in told] == [[0], [1, 2], [3]]
    assert node.broker.publisher.batches == batches + 1


def test_who_sends_what_may_not_be_is_refused_and_nobody_else() -> None:
    node = queue_node()
    told = [send(node, here(b"a")), send(node, here(b"b", delay_ms=-5)), send(node, here(b"c"))]
    node.commit()
    assert [one[0].error is None for one in told] == [True, False, True]
    assert sorted(one[0].offset for one in (told[0], told[2])) == [0, 1]


def test_each_topic_has_a_batch_of_its_own_and_one_that_is_not_there_is_told() -> None:
    node = queue_node()
    node.create("prices")
    first, second = send(node, here(b"a")), send(node, here(b"b"), topic="prices")
    third = send(node, here(b"c"), topic="nowhere")
    node.commit()
    assert (first[0].offset, second[0].offset) == (0, 0)
    assert third[0].error is not None
    assert code_of(third[0].error) is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_much_waits_for_no_turn_and_stays_behind_what_came_before_it() -> None:
    node = queue_node()
    first = send(node, here(b"a"))
    end_offset = node.broker.topics.replica("orders", 0).end_offset
    large = send(node, here(bytes(BYTES_MAX + 1)))
    assert node.broker.topics.replica("orders", 0).end_offset == end_offset + 2
    node.commit()
    assert (first[0].offset, large[0].offset) == (0, 1)


def test_what_is_wrong_is_told_at_once_to_who_asks_for_that() -> None:
    node = queue_node()
    (told,) = send(node, here(b"a", delay_ms=-5), at_once=True)
    assert told.error is not None


def test_who_is_charged_for_time_sends_in_its_own_turn() -> None:
    node = queue_node()
    node.broker.sender.charges_time = lambda: True
    batches = node.broker.publisher.batches
    send(node, here(b"a"))
    send(node, here(b"b"))
    assert node.broker.publisher.batches == batches + 2


def test_what_is_small_enough_alone_is_not_too_large_together() -> None:
    node = queue_node(max_message_bytes="1000")
    told = [send(node, here(bytes(600))), send(node, here(bytes(600)))]
    node.commit()
    assert [one[0].error for one in told] == [None, None]


def test_who_writes_to_one_partition_does_not_wait_for_a_slow_copy_of_another() -> None:
    node = queue_node(partitions=2)
    slow = node.broker.topics.replica("orders", 1)
    slow.lead(Reign(slow.leader_epoch + 1, isr=(MYSELF, 7), replicas=2))
    told = [send(node, NewMessage(b"a", partition=number)) for number in (0, 1)]
    both = send(node, NewMessage(b"b", partition=0), NewMessage(b"c", partition=1))
    node.commit()
    assert [len(each) for each in (*told, both)] == [1, 0, 0]


def test_a_delay_that_finds_no_room_is_nobody_elses() -> None:
    node = queue_node()
    send(node, here(b"x", delay_ms=1000))
    node.commit()
    node.disk.faults.add("write", errno.ENOSPC, prefix="logs/@delays", forever=True)
    with capture_logs():
        first, delayed, headed = (
            send(node, here(b"a")),
            send(node, here(b"b", delay_ms=1000)),
            send(node, here(b"c", headers=[("gq-delay-ms", b"1000")])),
        )
        node.commit()
    assert (first[0].error, first[0].offset >= 0) == (None, True)
    assert delayed[0].error is not None
    assert headed[0].error is not None


def test_a_topic_that_looks_into_batches_takes_each_send_by_itself() -> None:
    for name, value in (("delay_order", "hold_key"), ("dedup_ms", "60000")):
        option: dict[str, Any] = {name: value}
        node = queue_node(**option)
        batches = node.broker.publisher.batches
        told = [send(node, here(b"a")), send(node, here(b"b"))]
        node.commit()
        assert node.broker.publisher.batches - batches == 2, option
        assert all(told), option


def test_the_same_id_of_two_clients_is_published_if_the_first_may_not_be() -> None:
    node = queue_node(dedup_ms="60000", max_message_bytes="1000")
    first, second = send(node, here(bytes(2000), dedup_id=b"x")), send(node, here(b"b", dedup_id=b"x"))
    node.commit()
    assert isinstance(first[0].error, BatchTooLarge)
    assert second[0].error is None


def test_a_fault_of_one_who_is_told_is_its_own() -> None:
    node = queue_node()

    def fails(_: list[Sent]) -> None:
        raise RuntimeError("a fault")

    node.broker.sender.send("orders", [here(b"a")], fails)
    told = send(node, here(b"b"))
    with capture_logs(), suppress(RuntimeError):
        node.commit()
    node.commit()
    assert told[0].offset == 1

"""A topic followed: in order, once, and only as fast as it is asked for."""

from typing import Any

import pytest

from goqueue.broker.reading.follow import Follower
from goqueue.model.errors import GoQueueError
from goqueue.records.filters import RecordFilter
from tests.unit.broker.queue_node import QueueNode, queue_node


def follower(node: QueueNode, positions: dict[int, int] | None = None, **fields: Any) -> Follower:
    topics = node.broker.topics
    return Follower(topics, node.broker.clock, "orders", positions or {0: 0}, RecordFilter(**fields))


def taken(one: Follower) -> list[bytes | None]:
    found: list[bytes | None] = []
    while (piece := one.take()) is not None:
        found += [record.value for record in piece.records]
    return found


def test_what_is_there_is_taken_once_and_what_comes_later_too() -> None:
    node = queue_node()
    node.put("orders", b"a", b"b")
    one = follower(node)
    assert taken(one) == [b"a", b"b"]
    assert taken(one) == []
    node.put("orders", b"c")
    assert (taken(one), one.positions) == ([b"c"], {0: 3})


def test_who_waits_is_woken_once_by_news_or_by_the_time() -> None:
    node = queue_node()
    one = follower(node)
    woken: list[bool] = []
    one.wait(1000, woken.append)
    node.put("orders", b"a")
    assert woken == [True]
    assert taken(one) == [b"a"]
    one.wait(1000, woken.append)
    node.pass_ms(999)
    assert woken == [True]
    node.pass_ms(5000)
    assert woken == [True, False]
    one.wait(1000, woken.append)
    one.cancel()
    node.put("orders", b"b")
    assert woken == [True, False]


def test_one_that_is_stopped_wakes_who_waits_and_who_comes_to_wait() -> None:
    node = queue_node()
    one = follower(node)
    woken: list[bool] = []
    one.wait(1000, woken.append)
    one.stop()
    one.wait(1000, woken.append)
    assert (woken, one.is_stopped) == ([True, True], True)


def test_a_closed_follower_is_forgotten() -> None:
    node = queue_node()
    listeners = len(node.broker.topics.on_change)
    one = follower(node)
    assert node.broker.topics.replica("orders", 0)._watchers
    for _ in range(2):
        one.close()
    assert not node.broker.topics.replica("orders", 0)._watchers
    assert len(node.broker.topics.on_change) == listeners


def test_what_retention_took_is_told() -> None:
    node = queue_node()
    node.put("orders", b"a", b"b", b"c")
    one = follower(node)
    node.broker.topics.replica("orders", 0).delete_before(2)
    piece = one.take()
    assert piece is not None
    assert (piece.missed, piece.first_offset, [each.value for each in piece.records]) == (2, 2, [b"c"])
    node.put("orders", b"d")
    node.broker.topics.replica("orders", 0).delete_before(4)
    piece = one.take()
    assert piece is not None
    assert (piece.missed, piece.records, one.positions) == (1, [], {0: 4})


def test_partitions_take_turns() -> None:
    node = queue_node(partitions=2)
    node.put("orders", *[b"%d" % number for number in range(8)])
    one = follower(node, {0: 0, 1: 0})
    pieces = [one.take(), one.take()]
    assert [piece.partition for piece in pieces if piece is not None] == [0, 1]
    assert one.take() is None


def test_a_deleted_topic_ends_it_even_if_another_has_its_name() -> None:
    node = queue_node()
    one = follower(node)
    node.delete("orders")
    with pytest.raises(GoQueueError):
        one.take()

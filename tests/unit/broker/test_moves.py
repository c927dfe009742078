"""What a group has not settled of a topic, moved elsewhere: all of it, at a rate, until somebody says stop."""

import pytest

from goqueue.machines.deliveries.commands import How
from goqueue.model.moves import MoveStatus
from goqueue.model.refusal import Refused
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import NewMessage
from goqueue.records.native import Headers
from tests.unit.broker.queue_node import QueueNode, queue_node

GROUP = "workers"


def dead_node(count: int) -> QueueNode:
    """So many dead letters of orders, in the topic that it names for them."""
    node = queue_node(dead_letter_topic="failed")
    node.create("failed")
    node.put("orders", *(NewMessage(b"%d" % number, b"key") for number in range(count)))
    while got := node.receive(group="first", most=100):
        node.settle(got, How.REJECT)
    assert len(node.values("failed")) == count
    return node


def letters_of(node: QueueNode) -> list[bytes | None]:
    """Dead letters of orders that nobody has sent back."""
    found: list[bytes | None] = []

    def take(partition: int, records: list[DecodedRecord]) -> bool:
        found.extend(each.value for each in records)
        return True

    assert node.reply(lambda done: node.broker.dead_letters.look("orders", take, done)) is None
    return found


def test_dead_letters_go_to_the_topic_that_theirs_names() -> None:
    node = dead_node(3)
    assert "orders.dlq" not in node.broker.topics.image.topics
    assert node.values("failed") == [b"0", b"1", b"2"]


def test_a_move_brings_all_back_in_order_and_settles_it() -> None:
    node = dead_node(250)
    move = node.broker.moves.start(GROUP, "failed", None, 0)
    assert move.status is MoveStatus.RUNNING
    node.commit()
    assert (move.status, move.moved, move.records) == (MoveStatus.COMPLETED, 250, 250)
    assert node.values("orders")[250:] == [b"%d" % number for number in range(250)]
    assert node.received("failed") == []
    assert letters_of(node) == []  # nobody else sends them back again


def test_a_move_has_a_rate_and_can_be_cancelled() -> None:
    node = dead_node(10)
    move = node.broker.moves.start(GROUP, "failed", None, 2)
    node.pass_ms(1900)
    assert (move.status, move.moved) == (MoveStatus.RUNNING, 4)
    with pytest.raises(Refused, match="already"):
        node.broker.moves.start(GROUP, "failed", None, 0)
    node.broker.moves.cancel("failed", move.number)
    assert move.status is MoveStatus.CANCELLING
    node.pass_ms(2000)
    assert (move.status, move.moved) == (MoveStatus.CANCELLED, 4)
    assert len(node.received("failed")) == 6


def test_what_comes_back_at_once_does_not_go_round_for_ever() -> None:
    node = dead_node(3)
    move = node.broker.moves.start(GROUP, "failed", "failed", 0)
    node.commit()
    assert (move.status, move.moved) == (MoveStatus.COMPLETED, 3)


def test_what_another_consumer_has_is_left_to_it() -> None:
    node = dead_node(3)
    (held,) = node.receive("failed", most=1)
    move = node.broker.moves.start(GROUP, "failed", None, 0)
    node.commit()
    assert (move.status, move.moved) == (MoveStatus.COMPLETED, 2)
    node.ack(held)


def test_a_move_that_cannot_go_on_loses_nothing() -> None:
    node = dead_node(3)
    node.delete("orders")
    move = node.broker.moves.start(GROUP, "failed", None, 0)
    node.commit()
    assert (move.status, move.moved) == (MoveStatus.FAILED, 0)
    assert move.error is not None
    assert node.received("failed") == [b"0", b"1", b"2"]


def test_letters_of_another_topic_in_the_same_place_are_not_ours() -> None:
    node = dead_node(2)
    node.create("others", 1, dead_letter_topic="failed")
    node.put("others", b"other")
    node.settle(node.receive("others"), How.REJECT)
    node.commit()
    assert letters_of(node) == [b"0", b"1"]
    refused = node.reply(lambda done: node.broker.dead_letters.purge("orders", done))
    assert isinstance(refused, Refused)
    assert len(node.values("failed")) == 3


def test_a_move_of_a_topic_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match="no topic"):
        queue_node().broker.moves.start(GROUP, "failed", None, 0)


def test_moves_of_a_topic_that_is_gone_are_forgotten() -> None:
    node = dead_node(1)
    node.broker.moves.start(GROUP, "failed", None, 0)
    node.commit()
    assert len(node.broker.moves.of("failed")) == 1
    node.delete("failed")
    assert len(node.broker.moves.of("failed")) == 0


def test_without_a_limit_a_record_is_delivered_however_often() -> None:
    node = queue_node(attempts_max="0")
    node.put("orders", b"a")
    for attempt in range(1, 300):
        (got,) = node.receive()
        assert got.attempt == min(attempt, 255)
        node.settle([got], How.RETRY, 0)
    node = node.restarted()
    assert node.receive()[0].attempt == 255


@pytest.mark.parametrize("topic", ["payroll", "nowhere", "@metadata"])
def test_a_forged_header_does_not_choose_where_a_move_goes(topic: str) -> None:
    node = dead_node(1)
    node.create("payroll")
    headers: Headers = [("gq-dlq-topic", topic.encode()), ("gq-dlq-partition", b"0"), ("gq-dlq-offset", b"0")]
    node.put("failed", NewMessage(b"forged", headers=headers))
    node.create("forge", 1, dead_letter_topic="failed")
    move = node.broker.moves.start(GROUP, "failed", None, 0)
    node.commit()
    assert (move.status, move.moved) == (MoveStatus.FAILED, 0)
    assert [node.values(name) for name in ("payroll", "forge", "orders")] == [[], [], [b"0"]]
    assert node.received("failed") == [b"0", b"forged"]

"""Dead letters on their way back in a cluster, where answers may be lost: each arrives once, and none is lost."""

from random import Random
from typing import Any

import pytest

from goqueue.broker.dead_letters import way_back
from goqueue.broker.dead_letters.way_back import WayBack
from goqueue.machines.deliveries.commands import How
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, Indeterminate
from goqueue.model.refusal import Refused
from goqueue.records.decode import decode
from goqueue.records.redrives import RedriveReport, RedriveRequest
from tests.unit.broker.queue_node import QueueNode, queue_node

BYTES_MAX = 10_000


class LossyAppends:
    """To the node's own partitions, as if they were another's."""

    def __init__(self, node: QueueNode, *lost: str) -> None:
        self._node = node
        self._lost = list(lost)
        """`before`: not written, `after`: written, and nobody is told either way."""
        self.batches = 0

    def bytes_max(self, topic: str) -> int:
        assert topic in self._node.broker.topics.image.topics
        return BYTES_MAX

    def append_anywhere(self, topic: str, partition: int, batch: bytes, on_appended: Any) -> None:
        self.batches += 1
        what = self._lost.pop(0) if self._lost else ""
        base_offset = -1
        if what == "refused":
            on_appended(Refused(Code.INVALID_RECORD, "one of them does not fit"))
            return
        if what != "before":
            try:
                _, appended = self._node.broker.publisher.publish(topic, partition, memoryview(bytearray(batch)))
            except GoQueueError as error:
                on_appended(error)
                return
            base_offset = appended.base_offset
        on_appended(Indeterminate("the answer was lost") if what else base_offset)


def dead_node(*values: bytes, lost: tuple[str, ...] = (), **options: Any) -> tuple[QueueNode, LossyAppends]:
    node = queue_node(**options)
    appends, broker = LossyAppends(node, *lost), node.broker
    way: Any = appends
    broker.dead_letters.way_back = lambda: (
        WayBack(broker.sender, way, broker.transactions.ids, broker.topics, broker.clock).send
    )
    node.put("orders", *values)
    while got := node.receive(most=1000):
        node.settle(got, How.REJECT)
    node.pass_ms(1000)
    return node, appends


def redrive(node: QueueNode) -> RedriveReport:
    replies: list[Any] = []
    node.broker.dead_letters.redrive(RedriveRequest("orders"), replies.append)
    node.pass_ms(way_back.TRIES * way_back.AGAIN_MS * 2)
    (report,) = replies
    assert isinstance(report, RedriveReport)
    return report


def sent_back(node: QueueNode, first_offset: int) -> list[bytes | None]:
    batches = node.broker.topics.replica("orders", 0).batches_from(first_offset)
    return [record.value for batch in batches for record in decode(batch)]


@pytest.mark.parametrize("lost", [(), ("after",), ("before",), ("after", "after", "before", "after")])
def test_letters_whose_answer_was_lost_are_there_once(lost: tuple[str, ...]) -> None:
    node, appends = dead_node(b"a", b"b", b"c", lost=lost)
    assert redrive(node).redriven == 3
    assert sent_back(node, 3) == [b"a", b"b", b"c"]
    assert appends.batches == 1 + len(lost)
    assert redrive(node).redriven == 0


def test_letters_that_were_given_up_are_sent_by_the_next_redrive_as_another_producer() -> None:
    """A batch that nobody knows of must not make a later one look like its repetition."""
    node, _ = dead_node(b"a", b"b", lost=("before",) * way_back.TRIES)
    report = redrive(node)
    assert (report.redriven, report.failed) == (0, 2)
    assert sent_back(node, 2) == []
    assert redrive(node).redriven == 2
    assert sent_back(node, 2) == [b"a", b"b"]


def test_a_log_that_has_lost_track_of_the_producer_gets_another_one() -> None:
    turn = [b"%d" % number for number in range(120)]
    node, appends = dead_node(*turn)
    publish, states = appends.append_anywhere, node.broker.topics.replica("orders", 0).producers._producers

    def forgetful(topic: str, partition: int, batch: bytes, on_appended: Any) -> None:
        if appends.batches == 1:
            for each in states.values():
                each.batches = [(7, 7, 7, 7, 0)]  # as if others had been there in its place
        publish(topic, partition, batch, on_appended)

    appends.append_anywhere = forgetful  # type: ignore[method-assign]
    assert redrive(node).redriven == 120
    assert sent_back(node, 120) == turn
    assert len(states) == 2


def test_what_does_not_fit_into_one_batch_goes_in_several() -> None:
    values = [Random(number).randbytes(800) for number in range(40)]
    node, appends = dead_node(*values)
    assert redrive(node).redriven == 40
    assert sent_back(node, 40) == values
    assert appends.batches >= 40 * 800 // BYTES_MAX


def test_a_letter_that_is_too_large_for_a_batch_goes_as_any_message_does() -> None:
    values = [b"a", Random(1).randbytes(2 * BYTES_MAX), b"c"]
    node, _ = dead_node(*values, max_message_bytes="100000")
    assert redrive(node).redriven == 3
    assert sent_back(node, 3) == values


def test_letters_of_a_batch_that_is_refused_are_tried_one_by_one() -> None:
    node, appends = dead_node(b"a", b"b", lost=("refused",))
    assert redrive(node).redriven == 2
    assert sent_back(node, 2) == [b"a", b"b"]
    assert appends.batches == 1

"""Dead letters for partitions of other nodes: not before the death is committed, and before the message is settled."""

from collections.abc import Callable
from typing import Any

from goqueue.broker.dead_letters.writing import DeadLetterWriter
from goqueue.broker.queues.settle import Wanted
from goqueue.machines.deliveries.commands import How, Place
from goqueue.model.errors import Indeterminate
from tests.unit.broker.queue_node import QueueNode, queue_node

PLACE = Place("workers", "orders", 0)


class FakeAppends:
    """The leader of all dead letters, on another node."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, Callable[[Any], None]]] = []

    def is_elsewhere(self, _topic: str, _partition: int) -> bool:
        return True

    def bytes_max(self, _topic: str) -> int:
        return 1_000_000

    def append(self, topic: str, partition: int, _batch: bytes, on_appended: Callable[[Any], None]) -> None:
        self.asked.append((topic, partition, on_appended))


def rejected() -> tuple[QueueNode, FakeAppends]:
    node, appends = queue_node(), FakeAppends()
    node.create("orders.dlq")
    for call in node.broker.queues.on_dying:
        writer = getattr(call, "__self__", None)
        if isinstance(writer, DeadLetterWriter):
            writer.appends = appends  # type: ignore[assignment]
    node.put("orders", b"bad")
    (bad,) = node.receive()
    node.broker.settler.settle([Wanted(bad.receipt, How.REJECT, -1, "")], lambda verdicts: None)
    node.clock.run()  # and nothing is synced
    assert appends.asked == [], "nobody knows yet whether the next leader will know of it"
    node.commit()
    return node, appends


def test_a_dead_letter_is_not_written_before_the_death_is_committed_nor_settled_before_it_is_written() -> None:
    node, appends = rejected()
    ((topic, partition, on_appended),) = appends.asked
    assert (topic, partition) == ("orders.dlq", 0)
    assert node.broker.queues.settled_below(PLACE) == 0
    on_appended(0)
    node.commit()
    assert node.broker.queues.settled_below(PLACE) == 1


def test_a_dead_letter_of_which_nobody_knows_whether_it_is_there_is_written_again() -> None:
    node, appends = rejected()
    appends.asked[0][2](Indeterminate("lost"))
    node.commit()
    assert node.broker.queues.settled_below(PLACE) == 0
    node.clock.advance(2000)
    node.commit()
    assert len(appends.asked) == 2
    appends.asked[1][2](7)
    node.commit()
    assert node.broker.queues.settled_below(PLACE) == 1

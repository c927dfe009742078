"""What waits, by its time."""

import pytest

from goqueue.broker.delays import soonest as module
from goqueue.machines.delays.commands import FoundSchedule
from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import QueueNode, queue_node


def found(node: QueueNode, count: int) -> tuple[list[int], int]:
    replies: list[tuple[list[FoundSchedule], int]] = []
    schedules = node.broker.schedules
    module.soonest(schedules, node.broker.clock, "orders", count, lambda *reply: replies.append(reply))
    node.pass_ms(0)
    ((schedules_found, total),) = replies
    return [each.due_ms - node.clock.now_ms() for each in schedules_found], total


@pytest.mark.parametrize("per_turn", [1, 3, 7, 100])
def test_the_soonest_come_first_however_many_are_looked_at_in_one_turn(
    monkeypatch: pytest.MonkeyPatch, per_turn: int
) -> None:
    monkeypatch.setattr(module, "SCHEDULES_PER_TURN", per_turn)
    node = queue_node(partitions=2)
    delays = [50_000, 10_000, 40_000, 20_000, 70_000, 30_000, 60_000]
    for number, delay_ms in enumerate(delays):
        node.put("orders", NewMessage(b"x", delay_ms=delay_ms, partition=number % 2))
    assert found(node, 3) == ([10_000, 20_000, 30_000], 7)
    assert found(node, 100) == (sorted(delays), 7)
    assert found(node, 0) == ([], 7)


def test_nothing_waits() -> None:
    assert found(queue_node(), 5) == ([], 0)

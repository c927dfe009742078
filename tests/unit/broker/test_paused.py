"""Delivery that somebody has paused: of one group, or of a topic. All is taken in, and nothing is handed out."""

from typing import Any

import pytest

from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.deliveries.commands import How, Place
from goqueue.records.replays import ReplayRequest, Where
from goqueue.telemetry.trace_ids import Spot
from tests.unit.broker.queue_node import QueueNode, queue_node

WAIT_MS = 20_000


def set_group(node: QueueNode, delivery: str | None, group: str = "workers") -> None:
    node.reply(lambda done: node.broker.queues.set_options(group, {"delivery": delivery}, done))


def set_topic(node: QueueNode, delivery: str | None) -> None:
    node.ask(node.broker.topics.submit, SetOptions("orders", {"delivery": delivery}))


def why(node: QueueNode, offset: int) -> Any:
    return node.reply(lambda done: node.broker.tracing.why.ask(Spot("orders", 0, offset), done))


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
@pytest.mark.parametrize("pause", [set_group, set_topic])
def test_nothing_is_delivered_until_it_is_resumed(pause: Any, how: str) -> None:
    node = queue_node()
    node.put("orders", b"a")
    (held,) = node.receive()
    pause(node, "paused")
    node.put("orders", b"b")
    parked = node.park(wait_ms=WAIT_MS)
    assert not parked.is_over
    node.ack(held)
    node.pass_ms(WAIT_MS)
    assert parked.values == []
    node = node.restarted(how)
    assert node.received() == [], "a restart does not resume it"
    answer = why(node, 1)
    assert (answer.state, answer.groups[0].state) == ("paused", "paused")
    assert "paused" in answer.answer
    parked = node.park(wait_ms=WAIT_MS)
    pause(node, None)
    assert parked.values == [b"b"], "whoever waits gets it at once"


def test_other_groups_go_on() -> None:
    node = queue_node()
    set_group(node, "paused")
    node.put("orders", b"a")
    assert (node.received(), node.received(group="others")) == ([], [b"a"])
    groups = {each.group: each.state for each in why(node, 0).groups}
    assert groups == {"workers": "paused", "others": "leased"}


def test_one_group_may_go_on_while_its_topic_is_paused() -> None:
    node = queue_node()
    set_topic(node, "paused")
    set_group(node, "on", "urgent")
    node.put("orders", b"a")
    assert (node.received(), node.received(group="urgent")) == ([], [b"a"])


def test_what_is_held_may_be_settled_and_comes_back_after_the_pause() -> None:
    node = queue_node(retry_backoff_ms="1")
    node.put("orders", b"a", b"b", b"c")
    first, second, third = node.receive()
    set_group(node, "paused")
    node.ack(first)
    node.settle([second], How.RETRY, 0)
    assert why(node, 1).state == "paused"
    assert why(node, 2).state == "leased", "a lease that is held is held"
    node.pass_ms(60_000)
    assert node.received() == []
    assert why(node, 2).state == "paused"
    set_group(node, None)
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"b", 2), (b"c", 2)]
    assert third.value == b"c"


def test_what_a_replay_has_is_not_looked_through_while_it_is_paused() -> None:
    """Nothing of it is ever ready then, so that whoever waits would look at all of it: ten bytes for each record."""
    node = queue_node()
    for number in range(12):
        node.put("orders", b"%d" % number)
    node.ack(*node.receive(most=12))
    request = ReplayRequest("workers", "orders", Where("earliest"), Where("latest"))
    set_group(node, "paused")
    node.reply(lambda done: node.broker.replays.replay(request, done))
    parked = node.park(wait_ms=WAIT_MS, most=12)
    node.put("orders", b"12")
    looked = node.broker.queues.peek_at(Place("workers", "orders", 0))._state.places[Place("workers", "orders", 0)]
    assert [len(window.kinds) for window in looked.replays.values()] == [0]
    assert not parked.is_over
    set_group(node, None)
    got = set(parked.values) | set(node.received(most=20))
    assert got == {b"%d" % number for number in range(13)}


def test_many_who_wait_cost_little_while_it_is_paused() -> None:
    node = queue_node()
    set_group(node, "paused")
    waiting = [node.park(consumer=f"c{number}", wait_ms=WAIT_MS) for number in range(50)]
    looked: list[Any] = []
    take = node.broker.receiver.taking.take

    def counted(*args: Any, **more: Any) -> Any:
        looked.append(args)
        return take(*args, **more)

    node.broker.receiver.taking.take = counted  # type: ignore[method-assign]
    for _ in range(10):
        node.put("orders", b"x")
    assert len(looked) <= 20, "and not so many for each of them"
    set_group(node, None)
    assert sum(len(each.got) for each in waiting if each.is_over) == 10

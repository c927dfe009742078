"""A change of options is told to all places that it is for: a few in each turn of the loop, and none is left out."""

from itertools import pairwise
from typing import Any

from goqueue.broker.queues.policies import PLACES_PER_TURN
from goqueue.machines.controller_commands import SetOptions
from goqueue.runtime.life import Life
from tests.unit.broker.queue_node import QueueNode
from tests.unit.broker.test_reopening import half_opened, load_anew, read_by, turn

MANY = 3 * PLACES_PER_TURN + 1


def set_lease(node: QueueNode, lease_ms: int) -> None:
    """Whatever it takes is not done by this."""
    node.broker.topics.submit(SetOptions("orders", {"lease.ms": str(lease_ms)}), lambda reply: None)


def leases(node: QueueNode) -> list[int]:
    """Of the places that are open."""
    places = node.broker.queues.companions.peek_at("orders", 0)._state.places
    return [each.policy.lease_ms for each in places.values() if each.is_open]


def test_a_change_is_told_to_a_few_places_in_each_turn() -> None:
    node = read_by(MANY)
    set_lease(node, 5000)
    told = [0, leases(node).count(5000)]
    for _ in range(100):
        node.committer.run_once()
        told.append(leases(node).count(5000))
        if node.clock._soon:
            turn(node)
        told.append(leases(node).count(5000))
    steps = [later - earlier for earlier, later in pairwise(told)]
    assert [each for each in steps if each] == [PLACES_PER_TURN, PLACES_PER_TURN, PLACES_PER_TURN, 1]


def test_the_latest_of_two_changes_holds_in_every_place() -> None:
    node = read_by(MANY)
    done: list[Any] = []
    set_lease(node, 5000)
    set_lease(node, 7000)
    node.broker.queues.set_options("group-000", {"lease.ms": "9000"}, done.append)
    node.commit()
    assert sorted(leases(node)) == [7000] * (MANY - 1) + [9000]


def test_places_that_were_opened_before_a_change_hear_of_it_when_all_are_open() -> None:
    node = read_by(4 * MANY)
    loading = half_opened(node)
    set_lease(node, 5000)
    for _ in range(3):  # so that it is known
        node.committer.run_once()
        turn(node)
    assert "lease.ms" in node.broker.topics.image.topics["orders"].overrides
    assert loading.life is Life.LOADING
    node.commit()
    assert leases(node) == [5000] * 4 * MANY


def test_places_are_opened_again_with_the_options_of_today() -> None:
    node = read_by(2)
    set_lease(node, 5000)
    node.commit()
    load_anew(node)
    node.commit()
    assert leases(node) == [5000, 5000]

"""A load opens all places of a partition again: a few in each turn of the loop, and before anybody is served."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.machines.deliveries.commands import OpenDelivery, Place
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.model.errors import CoordinatorLoading, DiskFull
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import SLICE_COST
from goqueue.runtime.life import Life
from goqueue.testing import VirtualClock
from tests.steps import count_steps
from tests.unit.broker.queue_node import QueueNode, queue_node

FEW, MANY = 300, 900
SOME = SLICE_COST // 4
"""More than are opened in one turn."""


def place_of(number: int) -> Place:
    return Place(f"group-{number:03}", "orders", 0)


def read_by(groups: int, durability: str = "disk") -> QueueNode:
    node = queue_node(durability=durability)
    for number in range(groups):
        node.broker.queues.open(place_of(number), "earliest", lambda error: None)
    node.commit()
    return node


def load_anew(node: QueueNode) -> Coordinator[Deliveries]:
    (found,) = node.broker.queues.companions.coordinators
    found.unload()
    found.load()
    return found


def turn(node: QueueNode) -> None:
    node.clock._soon.popleft()()


def half_opened(node: QueueNode) -> Coordinator[Deliveries]:
    """The first of its places are open, the last are not."""
    loading = load_anew(node)
    before = loading.command
    while loading.command is before:
        turn(node)
    assert isinstance(loading.command, OpenDelivery)
    assert loading.command.place not in (place_of(0), place_of(SOME - 1))
    assert loading.life is Life.LOADING
    return loading


def longest_turn(groups: int) -> int:
    node = read_by(groups)
    load_anew(node)  # the first load of all imports what reads records
    node.commit()
    load_anew(node)
    longest = 0
    while node.clock._soon:
        longest = max(longest, count_steps(lambda: turn(node)))
        node.committer.run_once()
    assert all(node.broker.queues.is_open(place_of(number)) for number in range(groups))
    return longest


def test_no_turn_of_the_loop_is_longer_because_many_groups_read_a_partition() -> None:
    assert longest_turn(MANY) <= 1.05 * longest_turn(FEW)


def test_nobody_is_answered_from_places_of_which_only_some_are_open() -> None:
    node = read_by(SOME)
    node.put("orders", b"a")
    queues = node.broker.queues
    loading = half_opened(node)
    waiting: list[Any] = []
    for place in (place_of(0), place_of(SOME - 1)):
        for question in (queues.measure, queues.peek_at, queues.lag):
            with pytest.raises(CoordinatorLoading):
                question(place)
        assert queues.has_group(place.group_id), "its name must not be free meanwhile"
        queues.seek(place, 0, waiting.append)
        assert not queues.is_open(place)
    assert waiting == []
    assert not loading.is_active
    node.commit()
    assert [str(each) for each in waiting] == ["0", "0"]
    assert [node.received(group=place_of(number).group_id) for number in (0, SOME - 1)] == [[b"a"], [b"a"]]


def test_who_waits_in_a_place_is_woken_when_all_are_open() -> None:
    node = read_by(SOME)
    parked = [node.park(group=place_of(number).group_id, wait_ms=60_000) for number in (0, SOME - 1)]
    half_opened(node)
    node.publish("orders", b"a")
    assert [each.is_over for each in parked] == [False, False]
    node.commit()
    assert [each.values for each in parked] == [[b"a"], [b"a"]]


def test_places_are_not_opened_while_their_leader_hands_over() -> None:
    node = read_by(SOME)
    loading = half_opened(node)
    last = loading.command
    loading._ledger.replica.rest()
    node.commit()
    assert (loading.life, loading.command) == (Life.LOADING, last)
    loading._ledger.replica.go_on()
    node.commit()
    assert node.broker.queues.is_open(place_of(SOME - 1))


def test_a_place_that_finds_no_room_while_others_are_opened_is_opened_later() -> None:
    node = read_by(SOME, durability="os")
    node.put("orders", b"a")
    node.replicas.sync()
    node.put("orders", b"b")
    for number in (0, SOME - 1):
        node.ack(*node.receive(group=place_of(number).group_id)[1:])
    disk = node.disk.crashed(lost=node.disk.unsynced_by_file()["logs/orders/0/00000000000000000000.log"])
    disk.capacity_bytes = 1
    with capture_logs():
        after = QueueNode(disk, VirtualClock(node.clock.now_ms()))
        loading = half_opened(after)
    loading._ledger.replica.rest()
    after.clock.advance(3000)
    assert loading.life is Life.LOADING
    loading._ledger.replica.go_on()
    after.commit()
    with pytest.raises(DiskFull):
        after.publish("orders", b"B")
    disk.capacity_bytes = None
    after.clock.advance(1000)
    after.commit()
    after.put("orders", b"B")
    for number in range(SOME):
        assert after.received(group=place_of(number).group_id) == [b"a", b"B"]

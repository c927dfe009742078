"""Lanes: the more urgent a record, the larger its share; nothing waits for ever, nothing is hidden."""

from collections import Counter

import pytest

from goqueue.machines.deliveries.commands import How, Place
from goqueue.model.lanes import Lane
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import QueueNode, queue_node

SHARES = {Lane.CRITICAL: 50, Lane.HIGH: 25, Lane.NORMAL: 15, Lane.LOW: 7, Lane.BACKGROUND: 3}
WITHIN = 2
"""Percent."""
BOOST_MS = 30_000


def fill(node: QueueNode, count: int, lanes: tuple[Lane, ...] = tuple(Lane)) -> None:
    """`count` of each lane, one batch each, so that whoever looks need not decode."""
    for lane in reversed(lanes):
        for _ in range(0, count, 500):
            made: list[NewRecord] = [(1000, None, lane.name.encode(), [])] * min(count, 500)
            node.broker.publisher.publish("orders", 0, memoryview(build_batch(made, lane=int(lane))))
    node.commit()


def lanes_of(values: list[bytes | None]) -> list[Lane]:
    return [Lane[(value or b"").decode()] for value in values]


@pytest.mark.parametrize("pull", [1, 10, 100])
def test_under_full_load_lanes_are_served_by_their_shares(pull: int) -> None:
    node = queue_node(unacked_max="100000", lane_boost_ms="0")
    fill(node, 1500)
    served = Counter(lane for _ in range(2000 // pull) for lane in lanes_of(node.received(most=pull)))
    assert served.total() == 2000
    for lane, share in SHARES.items():
        assert abs(served[lane] * 100 / 2000 - share) <= WITHIN, (lane, served)


@pytest.mark.parametrize("pull", [1, 10, 100])
def test_the_boost_of_late_lanes_leaves_the_shares_as_they_are(pull: int) -> None:
    node = queue_node(unacked_max="100000")
    fill(node, 1500)
    served: Counter[Lane] = Counter()
    for _ in range(2000 // pull):
        served.update(lanes_of(node.received(most=pull, lease_ms=10_000_000)))
        node.pass_ms(10)
    for lane, share in SHARES.items():
        assert abs(served[lane] * 100 / 2000 - share) <= WITHIN, (lane, served)


def test_other_weights_give_other_shares() -> None:
    node = queue_node(unacked_max="100000", lane_weights="1,1,1,1,6", lane_boost_ms="0")
    fill(node, 1500)
    served = Counter(lanes_of(node.received(most=2000)))
    assert [served[lane] for lane in Lane] == [200, 200, 200, 200, 1200]


def test_a_critical_record_is_served_first_whatever_lies_before_it() -> None:
    node = queue_node()
    fill(node, 500, (Lane.NORMAL, Lane.LOW))
    node.put("orders", NewMessage(b"CRITICAL", lane=Lane.CRITICAL))
    assert lanes_of(node.received(most=1)) == [Lane.CRITICAL]


def test_the_lane_of_each_record_of_a_mixed_batch_counts() -> None:
    node = queue_node()
    node.put("orders", *(NewMessage(lane.name.encode(), lane=lane) for lane in reversed(Lane)))
    assert [lanes_of(node.received(most=1)) for _ in Lane] == [[lane] for lane in Lane]


def test_a_lane_that_was_not_served_for_long_comes_first_once() -> None:
    node = queue_node(unacked_max="100000")
    fill(node, 400)
    assert lanes_of(node.received(most=1, lease_ms=10_000_000)) == [Lane.CRITICAL]
    node.pass_ms(BOOST_MS - 1000)
    assert lanes_of(node.received(most=1, lease_ms=10_000_000)) == [Lane.CRITICAL]
    node.pass_ms(1000)
    late = [lanes_of(node.received(most=1, lease_ms=10_000_000))[0] for _ in range(5)]
    assert late == [Lane.HIGH, Lane.NORMAL, Lane.LOW, Lane.BACKGROUND, Lane.CRITICAL]


def test_with_one_lane_only_there_is_nothing_to_boost_and_order_is_that_of_the_log() -> None:
    node = queue_node()
    node.put("orders", *(b"%d" % number for number in range(5)))
    node.pass_ms(2 * BOOST_MS)
    assert [node.received(most=1) for _ in range(5)] == [[b"%d" % number] for number in range(5)]


def test_lanes_never_hide_a_record() -> None:
    node = queue_node(unacked_max="100000")
    lanes = [Lane(number * number % 5) for number in range(200)]
    node.put("orders", *(NewMessage(b"%d" % number, lane=lane) for number, lane in enumerate(lanes)))
    got: list[bytes | None] = []
    while values := node.received(most=7, lease_ms=10_000_000):
        got += values
    assert sorted(got, key=lambda value: int(value or 0)) == [b"%d" % number for number in range(200)]


def test_a_stream_read_is_in_the_order_of_offsets_whatever_the_lanes() -> None:
    node = queue_node()
    node.put("orders", b"normal 0", b"normal 1", NewMessage(b"critical 2", lane=Lane.CRITICAL))
    node.receive(most=1)
    assert node.values("orders") == [b"normal 0", b"normal 1", b"critical 2"]
    assert [each.offset for each in node.records("orders")] == [0, 1, 2]


def test_a_record_that_comes_back_keeps_its_lane() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"h", lane=Lane.HIGH), b"n", b"n")
    node.settle(node.receive(most=1), How.RETRY, delay_ms=100)
    assert node.received(most=1) == [b"n"]
    node.pass_ms(100)
    assert node.received(most=1) == [b"h"]


def test_what_each_lane_has_and_had_can_be_seen() -> None:
    node = queue_node()
    node.put("orders", *(NewMessage(b"x", lane=lane) for lane in Lane for _ in range(1 + lane)))
    node.ack(*node.receive(most=3))
    node.receive(most=2)
    measure = node.broker.queues.measure(Place("workers", "orders", 0))
    assert sum(measure.ready) == 15 - 5
    assert [ready + served for ready, served in zip(measure.ready, measure.served, strict=True)] == [1, 2, 3, 4, 5]
    assert sum(measure.leased) == 2
    assert sum(measure.served) == 5


@pytest.mark.parametrize("wishes", ["off", "plain", "all"])
def test_where_a_topic_does_not_look_for_wishes_all_lanes_are_one(wishes: str) -> None:
    node = queue_node(wishes=wishes)
    node.put("orders", b"first", NewMessage(b"critical", lane=Lane.CRITICAL))
    assert node.received(most=1) == ([b"first"] if wishes == "off" else [b"critical"])

"""How long a rebalance takes: members hear what concerns them with heartbeats, so the broker's pace is the group's."""

from heapq import heappop, heappush

import pytest

from goqueue.machines.groups.consumer.facts import CONSUMER_GROUPS, ConsumerGroupOptions
from tests.unit.machines.consumer_groups import Consumer, Host, topics

SIX = topics(orders=6)
ROUND_TRIP_MS = 20
"""Generous: an answer may wait for a sync."""


class Driven:
    """Consumers that beat when their last answer told them to, and at once when they have given something up."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._due: list[tuple[int, str, Consumer]] = []

    def join(self, consumer: Consumer, at_ms: int) -> None:
        heappush(self._due, (at_ms, consumer.member_id, consumer))

    def run_until(self, end_ms: int) -> None:
        while self._due and self._due[0][0] <= end_ms:
            at_ms, member_id, consumer = heappop(self._due)
            self.host.advance(at_ms - self.host.now_ms)
            reply = consumer.beat()
            next_ms = at_ms + reply.heartbeat_interval_ms
            if reply.assignment is not None:
                consumer.give_up()
                next_ms = at_ms + ROUND_TRIP_MS
            heappush(self._due, (next_ms, member_id, consumer))
        self.host.advance(end_ms - self.host.now_ms)


def rebalance_ms(options: ConsumerGroupOptions, join_ms: int, second_ms: int) -> int:
    """How long it takes when a third member joins two."""
    host = Host(SIX, options=options)
    driven, start_ms = Driven(host), host.now_ms
    driven.join(Consumer(host, "first", "orders"), start_ms)
    driven.join(Consumer(host, "second", "orders"), start_ms + second_ms)
    driven.run_until(start_ms + 5_000)
    assert host.group.state_name == "Stable"
    driven.join(Consumer(host, "third", "orders"), start_ms + 5_000 + join_ms)
    driven.run_until(start_ms + 10_000)
    assert host.group.state_name == "Stable"
    assert [len(held) for held in host.targets().values()] == [2, 2, 2]
    took_ms = host.group.counts.rebalance_ms_last
    assert took_ms is not None
    return took_ms


@pytest.mark.parametrize("second_ms", range(0, CONSUMER_GROUPS.heartbeat_ms, 50))
def test_a_third_member_has_its_share_within_two_heartbeats(second_ms: int) -> None:
    """Whenever it joins between the heartbeats of the others: one in which they hear, one of its own."""
    found = {join_ms: rebalance_ms(CONSUMER_GROUPS, join_ms, second_ms) for join_ms in range(0, 400, 10)}
    promised_ms = CONSUMER_GROUPS.heartbeat_ms + CONSUMER_GROUPS.settling_heartbeat_ms + 2 * ROUND_TRIP_MS
    assert max(found.values()) <= promised_ms < 1_000, found


def test_members_that_have_what_they_shall_have_are_not_hurried() -> None:
    host = Host(topics(orders=20))
    consumers = [Consumer(host, f"m{number}", "orders") for number in range(10)]
    for _ in range(30):
        host.advance(200)
        for consumer in consumers:
            consumer.cycle()
    newcomer = Consumer(host, "newcomer", "orders")
    assert newcomer.beat().heartbeat_interval_ms == host.options.settling_heartbeat_ms
    calm = [consumer for consumer in consumers if consumer.member.is_settled]
    assert len(calm) == 9
    assert {consumer.beat().heartbeat_interval_ms for consumer in calm} == {host.options.heartbeat_ms}


def test_a_large_group_beats_more_slowly() -> None:
    """Heartbeats of one group must not be all that a broker does."""
    options = ConsumerGroupOptions(heartbeat_ms=100, settling_heartbeat_ms=50, heartbeats_per_second_max=100)
    host = Host(topics(orders=40), options=options)
    consumers = [Consumer(host, f"m{number:02}", "orders") for number in range(40)]
    for _ in range(50):
        host.advance(50)
        for consumer in consumers:
            consumer.cycle()
    assert host.group.state_name == "Stable"
    assert {consumer.beat().heartbeat_interval_ms for consumer in consumers} == {400}

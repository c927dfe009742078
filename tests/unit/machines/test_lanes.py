"""Shares of lanes, by themselves and in what consumers get."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.deliveries.commands import Policy, Span
from goqueue.machines.deliveries.lanes import NO_DEFICITS, share_out
from goqueue.model.lanes import LANES, Lane
from tests.unit.machines.delivery_driver import Driver

WEIGHTS = (50, 25, 15, 7, 3)
BACKLOG = 4000
"""Records per lane: more than what is taken, so that all lanes are full all the time."""


def full_driver(lane_boost_ms: int = 30_000, lease_ms: int = 30_000) -> Driver:
    policy = Policy(unacked_max=10**6, lane_boost_ms=lane_boost_ms, lease_ms=lease_ms)
    driver = Driver(policy, checks=False)
    driver.observe(*(Span(lane * BACKLOG, (lane + 1) * BACKLOG - 1, lane) for lane in range(LANES)))
    return driver


@pytest.mark.parametrize("pull", [1, 3, 10, 100, 1000])
def test_under_full_load_each_lane_gets_its_share_whatever_the_pull(pull: int) -> None:
    driver = full_driver()
    taken = 0
    while taken < 3000:
        taken += len(driver.take(pull))
    served = driver.measure().served
    assert sum(served) == taken
    for count, weight in zip(served, WEIGHTS):
        assert abs(count / taken - weight / 100) < 0.02


def test_the_most_urgent_lane_comes_first() -> None:
    assert full_driver().take(50) == list(range(50))


def test_priority_hides_nothing() -> None:
    driver = Driver()
    driver.observe(Span(0, 1, Lane.NORMAL), Span(2, 2, Lane.CRITICAL))
    assert driver.take(1) == [2]
    assert driver.take(10) == [0, 1]


@pytest.mark.parametrize("lane", Lane)
def test_a_lane_alone_gets_everything(lane: Lane) -> None:
    """Loops over lanes end in both directions."""
    driver = Driver(Policy(unacked_max=10**6))
    driver.see(1000, lane=lane)
    assert driver.take(1000) == list(range(1000))
    assert share_out([0] * LANES, NO_DEFICITS, WEIGHTS, 10) == ([], NO_DEFICITS)


def test_a_lane_that_runs_empty_leaves_its_share_to_the_others() -> None:
    plan, shares = share_out((10, 0, 100, 0, 0), NO_DEFICITS, WEIGHTS, 100)
    assert plan == [(0, 10), (2, 90)]
    assert shares[0] == 0


def test_a_share_is_kept_from_pull_to_pull_but_not_by_an_empty_lane() -> None:
    plan, shares = share_out((99, 99, 0, 0, 0), NO_DEFICITS, WEIGHTS, 49)
    assert plan == [(0, 49)]
    assert shares[:2] == (1, 25)
    assert share_out((99, 99, 0, 0, 0), shares, WEIGHTS, 2)[0] == [(0, 1), (1, 1)]
    assert share_out((0, 99, 99, 0, 0), shares, WEIGHTS, 65)[0] == [(1, 50), (2, 15)]


def test_a_lane_without_weight_is_served_all_the_same() -> None:
    plan, _ = share_out((5, 5, 0, 0, 0), NO_DEFICITS, (0, 0, 0, 0, 0), 10)
    assert sum(count for _, count in plan) == 10


def test_a_lane_that_waited_too_long_is_served_first_once() -> None:
    driver = full_driver(lane_boost_ms=20_000, lease_ms=10**6)
    for _ in range(10):
        driver.take(1)
    driver.advance(19_999)
    assert driver.take(1) == [10]
    driver.advance(1)
    boosted = [lane * BACKLOG for lane in range(1, LANES)]
    assert [driver.take(1)[0] for _ in range(5)] == [*boosted, 11]
    driver.advance(19_999)
    assert driver.take(1) == [12]
    driver.advance(1)
    assert driver.take(6) == [*(offset + 1 for offset in boosted), 13, 14]


def test_who_did_not_ask_for_long_gets_the_most_urgent_first() -> None:
    driver = full_driver(lane_boost_ms=20_000, lease_ms=10**6)
    driver.advance(20_000)
    assert driver.take(1) == [0]


def test_lanes_are_never_boosted_if_the_policy_says_so() -> None:
    driver = full_driver(lane_boost_ms=0, lease_ms=10**9)
    for offset in range(5):
        assert driver.take(1) == [offset]
        driver.advance(10**6)


@given(
    ready=st.lists(st.integers(0, 60), min_size=LANES, max_size=LANES),
    deficits=st.lists(st.integers(0, 50), min_size=LANES, max_size=LANES),
    count=st.integers(0, 400),
)
def test_as_many_are_served_as_there_are_and_no_lane_more_than_it_has(
    ready: list[int], deficits: list[int], count: int
) -> None:
    plan, shares = share_out(ready, deficits, WEIGHTS, count)
    by_lane = [sum(taken for lane, taken in plan if lane == each) for each in range(LANES)]
    assert sum(by_lane) == min(count, sum(ready))
    assert all(taken <= there for taken, there in zip(by_lane, ready))
    assert all(0 <= share <= max(weight, 50) for share, weight in zip(shares, WEIGHTS))
    assert all(not share for share, there in zip(shares, ready) if not there)

"""Groups of both protocols in one machine: offsets belong to the group, whoever its members are or were."""

from typing import Any

import pytest

from goqueue.machines.groups.commands import MINUTE_MS, GroupOptions, Heartbeat, TopicsChanged
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat
from goqueue.machines.groups.consumer.kind import consumer_kind
from goqueue.model.codes import Code
from goqueue.model.topics import Topic
from tests.unit.machines.consumer_groups import topic_id
from tests.unit.machines.group_driver import Driver, at

RETENTION_MS = 60 * MINUTE_MS


@pytest.fixture
def driver() -> Driver:
    made = Driver(GroupOptions(offset_retention_ms=RETENTION_MS), kinds=(consumer_kind(),))
    made.ask(TopicsChanged({"orders": Topic("orders", topic_id("orders"), 3, {})}))
    return made


def beat(driver: Driver, epoch: int = 0, member_id: str = "m") -> Any:
    is_join = not epoch
    return driver.ask(
        ConsumerHeartbeat(
            "g",
            member_id,
            epoch,
            rebalance_timeout_ms=10_000 if is_join else -1,
            subscribed_topic_names=("orders",) if is_join else None,
            owned=() if is_join else None,
        )
    )


def live_on(driver: Driver, epoch: int, for_ms: int) -> None:
    """A member that says that it lives, and no more."""
    for _ in range(for_ms // 20_000):
        driver.machine.apply(driver.machine.decide(ConsumerHeartbeat("g", "m", epoch), 0, driver.now_ms).facts[-1])
        driver.now_ms += 20_000


def test_offsets_of_members_that_were_long_idle_outlive_a_restart_of_theirs(driver: Driver) -> None:
    """They are in use until the last member leaves, and the time of retention begins then."""
    epoch = beat(driver).member_epoch
    assert driver.commit(at("orders", 0, 5), member_id="m", generation=epoch) == [Code.NONE]
    live_on(driver, epoch, 2 * RETENTION_MS)
    beat(driver, -1)
    driver.advance(RETENTION_MS - 10 * MINUTE_MS)
    assert driver.offsets() == {("orders", 0): 5}
    driver.advance(20 * MINUTE_MS)
    assert driver.offsets() == {}


def test_a_group_that_is_joined_again_is_no_longer_empty(driver: Driver) -> None:
    for _ in range(2):
        epoch = beat(driver).member_epoch
        driver.commit(at("orders", 0, 5), member_id="m", generation=epoch)
        live_on(driver, epoch, RETENTION_MS)
        beat(driver, -1)
        driver.advance(RETENTION_MS - 10 * MINUTE_MS)
        assert driver.offsets() == {("orders", 0): 5}


def test_a_group_without_members_changes_its_kind_and_keeps_its_offsets(driver: Driver) -> None:
    epoch = beat(driver).member_epoch
    driver.commit(at("orders", 0, 5), member_id="m", generation=epoch)
    beat(driver, -1)
    generation = driver.stable("c")
    assert driver.offsets() == {("orders", 0): 5}
    assert driver.ask(Heartbeat("g", generation, "c")).code is Code.NONE
    driver.advance(60_000)
    assert beat(driver).code is Code.NONE
    assert driver.offsets() == {("orders", 0): 5}

"""What a restart brings back, and what it may forget."""

from goqueue.machines.groups.commands import GroupOptions, LeavingMember
from goqueue.machines.groups.machine import Groups
from goqueue.model.codes import Code
from tests.unit.machines.group_driver import SESSION_MS, Driver, at, join


def test_members_go_on_in_the_same_generation_after_a_restart() -> None:
    driver = Driver()
    generation = driver.stable("a", "b")
    before = driver.describe()
    driver.restart()
    assert driver.describe() == before
    assert driver.heartbeat("a", generation) is Code.NONE
    assert driver.heartbeat("b", generation) is Code.NONE
    assert driver.sync_reply(driver.sync("b", generation)).assignment == b"b"
    assert driver.commit(at("t", 0, 5), member_id="b", generation=generation) == [Code.NONE]


def test_a_restart_does_not_count_against_a_session() -> None:
    driver = Driver()
    generation = driver.stable("a")
    driver.advance(SESSION_MS - 1)
    driver.now_ms += 3_600_000
    driver.restart()
    driver.advance(SESSION_MS - 1)
    assert driver.heartbeat("a", generation) is Code.NONE


def test_who_does_not_come_back_after_a_restart_is_evicted() -> None:
    driver = Driver()
    driver.stable("a")
    driver.restart()
    driver.advance(SESSION_MS)
    assert driver.describe().state == "Empty"


def test_joins_under_way_are_forgotten_and_made_again() -> None:
    driver = Driver()
    generation = driver.stable("a")
    driver.join_new("b")
    driver.restart()
    assert driver.ask(join("b")).code is Code.UNKNOWN_MEMBER_ID
    assert driver.heartbeat("a", generation) is Code.NONE
    ticket = driver.join_new("b")
    driver.send(join("a"))
    assert driver.join_reply(ticket).generation == generation + 1


def test_a_generation_that_never_became_stable_owned_nothing() -> None:
    driver = Driver()
    driver.stable("a")
    driver.send(join("a"))
    assert driver.describe().generation == 2
    driver.restart()
    assert driver.heartbeat("a", 2) is Code.ILLEGAL_GENERATION
    assert driver.describe().generation == 1


def test_an_empty_group_keeps_its_generation_and_type() -> None:
    driver = Driver()
    driver.stable("a")
    driver.leave(LeavingMember("a"))
    before = driver.describe()
    driver.restart()
    assert driver.describe() == before
    assert driver.join_reply(driver.join_new("b")).generation == before.generation + 1


def test_a_snapshot_taken_amid_a_rebalance_holds_the_last_stable_generation() -> None:
    driver = Driver()
    driver.stable("a", "b")
    stable = driver.describe()
    driver.join_new("c")
    rebuilt = Groups(GroupOptions())
    for fact in list(driver.machine.facts()):
        rebuilt.apply(fact)
    driver.machine = rebuilt
    assert driver.describe() == stable

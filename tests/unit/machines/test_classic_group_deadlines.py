"""Nothing lasts for ever: sessions, joins, syncs and ids that were given out."""

import pytest

from goqueue.machines.groups.commands import GroupOptions, LeavingMember
from goqueue.model.codes import Code
from tests.unit.machines.group_driver import REBALANCE_MS, SESSION_MS, Driver, at, join

MINUTE_MS = 60_000


def members(driver: Driver) -> list[str]:
    return [each.member_id for each in driver.describe().members]


def test_a_silent_member_is_evicted_after_its_session() -> None:
    driver = Driver()
    generation = driver.stable("a", "b")
    for _ in range(9):
        driver.advance(SESSION_MS // 9)
        assert driver.heartbeat("a", generation) is Code.NONE
    assert members(driver) == ["a", "b"]
    driver.advance(SESSION_MS // 9)
    assert members(driver) == ["a"]
    assert driver.heartbeat("a", generation) is Code.REBALANCE_IN_PROGRESS
    assert driver.heartbeat("b", generation) is Code.UNKNOWN_MEMBER_ID


def test_a_commit_is_a_sign_of_life() -> None:
    driver = Driver()
    generation = driver.stable("a", "b")
    for offset in range(10):
        driver.advance(SESSION_MS // 2)
        driver.commit(at("t", 0, offset), member_id="a", generation=generation)
    assert members(driver) == ["a"]


def test_a_refused_commit_is_none() -> None:
    driver = Driver()
    generation = driver.stable("a")
    for _ in range(2):
        driver.advance(SESSION_MS // 2)
        driver.commit(at("t", 0, 1), member_id="a", generation=generation - 1)
    assert members(driver) == []


def test_the_last_member_to_vanish_leaves_an_empty_group() -> None:
    driver = Driver()
    driver.stable("a")
    driver.advance(SESSION_MS)
    assert driver.describe().state == "Empty"


def test_the_join_phase_ends_without_those_who_do_not_come() -> None:
    driver = Driver()
    generation = driver.stable("a", "b")
    ticket = driver.join_new("c")
    driver.send(join("a"))
    for _ in range(REBALANCE_MS // 5_000 - 1):
        driver.advance(5_000)
        assert driver.heartbeat("b", generation) is Code.REBALANCE_IN_PROGRESS
    assert ticket not in driver.replies
    driver.advance(5_000)
    assert driver.join_reply(ticket).generation == generation + 1
    assert members(driver) == ["a", "c"]


def test_who_waits_to_join_needs_no_heartbeat() -> None:
    driver = Driver()
    generation = driver.stable("a", "b")
    ticket = driver.send(join("a"))
    for _ in range(5):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat("b", generation)
    driver.send(join("b"))
    assert driver.join_reply(ticket).generation == generation + 1
    driver.advance(SESSION_MS - 1)
    assert members(driver) == ["a", "b"], "the session begins when the waiting ends"


def test_who_waits_to_sync_needs_no_heartbeat() -> None:
    driver = Driver()
    driver.stable("a", "b")
    driver.send(join("a"))
    driver.send(join("b"))
    waiting = driver.sync("b", 2)
    for _ in range(5):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat("a", 2)
    driver.sync("a", 2, b=b"mine")
    assert driver.sync_reply(waiting).assignment == b"mine"


def test_a_leader_that_never_assigns_is_left_behind() -> None:
    driver = Driver()
    driver.stable("a", "b")
    driver.send(join("a"))
    driver.send(join("b"))
    waiting = driver.sync("b", 2)
    for _ in range(REBALANCE_MS // 5_000):
        driver.heartbeat("a", 2)
        driver.advance(5_000)
    assert driver.sync_reply(waiting).code is Code.REBALANCE_IN_PROGRESS
    assert members(driver) == ["b"]
    assert driver.join_reply(driver.send(join("b"))).leader == "b"


def test_a_follower_that_never_fetches_its_assignment_is_left_behind() -> None:
    driver = Driver()
    driver.stable("a", "b")
    driver.send(join("a"))
    driver.send(join("b"))
    driver.sync("a", 2)
    for _ in range(REBALANCE_MS // 5_000):
        driver.heartbeat("a", 2)
        driver.heartbeat("b", 2)
        driver.advance(5_000)
    assert members(driver) == ["a"]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_when_all_have_synced_that_deadline_is_over(order: str) -> None:
    driver = Driver()
    generation = driver.stable("a", "b") + 1
    driver.send(join("a"))
    driver.send(join("b"))
    for member_id in order:
        driver.sync(member_id, generation)
    for _ in range(2 * REBALANCE_MS // 5_000):
        driver.heartbeat("a", generation)
        driver.heartbeat("b", generation)
        driver.advance(5_000)
    assert driver.describe().state == "Stable"


def test_an_id_that_is_never_used_becomes_void() -> None:
    driver = Driver()
    driver.ask(join(new_id="a"))
    driver.ask(join(new_id="b"))
    ticket = driver.send(join("a"))
    driver.advance(SESSION_MS - 1)
    assert ticket not in driver.replies
    driver.advance(1)
    assert driver.join_reply(ticket).generation == 1
    assert driver.ask(join("b")).code is Code.UNKNOWN_MEMBER_ID


def test_a_new_member_that_gave_up_does_not_stay_for_ever() -> None:
    """Nor does it prolong its stay by asking again."""
    driver = Driver(GroupOptions(new_member_join_ms=MINUTE_MS))
    generation = driver.stable("a")
    driver.send(join("a", rebalance_timeout_ms=10 * MINUTE_MS))
    driver.sync("a", generation + 1)
    driver.join_new("gone", rebalance_timeout_ms=10 * MINUTE_MS)
    driver.advance(5_000)
    waiting = driver.send(join("gone", rebalance_timeout_ms=10 * MINUTE_MS))
    for _ in range(11):
        assert waiting not in driver.replies
        driver.heartbeat("a", generation + 1)
        driver.advance(5_000)
    assert driver.join_reply(waiting).code is Code.UNKNOWN_MEMBER_ID
    assert members(driver) == ["a"]


def test_a_new_members_heartbeat_does_not_shorten_its_patience() -> None:
    driver = Driver()
    generation = driver.stable("a")
    waiting = driver.join_new("b")
    assert driver.heartbeat("b", generation) is Code.REBALANCE_IN_PROGRESS
    for _ in range(3):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat("a", generation)
    driver.send(join("a"))
    assert driver.join_reply(waiting).generation == generation + 1


def test_the_first_members_wait_for_others_and_longer_while_they_come() -> None:
    driver = Driver(GroupOptions(initial_rebalance_delay_ms=3_000))
    first = driver.send(join(new_id="a", knows_member_id_required=False))
    driver.advance(2_000)
    second = driver.send(join(new_id="b", knows_member_id_required=False))
    driver.advance(3_999)
    assert first not in driver.replies, "a newcomer prolongs the wait by another delay"
    driver.advance(1)
    assert driver.join_reply(first).generation == driver.join_reply(second).generation == 1
    assert len(driver.join_reply(first).members) == 2


def test_the_wait_for_others_ends_with_the_rebalance_timeout() -> None:
    driver = Driver(GroupOptions(initial_rebalance_delay_ms=3_000))
    first = driver.send(join(new_id="m0", knows_member_id_required=False, rebalance_timeout_ms=10_000))
    for second in range(1, 10):
        driver.advance(1_000)
        driver.send(join(new_id=f"m{second}", knows_member_id_required=False, rebalance_timeout_ms=10_000))
        assert first not in driver.replies
    driver.advance(1_000)
    assert len(driver.join_reply(first).members) == 10


def test_a_group_that_all_left_while_it_waited_is_empty() -> None:
    driver = Driver(GroupOptions(initial_rebalance_delay_ms=3_000))
    waiting = driver.send(join(new_id="a", knows_member_id_required=False))
    driver.leave(LeavingMember("a"))
    assert driver.join_reply(waiting).code is Code.UNKNOWN_MEMBER_ID
    assert driver.describe().state == "Empty"


def test_a_rebalance_timeout_of_zero_makes_no_busy_loop() -> None:
    """While nobody is there but an absent static member, the phase is prolonged again and again."""
    driver = Driver()
    driver.send(join(new_id="a", instance_id="A", rebalance_timeout_ms=0))
    driver.sync("a", 1)
    driver.send(join(new_id="b", rebalance_timeout_ms=0, knows_member_id_required=False))
    driver.leave(LeavingMember("b"))
    driver.advance(SESSION_MS - 1)
    assert members(driver) == ["a"]
    driver.advance(1)
    assert driver.describe().state == "Empty"

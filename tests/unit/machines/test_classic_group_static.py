import pytest

from goqueue.machines.groups.commands import GroupProtocol, LeavingMember, SyncGroup
from goqueue.model.codes import Code
from tests.unit.machines.group_driver import REBALANCE_MS, SESSION_MS, Driver, at, join


def static_pair() -> Driver:
    """Two static members, stable in generation 1, `a1` leading as instance A."""
    driver = Driver()
    driver.send(join(new_id="a1", instance_id="A"))
    driver.sync("a1", 1)
    driver.send(join(new_id="b1", instance_id="B"))
    driver.send(join("a1", instance_id="A"))
    driver.sync("a1", 2, a1=b"0", b1=b"1")
    driver.sync("b1", 2)
    assert driver.describe().state == "Stable"
    return driver


def test_a_static_member_needs_no_second_step() -> None:
    reply = Driver().ask(join(new_id="a1", instance_id="A"))
    assert (reply.code, reply.member_id) == (Code.NONE, "a1")
    assert reply.members[0].instance_id == "A"


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    driver = static_pair()
    reply = driver.ask(join(new_id="b2", instance_id="B"))
    assert (reply.code, reply.member_id, reply.generation, reply.leader) == (Code.NONE, "b2", 2, "a1")
    assert not reply.skip_assignment
    assert driver.sync_reply(driver.sync("b2", 2)).assignment == b"1"
    assert driver.describe().state == "Stable"


def test_the_old_holder_of_an_instance_is_fenced() -> None:
    driver = static_pair()
    driver.ask(join(new_id="b2", instance_id="B"))
    assert driver.heartbeat("b1", 2, "B") is Code.FENCED_INSTANCE_ID
    assert driver.ask(join("b1", instance_id="B")).code is Code.FENCED_INSTANCE_ID
    assert driver.ask(SyncGroup("g", 2, "b1", "B")).code is Code.FENCED_INSTANCE_ID
    assert driver.leave(LeavingMember("b1", "B")) == (Code.FENCED_INSTANCE_ID,)
    assert driver.commit(at("t", 0, 1), member_id="b1", generation=2, instance_id="B") == [Code.FENCED_INSTANCE_ID]
    assert driver.heartbeat("b1", 2) is Code.UNKNOWN_MEMBER_ID


def test_a_static_leader_is_told_to_lead_without_assigning() -> None:
    driver = static_pair()
    reply = driver.ask(join(new_id="a2", instance_id="A", knows_skip_assignment=True))
    assert (reply.leader, reply.skip_assignment) == ("a2", True)
    assert [each.member_id for each in reply.members] == ["a2", "b1"]


def test_an_older_static_leader_is_not_told_that_it_leads() -> None:
    driver = static_pair()
    reply = driver.ask(join(new_id="a2", instance_id="A"))
    assert (reply.member_id, reply.leader, reply.members) == ("a2", "a1", ())
    assert driver.describe().leader == "a2"
    assert driver.sync_reply(driver.sync("a2", 2)).assignment == b"0"


def test_a_static_member_that_changes_the_protocol_starts_a_rebalance() -> None:
    driver = Driver()
    both = tuple(GroupProtocol(name, b"") for name in ("x", "y"))
    driver.send(join(new_id="a1", instance_id="A", protocols=both))
    driver.sync("a1", 1)
    ticket = driver.send(join(new_id="a2", instance_id="A", protocols=both[1:]))
    assert driver.join_reply(ticket).generation == 2
    assert driver.join_reply(ticket).protocol == "y"


def test_a_comeback_during_the_join_phase_fences_who_waits() -> None:
    driver = static_pair()
    driver.join_new("c")
    waiting = driver.send(join("b1", instance_id="B"))
    back = driver.send(join(new_id="b2", instance_id="B"))
    assert driver.join_reply(waiting).code is Code.FENCED_INSTANCE_ID
    driver.send(join("a1", instance_id="A"))
    assert driver.join_reply(back).generation == 3


def test_a_comeback_during_the_sync_phase_sends_all_back_to_join() -> None:
    driver = static_pair()
    driver.send(join("a1", instance_id="A"))
    driver.send(join("b1", instance_id="B"))
    waiting = driver.sync("b1", 3)
    back = driver.send(join(new_id="b2", instance_id="B"))
    assert driver.sync_reply(waiting).code is Code.FENCED_INSTANCE_ID
    assert driver.heartbeat("a1", 3, "A") is Code.REBALANCE_IN_PROGRESS
    driver.send(join("a1", instance_id="A"))
    assert driver.join_reply(back).generation == 4


def test_a_static_member_is_removed_by_its_instance_alone() -> None:
    driver = static_pair()
    assert driver.leave(LeavingMember("", "B"), LeavingMember("", "C")) == (Code.NONE, Code.UNKNOWN_MEMBER_ID)
    assert [each.member_id for each in driver.describe().members] == ["a1"]


def test_a_static_member_that_does_not_rejoin_keeps_its_seat_for_its_session() -> None:
    driver = static_pair()
    ticket = driver.join_new("c")
    driver.send(join("a1", instance_id="A"))
    driver.heartbeat("b1", 2, "B")
    while ticket not in driver.replies:
        driver.advance(SESSION_MS // 2)
        driver.heartbeat("b1", 2, "B")
    assert [each.member_id for each in driver.join_reply(ticket).members] == []
    assert {each.member_id for each in driver.describe().members} == {"a1", "b1", "c"}


def test_an_absent_static_leader_does_not_lead_the_next_generation() -> None:
    driver = static_pair()
    follower = driver.send(join("b1", instance_id="B", protocols=(GroupProtocol("range", b"changed"),)))
    while follower not in driver.replies:
        driver.heartbeat("a1", 2, "A")
        driver.advance(SESSION_MS // 2)
    reply = driver.join_reply(follower)
    assert (reply.leader, [each.member_id for each in reply.members]) == ("b1", ["a1", "b1"])


def test_when_only_absent_static_members_are_left_the_group_waits_for_them() -> None:
    driver = static_pair()
    driver.join_new("c")
    driver.leave(LeavingMember("c"))
    for _ in range(2 * REBALANCE_MS // SESSION_MS):
        assert driver.heartbeat("a1", 2, "A") is Code.REBALANCE_IN_PROGRESS
        assert driver.heartbeat("b1", 2, "B") is Code.REBALANCE_IN_PROGRESS
        driver.advance(SESSION_MS - 1)
    assert driver.describe().state == "PreparingRebalance"
    driver.advance(SESSION_MS)
    assert driver.describe().state == "Empty"


def test_a_restart_amid_a_rebalance_does_not_fence_a_member_that_came_back() -> None:
    driver = static_pair()
    driver.join_new("c")
    driver.send(join(new_id="b2", instance_id="B"))
    driver.restart()
    assert driver.heartbeat("b2", 2, "B") is Code.NONE
    assert driver.heartbeat("b1", 2, "B") is Code.FENCED_INSTANCE_ID


@pytest.mark.parametrize("member_id", ["x", "b1"])
def test_an_unknown_instance_or_member_cannot_speak(member_id: str) -> None:
    driver = static_pair()
    assert driver.heartbeat(member_id, 2, "nobody") is Code.UNKNOWN_MEMBER_ID
    assert driver.ask(join(member_id, instance_id="nobody")).code is Code.UNKNOWN_MEMBER_ID

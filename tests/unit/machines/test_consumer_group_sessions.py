"""Members that ask for sessions of their own length, how one member is found, and what is counted."""

from goqueue.machines.groups.consumer.facts import (
    ConsumerGroupCounts,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    FindConsumerMember,
    FoundConsumerMember,
    unpacked,
)
from goqueue.machines.groups.consumer.sessions import Sessions
from goqueue.model.codes import Code
from tests.unit.machines.consumer_groups import Consumer, Host, settle, topics

SIX = topics(orders=6)


def join(host: Host, member_id: str, session_ms: int = -1) -> ConsumerHeartbeatReply:
    reply = host.tell(
        ConsumerHeartbeat(
            "g",
            member_id,
            0,
            rebalance_timeout_ms=5000,
            subscribed_topic_names=("orders",),
            owned=(),
            session_ms=session_ms,
        )
    )
    assert isinstance(reply, ConsumerHeartbeatReply)
    assert reply.code is Code.NONE
    return reply


def find(host: Host, member_id: str) -> FoundConsumerMember:
    found = host.tell(FindConsumerMember("g", member_id))
    assert isinstance(found, FoundConsumerMember)
    return found


def test_each_member_is_given_the_time_that_it_asked_for() -> None:
    host = Host(SIX)
    for member_id, session_ms in (("long", 90_000), ("usual", -1), ("short", 2000)):
        join(host, member_id, session_ms)
    lives: dict[str, int] = {}
    for at_s in range(1, 100):
        host.advance(1000)
        for member_id in {"long", "usual", "short"} - lives.keys() - host.members.keys():
            lives[member_id] = at_s
    assert lives == {"short": 2, "usual": host.options.session_ms // 1000, "long": 90}


def test_the_length_of_a_session_outlives_a_restart_and_may_change() -> None:
    host = Host(SIX)
    reply = join(host, "m", 2000)
    host.restart()
    host.advance(0)
    host.advance(1999)
    assert find(host, "m").session_ms == 2000
    host.tell(ConsumerHeartbeat("g", "m", reply.member_epoch, session_ms=10_000))
    host.advance(9999)
    assert "m" in host.members
    host.advance(1)
    assert host.members == {}


def test_a_member_is_found_with_how_it_stands() -> None:
    host = Host(SIX)
    assert find(host, "m").code is Code.GROUP_ID_NOT_FOUND
    reply = join(host, "m")
    found = find(host, "m")
    assert found.member == reply.member
    assert (found.is_stable, found.session_ms, found.revocation_due_ms) == (True, host.options.session_ms, None)
    assert found.member is not None
    assert found.member.joined_at_ms == host.now_ms
    assert find(host, "other").code is Code.UNKNOWN_MEMBER_ID
    join(host, "other")
    assert not find(host, "m").is_stable
    host.tell(ConsumerHeartbeat("g", "m", reply.member_epoch))
    found = find(host, "m")
    assert found.member is not None
    assert len(unpacked(found.member.revoking)) == 3
    assert found.revocation_due_ms == host.now_ms + 5000


def test_sessions_know_who_is_due_first_whatever_the_lengths() -> None:
    sessions = Sessions()
    assert sessions.earliest_ms() is None
    sessions.hear("a", 0, 100)
    sessions.hear("b", 10, 40)
    sessions.hear("c", 20, 50)
    assert (len(sessions), sessions.earliest_ms(), sessions.heard_ms("b")) == (3, 40, 10)
    sessions.hear("b", 30, 60)
    assert (sessions.earliest_ms(), sessions.silent(55)) == (50, ["c"])
    sessions.hear("c", 30, 130)
    assert (sessions.silent(100), sessions.heard_ms("c")) == (["a", "b"], 30)
    for member_id in ("a", "b", "c", "c"):
        sessions.drop(member_id)
    assert sessions == Sessions()


def test_rebalances_are_counted_and_timed() -> None:
    host = Host(SIX)
    began_ms = host.now_ms
    old = Consumer(host, "old", "orders")
    old.beat()
    settle(host, old)
    assert host.group.counts == ConsumerGroupCounts(
        rebalances=1,
        partitions_moved=6,
        rebalance_ms_last=0,
        rebalance_at_ms=began_ms,
        settled=1,
        by_reason={"joined": 1},
    )
    new = Consumer(host, "new", "orders")
    began_ms = host.now_ms
    new.beat()
    host.advance(300)
    old.cycle()
    host.advance(400)
    new.cycle()
    assert host.group.counts == ConsumerGroupCounts(
        rebalances=2,
        partitions_moved=9,
        rebalance_ms_last=700,
        rebalance_at_ms=began_ms,
        settled=2,
        settled_ms=700,
        partitions_revoked=3,
        by_reason={"joined": 2},
    )

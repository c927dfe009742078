"""One share group: who reads what, who is let in, who is forgotten."""

from typing import Any

import msgspec
import pytest

from goqueue.machines.groups.share.facts import (
    DescribeShareGroup,
    ShareGroupOptions,
    ShareHeartbeat,
    ShareHeartbeatReply,
    ShareTopicsKnown,
)
from goqueue.machines.groups.share.group import ShareGroup
from goqueue.machines.machine import Tick
from goqueue.model.codes import Code
from goqueue.model.topics import Topic
from tests.unit.machines.consumer_groups import all_of, topic_id, topics
from tests.unit.machines.share_groups import OPTIONS, Host, Reader

FOUR = topics(orders=4)
JOIN = ShareHeartbeat("g", "m", 0, subscribed_topic_names=("orders",))


def readers(host: Host, count: int, *names: str) -> list[Reader]:
    made = [Reader(host, f"m{number}", *(names or ("orders",))) for number in range(count)]
    for _ in range(2):
        for reader in made:
            assert reader.beat().code is Code.NONE
    return made


# -- who reads what


def test_a_lone_member_reads_everything_at_once() -> None:
    host = Host(FOUR)
    reader = Reader(host, "m0", "orders")
    reply = reader.beat()
    assert (reply.code, reply.member_id, reply.member_epoch) == (Code.NONE, "m0", 1)
    assert reader.reads == all_of(FOUR)


def test_a_newcomer_reads_with_its_first_heartbeat_and_waits_for_nobody() -> None:
    host = Host(FOUR)
    first, second = Reader(host, "m0", "orders"), Reader(host, "m1", "orders")
    first.beat()
    second.beat()
    assert len(second.reads) == 2
    assert first.reads == all_of(FOUR), "it has not heard of it yet, and may read on"
    first.beat()
    assert first.reads == all_of(FOUR) - second.reads


def test_more_members_than_partitions_all_read() -> None:
    host = Host(FOUR)
    made = readers(host, 10)
    assert set().union(*(reader.reads for reader in made)) == all_of(FOUR)
    assert {len(reader.reads) for reader in made} == {1}


def test_a_member_that_leaves_leaves_its_partitions_to_the_others() -> None:
    host = Host(FOUR)
    first, second = readers(host, 2)
    assert second.leave() == ShareHeartbeatReply(member_id="m1", member_epoch=-1)
    first.beat()
    assert first.reads == all_of(FOUR)
    assert set(host.members) == {"m0"}


def test_topics_of_a_tenant_are_not_read_by_groups_of_others() -> None:
    """Whoever asked for them may have done so before there was the tenant."""
    host = Host({})
    reader = Reader(host, "m0", "orders", "acme~orders")
    reader.beat()
    host.change_topics(topics(**{"orders": 1, "acme~orders": 2}))
    reader.beat()
    assert reader.reads == {(topic_id("orders"), 0)}


def test_what_does_not_change_is_not_said_again() -> None:
    host = Host(FOUR)
    first, second = readers(host, 2)
    assert first.beat().assignment is None
    second.leave()
    assert first.beat().assignment is not None
    first.has_doubts = True
    assert first.beat().assignment is not None, "it said all, so it is told all"


def test_members_read_only_what_they_subscribe_to() -> None:
    known = topics(orders=2, clicks=3)
    host = Host(known)
    first, second = Reader(host, "m0", "orders"), Reader(host, "m1", "clicks", "orders", "nothing")
    for reader in (first, second, first, second):
        reader.beat()
    assert first.reads | second.reads == all_of(known)
    assert first.reads <= all_of(known, "orders")
    second.names, second.has_doubts = ("clicks",), True
    second.beat()
    first.beat()
    assert (first.reads, second.reads) == (all_of(known, "orders"), all_of(known, "clicks"))


def test_a_topic_made_later_is_read_when_it_is_there() -> None:
    host = Host({})
    reader = Reader(host, "m0", "orders")
    assert reader.beat().heartbeat_interval_ms == OPTIONS.settling_heartbeat_ms
    assert reader.reads == set()
    host.change_topics(FOUR)
    reader.beat()
    assert reader.reads == all_of(FOUR)


def test_new_partitions_and_deleted_topics_are_heard_of() -> None:
    host = Host(FOUR)
    (reader,) = readers(host, 1)
    epoch = reader.epoch
    host.change_topics(topics(orders=6, other=1))
    assert len(reader.beat().assignment or ()) == 1
    assert reader.reads == all_of(host.topics, "orders")
    assert reader.epoch == epoch + 1
    host.change_topics(host.topics | topics(foreign=1))
    assert reader.beat().member_epoch == epoch + 1, "a topic that nobody reads changes nothing"
    host.change_topics({"orders": Topic("orders", topic_id("orders", 1), 1)})
    reader.beat()
    assert reader.reads == {(topic_id("orders", 1), 0)}
    host.change_topics({})
    reader.beat()
    assert reader.reads == set()


def test_heartbeats_are_frequent_while_partitions_change_hands() -> None:
    host = Host(FOUR)
    first, second = Reader(host, "m0", "orders"), Reader(host, "m1", "orders")
    assert first.beat().heartbeat_interval_ms == OPTIONS.settling_heartbeat_ms
    assert first.beat().heartbeat_interval_ms == OPTIONS.heartbeat_ms
    second.beat()
    assert second.beat().heartbeat_interval_ms == OPTIONS.settling_heartbeat_ms, "the first has not heard yet"
    assert first.beat().heartbeat_interval_ms == OPTIONS.settling_heartbeat_ms
    assert [reader.beat().heartbeat_interval_ms for reader in (first, second)] == [OPTIONS.heartbeat_ms] * 2


# -- epochs and sessions


def test_a_lost_answer_costs_nothing_the_previous_epoch_is_accepted() -> None:
    host = Host(FOUR)
    first, second = readers(host, 2)
    second.leave()
    first.beat(loses_reply=True)
    assert host.members["m0"].epoch == first.epoch + 1
    first.has_doubts = False
    reply = first.beat()
    assert (reply.code, reply.member_epoch) == (Code.NONE, host.members["m0"].epoch)
    assert first.reads == all_of(FOUR)


def test_another_epoch_is_fenced_and_changes_nothing() -> None:
    host = Host(FOUR)
    first, second = readers(host, 2)
    second.leave()
    first.beat()
    for epoch in (first.epoch - 2, first.epoch + 1):
        assert host.tell(first.command(epoch)).code is Code.FENCED_MEMBER_EPOCH
        assert host.facts == []


def test_a_fenced_member_joins_again_under_its_id() -> None:
    host = Host(FOUR)
    (reader,) = readers(host, 1)
    reader.epoch += 5
    assert reader.beat().code is Code.FENCED_MEMBER_EPOCH
    assert reader.beat().code is Code.NONE
    assert reader.reads == all_of(FOUR)
    assert set(host.members) == {"m0"}


def test_a_silent_member_is_forgotten_and_must_join_again() -> None:
    host = Host(FOUR)
    first, second = readers(host, 2)
    host.advance(OPTIONS.session_ms - 1)
    first.beat()
    host.advance(1)
    assert set(host.members) == {"m0"}
    first.beat()
    assert first.reads == all_of(FOUR)
    assert second.beat().code is Code.UNKNOWN_MEMBER_ID
    assert second.beat().code is Code.NONE


def test_the_last_silent_member_leaves_an_empty_group_without_deadlines() -> None:
    host = Host(FOUR)
    readers(host, 3)
    host.advance(OPTIONS.session_ms)
    assert host.group.is_empty
    assert host.group.state_name == "Empty"
    assert host.group.next_deadline_ms() is None


def test_the_groups_own_options_set_its_times_and_can_be_taken_back() -> None:
    host = Host(FOUR)
    (reader,) = readers(host, 1)
    assert reader.beat(session_ms=10_000, heartbeat_ms=2_000).heartbeat_interval_ms == 2_000
    assert host.group.next_deadline_ms() == host.now_ms + 10_000
    assert reader.beat(session_ms=10_000, heartbeat_ms=2_000).heartbeat_interval_ms == 2_000
    assert len(host.facts) == 1, "that it was heard, no more"
    assert reader.beat().heartbeat_interval_ms == OPTIONS.heartbeat_ms
    assert host.group.next_deadline_ms() == host.now_ms + OPTIONS.session_ms
    host.advance(OPTIONS.session_ms)
    assert host.group.is_empty


def test_heartbeats_that_change_nothing_leave_one_fact() -> None:
    host = Host(FOUR)
    first, _ = readers(host, 2)
    host.advance(1_000)
    first.beat()
    assert len(host.facts) == 1


# -- refusals


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, Code.INVALID_REQUEST),
        ({"rack_id": ""}, Code.INVALID_REQUEST),
        ({"member_epoch": -2}, Code.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, Code.INVALID_REQUEST),
        ({"subscribed_topic_names": ()}, Code.INVALID_REQUEST),
        ({"subscribed_topic_names": ("a", "b", "c")}, Code.INVALID_REQUEST),
        ({"member_epoch": 3}, Code.UNKNOWN_MEMBER_ID),
        ({"member_epoch": -1}, Code.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(fields: dict[str, Any], code: Code) -> None:
    host = Host(FOUR, ShareGroupOptions(topics_max=2))
    reply = host.tell(msgspec.structs.replace(JOIN, **fields))
    assert reply.code is code
    assert reply.message
    assert host.facts == []


def test_a_full_group_takes_no_more_but_keeps_its_members() -> None:
    host = Host(FOUR)
    first, *_ = readers(host, OPTIONS.size_max)
    assert host.tell(JOIN).code is Code.GROUP_MAX_SIZE_REACHED
    first.epoch, first.has_doubts = 0, True
    assert first.beat().code is Code.NONE


def test_before_topics_are_known_members_are_asked_for_patience() -> None:
    group = ShareGroup("g", OPTIONS)
    outcome = group.decide(JOIN, 1, 0)
    assert (outcome.facts, outcome.replies[0][1].code) == ([], Code.COORDINATOR_LOAD_IN_PROGRESS)


def test_foreign_words_are_a_bug() -> None:
    group = ShareGroup("g", OPTIONS)
    with pytest.raises(TypeError):
        group.decide("hello", 1, 0)
    with pytest.raises(TypeError):
        group.forget(b"key")


# -- what is told


def test_a_group_describes_itself() -> None:
    host = Host(FOUR)
    readers(host, 2)
    host.tell(msgspec.structs.replace(JOIN, member_id="m9", rack_id="r", client_id="c", client_host="/h"))
    described = host.tell(DescribeShareGroup("g"))
    assert (described.group_id, described.state, described.assignor) == ("g", "Stable", "simple")
    assert described.epoch == described.target_epoch == 3
    assert [member.member_id for member in described.members] == ["m0", "m1", "m9"]
    last = described.members[-1]
    assert (last.rack_id, last.client_id, last.client_host, last.topic_names) == ("r", "c", "/h", ("orders",))
    assert last.assigned == last.target
    assert host.group.subscribed_topics() == {"orders"}
    assert list(host.group.facts()) == [], "a snapshot holds nothing of it"


def test_a_tick_without_anybody_to_forget_changes_nothing() -> None:
    host = Host(FOUR)
    readers(host, 1)
    host.tell(Tick())
    assert host.facts == []


def test_topics_alone_make_no_group() -> None:
    host = Host(FOUR)
    assert [type(fact) for fact in host.facts] == [ShareTopicsKnown]
    assert host.group.state_name == "Dead"

"""Who is let in: epochs, static members, subscriptions by expression, refusals."""

from typing import Any

import msgspec
import pytest

from goqueue.machines.groups.consumer.facts import (
    ConsumerHeartbeat,
    MemberState,
    TopicPartitions,
    unpacked,
)
from goqueue.model.codes import Code
from tests.unit.machines.consumer_groups import (
    OPTIONS,
    REBALANCE_MS,
    Consumer,
    Host,
    all_of,
    settle,
    topic_id,
    topics,
)

SIX = topics(orders=6)
JOIN = ConsumerHeartbeat("g", "m", 0, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=("orders",), owned=())


def joined(host: Host, *consumers: Consumer) -> None:
    for consumer in consumers:
        consumer.beat()
    settle(host, *consumers)


# -- epochs


def test_a_lost_answer_costs_nothing_the_previous_epoch_is_accepted() -> None:
    host = Host(SIX)
    first, second = Consumer(host, "m0", "orders"), Consumer(host, "m1", "orders")
    joined(host, first, second)
    second.leave()
    first.beat(loses_reply=True)
    assert host.members["m0"].epoch == first.epoch + 1
    reply = first.beat()
    assert (reply.code, reply.member_epoch) == (Code.NONE, host.members["m0"].epoch)
    assert first.holds == all_of(SIX)


def test_two_lost_answers_in_a_row_cost_nothing_either() -> None:
    host = Host(topics(orders=6, clicks=1))
    full, other = Consumer(host, "m0", "orders"), Consumer(host, "m1", "clicks")
    joined(host, full, other)
    other.names, other.has_doubts = ("clicks", "orders"), True
    other.beat(loses_reply=True)  # a new epoch, but it has to wait for its partitions
    full.cycle()
    other.beat(loses_reply=True)  # here they are, in the same epoch
    assert host.members["m1"].state is MemberState.STABLE
    assert other.beat().code == Code.NONE
    assert other.holds == host.targets()["m1"]
    assert len(other.holds) == 3


def test_a_lost_first_answer_is_asked_for_again() -> None:
    host = Host(SIX)
    member = Consumer(host, "m0", "orders")
    member.beat(loses_reply=True)
    reply = member.beat()
    assert (reply.code, reply.member_epoch) == (Code.NONE, 1)
    assert member.holds == all_of(SIX)


def test_a_member_two_epochs_behind_or_ahead_is_fenced() -> None:
    host = Host(SIX)
    member = Consumer(host, "m0", "orders")
    joined(host, member)
    for _ in range(2):
        other = Consumer(host, "other", "orders")
        joined(host, member, other)
        other.leave()
        joined(host, member)
    for epoch in (member.epoch - 2, member.epoch + 1):
        reply = host.tell(msgspec.structs.replace(member.command(epoch), owned=()))
        assert reply.code == Code.FENCED_MEMBER_EPOCH
        assert host.facts == []


def test_the_previous_epoch_with_foreign_partitions_or_without_saying_what_it_owns_is_fenced() -> None:
    host = Host(SIX)
    first, second = Consumer(host, "m0", "orders"), Consumer(host, "m1", "orders")
    joined(host, first)
    second.beat()
    first.cycle()
    previous = host.members["m0"].previous_epoch
    assert previous < host.members["m0"].epoch
    for owned in (None, host.members["m1"].target):
        command = msgspec.structs.replace(first.command(previous), owned=owned)
        assert host.tell(command).code == Code.FENCED_MEMBER_EPOCH
    assert host.tell(msgspec.structs.replace(first.command(previous), owned=())).code == Code.NONE


def test_an_old_heartbeat_cannot_ack_a_revocation() -> None:
    """It may have been under way since before the member got the partitions that it shall give up now."""
    host = Host(SIX)
    first, second, third = (Consumer(host, f"m{number}", "orders") for number in range(3))
    joined(host, first, second)
    second.leave()
    old = msgspec.structs.replace(first.command(), owned=host.members["m0"].assigned)
    first.cycle()
    third.beat()
    first.beat()
    assert host.members["m0"].state is MemberState.UNREVOKED
    assert old.member_epoch == host.members["m0"].previous_epoch
    host.tell(old)
    assert host.members["m0"].state is MemberState.UNREVOKED
    third.beat()
    assert not third.holds & first.holds


def test_partitions_that_came_with_a_lost_answer_need_no_ack_when_they_go_elsewhere() -> None:
    """Clients ack only what changes something for them: this one would stay silent, and the partitions unread."""
    host = Host(SIX)
    first, second, third = (Consumer(host, f"m{number}", "orders") for number in range(3))
    joined(host, first, second)
    second.leave()
    first.beat(loses_reply=True)
    assert len(unpacked(host.members["m0"].assigned)) == 6
    third.beat()
    first.beat()
    assert host.members["m0"].state is MemberState.STABLE
    third.beat()
    assert len(first.holds) == len(third.holds) == 3
    assert not first.holds & third.holds


def test_a_fenced_member_rejoins_under_its_id_and_gets_its_partitions_again() -> None:
    host = Host(SIX)
    first, second = Consumer(host, "m0", "orders"), Consumer(host, "m1", "orders")
    joined(host, first, second)
    had = set(first.holds)
    first.abandon()
    reply = first.beat()
    assert reply.code == Code.NONE
    assert first.holds == had
    assert host.group.state_name == "Stable"


def test_rejoining_gives_up_what_was_to_be_revoked() -> None:
    host = Host(SIX)
    first, second = Consumer(host, "m0", "orders"), Consumer(host, "m1", "orders")
    joined(host, first)
    second.beat()
    first.beat()
    first.abandon()
    first.beat()
    second.beat()
    assert len(first.holds) == len(second.holds) == 3
    assert not first.holds & second.holds


def test_only_the_present_epoch_of_a_member_commits() -> None:
    host = Host(SIX)
    group = host.group
    assert group.check_commit("", -1) == Code.NONE, "nobody is there whom it could disturb"
    member = Consumer(host, "m0", "orders")
    joined(host, member)
    assert group.check_commit("m0", member.epoch) == Code.NONE
    assert group.check_commit("m0", member.epoch - 1) == Code.STALE_MEMBER_EPOCH
    assert group.check_commit("m0", member.epoch + 1) == Code.STALE_MEMBER_EPOCH
    assert group.check_commit("m0", -1) == Code.STALE_MEMBER_EPOCH
    assert group.check_commit("", -1) == Code.UNKNOWN_MEMBER_ID
    host.advance(host.options.session_ms)
    assert group.check_commit("m0", member.epoch) == Code.UNKNOWN_MEMBER_ID


# -- static members


def test_a_static_member_that_comes_back_under_another_id_finds_its_partitions() -> None:
    host = Host(SIX)
    first = Consumer(host, "m0", "orders", instance_id="left")
    second = Consumer(host, "m1", "orders", instance_id="right")
    joined(host, first, second)
    had, epoch = set(first.holds), host.group.describe().epoch
    reply = first.leave(-2)
    assert (reply.code, reply.member_epoch) == (Code.NONE, -2)
    host.advance(host.options.session_ms - 1_000)
    assert second.beat().assignment is None
    again = Consumer(host, "m2", "orders", instance_id="left")
    again.beat()
    assert again.holds == had
    assert second.beat().assignment is None
    assert host.group.describe().epoch == epoch, "no rebalance"
    assert sorted(host.members) == ["m1", "m2"]
    assert host.group.state_name == "Stable"


def test_a_static_member_that_does_not_come_back_loses_its_partitions_with_its_session() -> None:
    host = Host(SIX)
    first = Consumer(host, "m0", "orders", instance_id="left")
    second = Consumer(host, "m1", "orders")
    joined(host, first, second)
    first.leave(-2)
    for _ in range(30):
        host.advance(1_000)
        second.cycle()
    assert second.holds == all_of(SIX)


def test_an_instance_id_in_use_is_not_given_to_another() -> None:
    host = Host(SIX)
    first = Consumer(host, "m0", "orders", instance_id="left")
    joined(host, first)
    second = Consumer(host, "m1", "orders", instance_id="left")
    assert second.beat().code == Code.UNRELEASED_INSTANCE_ID
    first.leave(-2)
    assert second.beat().code == Code.NONE
    first.epoch, first.has_doubts = 1, False
    assert host.tell(first.command()).code == Code.FENCED_INSTANCE_ID
    assert host.tell(first.command(-1)).code == Code.FENCED_INSTANCE_ID


def test_a_released_member_gives_up_what_was_to_be_revoked() -> None:
    host = Host(SIX)
    first = Consumer(host, "m0", "orders", instance_id="left")
    second = Consumer(host, "m1", "orders")
    joined(host, first)
    second.beat()
    first.beat()
    first.leave(-2)
    second.beat()
    assert len(second.holds) == 3


def test_a_static_member_that_leaves_for_good_is_gone() -> None:
    host = Host(SIX)
    first = Consumer(host, "m0", "orders", instance_id="left")
    joined(host, first)
    first.leave(-1)
    assert host.members == {}
    assert host.tell(first.command(-2)).code == Code.UNKNOWN_MEMBER_ID


def test_a_member_that_takes_the_place_of_a_released_one_leaves_its_own_to_the_others() -> None:
    host = Host(SIX)
    consumers = [Consumer(host, f"m{number}", "orders") for number in range(2)]
    gone = Consumer(host, "gone", "orders", instance_id="left")
    joined(host, *consumers, gone)
    gone.leave(-2)
    consumers[0].abandon()
    consumers[0].instance_id = "left"
    consumers[0].beat()
    settle(host, *consumers)
    assert len(consumers[0].holds) == len(consumers[1].holds) == 3


def test_a_static_member_keeps_its_place_in_the_order_under_another_id() -> None:
    host = Host(SIX)
    first = Consumer(host, "m5", "orders", instance_id="a", assignor="range")
    second = Consumer(host, "m6", "orders", instance_id="b")
    joined(host, first, second)
    had = set(first.holds)
    first.leave(-2)
    again = Consumer(host, "m9", "orders", instance_id="a")
    again.beat()
    host.change_topics(topics(orders=8))
    settle(host, again, second)
    assert again.holds == had | {(topic_id("orders"), 3)}


# -- subscriptions by expression


def test_an_expression_finds_topics_as_they_come() -> None:
    host = Host(topics(eu_orders=2, us_orders=2, clicks=2, __heartbeat=2))
    member = Consumer(host, "m0", regex="(eu|us)_.*")
    joined(host, member)
    assert member.holds == all_of(host.topics, "eu_orders", "us_orders")
    host.change_topics(host.topics | topics(us_refunds=1))
    settle(host, member)
    assert member.holds == all_of(host.topics, "eu_orders", "us_orders", "us_refunds")
    member.regex, member.has_doubts = ".*", True
    settle(host, member)
    assert member.holds == all_of(host.topics)
    member.regex, member.names, member.has_doubts = "", ("clicks",), True
    settle(host, member)
    assert member.holds == all_of(host.topics, "clicks")


def test_an_expression_must_match_the_whole_name_and_adds_to_names() -> None:
    host = Host(topics(order=1, orders=1, clicks=1))
    member = Consumer(host, "m0", "clicks", regex="^order")
    joined(host, member)
    assert member.holds == {(topic_id("order"), 0), (topic_id("clicks"), 0)}
    assert host.group.subscribed_topics() == {"order", "clicks"}


@pytest.mark.parametrize("asked", [{"regex": "acme~(?:.*)"}, {"names": ("acme~orders",)}])
@pytest.mark.parametrize(("group_id", "found"), [("g", ()), ("acme~g", ("acme~orders",)), ("acme-2~g", ())])
def test_topics_of_a_tenant_are_for_its_groups_alone(group_id: str, found: tuple[str, ...], asked: Any) -> None:
    """Whoever asked for them may have done so before there was the tenant."""
    host = Host({}, group_id)
    member = Consumer(host, "m0", *asked.get("names", ()), regex=asked.get("regex"))
    member.beat()
    host.change_topics(topics(**{"orders": 1, "acme~orders": 2, "acme-2~orders": 3}))
    settle(host, member)
    assert member.holds == (all_of(host.topics, *found) if found else set())


@pytest.mark.parametrize(
    "regex", ["(", "a{2,1}", "*", r"(a)\1", "(?=look)", "(((a{999}){999}){999}){999}", "x" * 1_001]
)
def test_a_bad_expression_is_refused(regex: str) -> None:
    host = Host(SIX)
    reply = Consumer(host, "m0", regex=regex).beat()
    assert reply.code == Code.INVALID_REGULAR_EXPRESSION
    assert reply.message is not None
    assert reply.message.startswith("not a regular expression")
    assert host.facts == []


def test_an_expression_that_would_never_end_elsewhere_is_matched_at_once() -> None:
    host = Host(topics(**{"a" * 240: 1}))
    member = Consumer(host, "m0", regex="(a+)+(a+)+(a+)+b")
    assert member.beat().assignment == ()


# -- refusals


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"server_assignor": ""},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"rebalance_timeout_ms": -1},
        {"rebalance_timeout_ms": -2, "member_epoch": 1},
        {"subscribed_topic_names": None},
        {"owned": None},
        {"owned": (TopicPartitions(topic_id("orders"), (0,)),)},
    ],
)
def test_a_malformed_heartbeat_is_refused(wrong: dict[str, Any]) -> None:
    host = Host(SIX)
    assert host.tell(msgspec.structs.replace(JOIN, **wrong)).code == Code.INVALID_REQUEST
    assert host.facts == []


def test_unknown_members_assignors_and_crowds_are_refused() -> None:
    host = Host(SIX, options=msgspec.structs.replace(OPTIONS, size_max=1))
    assert host.tell(msgspec.structs.replace(JOIN, member_epoch=3)).code == Code.UNKNOWN_MEMBER_ID
    assert host.tell(msgspec.structs.replace(JOIN, member_epoch=-1)).code == Code.UNKNOWN_MEMBER_ID
    assert host.tell(msgspec.structs.replace(JOIN, server_assignor="mine")).code == Code.UNSUPPORTED_ASSIGNOR
    first = Consumer(host, "m0", "orders", instance_id="left")
    joined(host, first)
    assert host.tell(JOIN).code == Code.GROUP_MAX_SIZE_REACHED
    first.leave(-2)
    assert Consumer(host, "m1", "orders", instance_id="left").beat().code == Code.NONE, "it replaces one"


def test_a_full_heartbeat_is_always_answered_in_full() -> None:
    host = Host(SIX)
    member = Consumer(host, "m0", "orders")
    joined(host, member)
    assert member.beat().assignment is None
    member.has_doubts = True
    reply = member.beat()
    assert reply.assignment is not None
    assert unpacked(reply.assignment) == all_of(SIX)
    assert host.durable_facts() == []

"""KIP-848 groups: how members come, go and move to their targets."""

import msgspec
import pytest

from goqueue.machines.groups.consumer.facts import (
    ConsumerGroupGone,
    ConsumerHeard,
    ConsumerMember,
    ConsumerMemberGone,
    ConsumerMemberKept,
    DescribeConsumerGroup,
    packed,
    unpacked,
)
from goqueue.machines.groups.consumer.group import ConsumerGroup
from goqueue.machines.machine import Tick
from goqueue.model.codes import Code
from goqueue.model.topics import Topic
from tests.unit.machines.consumer_groups import (
    REBALANCE_MS,
    Consumer,
    Host,
    all_of,
    settle,
    topic_id,
    topics,
)

SIX = topics(orders=6)


def stable(host: Host, count: int, *names: str) -> list[Consumer]:
    consumers = []
    for number in range(count):
        consumers.append(Consumer(host, f"m{number}", *names))
        consumers[-1].beat()
    settle(host, *consumers)
    return consumers


def state_of(consumer: Consumer) -> str:
    return consumer.member.state.value


def test_the_first_member_gets_everything_with_its_first_heartbeat() -> None:
    host = Host(SIX)
    reply = Consumer(host, "m0", "orders").beat()
    assert (reply.code, reply.member_id, reply.member_epoch) == (Code.NONE, "m0", 1)
    assert reply.assignment is not None
    assert unpacked(reply.assignment) == all_of(SIX)
    assert reply.heartbeat_interval_ms == host.options.heartbeat_ms
    assert host.group.state_name == "Stable"


def test_revoke_then_assign_then_complete() -> None:
    host = Host(SIX)
    (old,) = stable(host, 1, "orders")
    new = Consumer(host, "new", "orders")

    reply = new.beat()
    assert reply.assignment == ()
    assert reply.heartbeat_interval_ms == host.options.settling_heartbeat_ms
    assert state_of(new) == "pending_assign"
    assert host.group.state_name == "Reconciling"

    reply = old.beat()
    assert reply.assignment is not None
    assert len(unpacked(reply.assignment)) == 3
    assert reply.member_epoch == 1, "it stays in its epoch until it has given up"
    assert state_of(old) == "pending_revoke"
    assert new.beat().assignment is None, "what is not given up is not given out"

    assert old.beat().assignment is None, "a heartbeat that still owns them, or does not say, changes nothing"
    assert state_of(old) == "pending_revoke"

    old.give_up()
    reply = old.beat()
    assert (reply.member_epoch, reply.assignment) == (2, None)
    assert state_of(old) == "complete"

    reply = new.beat()
    assert state_of(new) == "complete"
    assert host.group.state_name == "Stable"
    assert old.holds | new.holds == all_of(SIX)
    assert not old.holds & new.holds
    new.give_up()
    assert new.beat().heartbeat_interval_ms == host.options.heartbeat_ms


def test_members_whose_partitions_do_not_move_hear_nothing_of_a_rebalance() -> None:
    """Eight of ten members keep all they have: not one of their answers carries an assignment, at any point."""
    host = Host(topics(orders=20))
    consumers = stable(host, 10, "orders")
    before = {consumer.member_id: set(consumer.holds) for consumer in consumers}
    newcomer = Consumer(host, "newcomer", "orders")
    newcomer.beat()
    losers = [consumer for consumer in consumers if host.targets()[consumer.member_id] != consumer.holds]
    assert len(losers) == 1
    for _ in range(3):
        for consumer in consumers:
            if consumer not in losers:
                assert consumer.beat().assignment is None
                assert consumer.holds == before[consumer.member_id]
        for consumer in losers:
            consumer.cycle()
        newcomer.cycle()
    assert host.group.state_name == "Stable"
    assert len(newcomer.holds) == 1


def test_a_third_consumer_joins_and_only_what_must_move_does() -> None:
    host = Host(SIX)
    first, second = stable(host, 2, "orders")
    kept = {first.member_id: set(first.holds), second.member_id: set(second.holds)}
    third = Consumer(host, "third", "orders")
    third.beat()
    settle(host, first, second, third)
    assert len(first.holds) == len(second.holds) == len(third.holds) == 2
    assert first.holds <= kept["m0"]
    assert second.holds <= kept["m1"]


def test_what_a_leaving_member_had_goes_on_at_the_next_heartbeat() -> None:
    host = Host(SIX)
    first, second = stable(host, 2, "orders")
    reply = second.leave()
    assert (reply.code, reply.member_epoch, reply.assignment) == (Code.NONE, -1, None)
    assert host.group.state_name == "Assigning"
    first.beat()
    assert first.holds == all_of(SIX)
    assert host.group.state_name == "Stable"


def test_a_paused_member_is_removed_after_its_revocation_timeout_and_its_partitions_go_on() -> None:
    host = Host(SIX)
    (slow,) = stable(host, 1, "orders")
    new = Consumer(host, "new", "orders")
    new.beat()
    slow.beat()  # is told to give up, and does not
    began_ms = host.now_ms
    while host.now_ms + 1_000 < began_ms + REBALANCE_MS:
        host.advance(1_000)
        slow.beat()
        new.cycle()
        assert new.holds == set()
    host.advance(1_000)
    assert list(host.members) == ["new"]
    assert host.group.counts.revocation_timeouts == 1
    new.beat()
    assert new.holds == all_of(SIX)
    assert slow.beat().code == Code.UNKNOWN_MEMBER_ID
    assert slow.beat().code == Code.NONE, "it may come again"
    settle(host, slow, new)
    assert len(slow.holds) == len(new.holds) == 3


def test_a_revocation_that_is_acked_in_time_ends_its_timeout() -> None:
    host = Host(SIX)
    (old,) = stable(host, 1, "orders")
    new = Consumer(host, "new", "orders")
    new.beat()
    old.cycle()
    for _ in range(30):
        host.advance(1_000)
        old.cycle()
        new.cycle()
    assert host.group.counts.revocation_timeouts == 0
    assert len(old.holds) == len(new.holds) == 3


def test_a_silent_member_is_removed_after_its_session() -> None:
    host = Host(SIX)
    first, second = stable(host, 2, "orders")
    assert host.group.next_deadline_ms() == host.now_ms + host.options.session_ms
    host.advance(host.options.session_ms - 1)
    first.beat()
    assert len(host.members) == 2
    host.advance(1)
    assert list(host.members) == ["m0"]
    first.beat()
    assert first.holds == all_of(SIX)
    assert second.beat().code == Code.UNKNOWN_MEMBER_ID


def test_two_groups_rebalance_at_the_same_time_each_for_itself() -> None:
    left, right = Host(SIX, "left"), Host(SIX, "right")
    groups = [(host, stable(host, 2, "orders"), Consumer(host, "new", "orders")) for host in (left, right)]
    for _, _, new in groups:
        new.beat()
    for _ in range(4):
        for host, old, new in groups:
            host.advance(500)
            for consumer in (*old, new):
                consumer.cycle()
    for host, old, new in groups:
        assert host.group.state_name == "Stable"
        held = [consumer.holds for consumer in (*old, new)]
        assert set().union(*held) == all_of(SIX)
        assert [len(each) for each in held] == [2, 2, 2]
        assert {fact.group_id for fact in host.group.facts()} == {host.group_id}  # type: ignore[attr-defined]


def test_epochs_of_group_targets_and_members() -> None:
    host = Host(SIX)
    first = Consumer(host, "m0", "orders")

    def epochs() -> tuple[int, int, dict[str, int]]:
        group = host.group.describe()
        return group.epoch, group.target_epoch, {member.member_id: member.epoch for member in group.members}

    assert epochs() == (0, 0, {})
    first.beat()
    assert epochs() == (1, 1, {"m0": 1})
    second = Consumer(host, "m1", "orders")
    second.beat()
    assert epochs() == (2, 2, {"m0": 1, "m1": 2})
    first.beat()
    assert epochs() == (2, 2, {"m0": 1, "m1": 2})
    first.give_up()
    first.beat()
    assert epochs() == (2, 2, {"m0": 2, "m1": 2})
    first.beat()
    assert epochs() == (2, 2, {"m0": 2, "m1": 2}), "where nothing changes, no epoch begins"
    second.leave()
    assert epochs() == (3, 2, {"m0": 2})
    first.beat()
    assert epochs() == (3, 3, {"m0": 3})


def test_a_steady_heartbeat_stores_nothing() -> None:
    host = Host(SIX)
    (member,) = stable(host, 1, "orders")
    member.beat()
    assert [type(fact) for fact in host.facts] == [ConsumerHeard]


def test_added_partitions_are_noticed_without_a_stop() -> None:
    host = Host(SIX)
    consumers = stable(host, 3, "orders")
    before = {consumer.member_id: set(consumer.holds) for consumer in consumers}
    host.change_topics({"orders": Topic("orders", topic_id("orders"), 8)})
    assert host.group.state_name == "Assigning"
    settle(host, *consumers)
    assert set().union(*(consumer.holds for consumer in consumers)) == all_of(host.topics)
    assert all(before[consumer.member_id] <= consumer.holds for consumer in consumers)


def test_topics_that_nobody_subscribes_to_disturb_nobody() -> None:
    host = Host(SIX)
    stable(host, 2, "orders")
    host.change_topics(topics(orders=6, other=3))
    assert host.durable_facts() == []
    assert host.group.state_name == "Stable"


def test_a_topic_is_noticed_when_it_is_made_deleted_and_made_again() -> None:
    host = Host(SIX)
    (member,) = stable(host, 1, "orders", "later")
    host.change_topics(topics(orders=6, later=2))
    settle(host, member)
    assert member.holds == all_of(host.topics)
    host.change_topics({**SIX, "later": Topic("later", topic_id("later", 1), 2)})
    settle(host, member)
    assert member.holds == all_of(host.topics), "another topic of that name has other partitions"
    host.change_topics({})
    settle(host, member)
    assert member.holds == set()


def test_a_changed_subscription_moves_the_member_to_its_new_topics() -> None:
    host = Host(topics(orders=4, clicks=4))
    first, second = stable(host, 2, "orders")
    second.names, second.has_doubts = ("clicks",), True
    settle(host, first, second)
    assert first.holds == all_of(host.topics, "orders")
    assert second.holds == all_of(host.topics, "clicks")
    assert host.group.subscribed_topics() == {"orders", "clicks"}


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    host = Host(topics(a=4, b=4))
    members = [Consumer(host, f"m{number}", "a", "b", assignor=name) for number, name in enumerate(["range", None])]
    for member in members:
        member.beat()
    settle(host, *members)
    assert host.group.describe().assignor == "range"
    assert members[0].holds == {(topic_id(name), number) for name in "ab" for number in (0, 1)}
    members[0].assignor, members[0].has_doubts = "roundrobin", True
    settle(host, *members)
    assert host.group.describe().assignor == "roundrobin"
    assert members[0].holds == {(topic_id(name), number) for name in "ab" for number in (0, 2)}


def test_after_a_restart_members_go_on_without_a_rebalance() -> None:
    host = Host(SIX)
    consumers = stable(host, 3, "orders")
    epoch = host.group.describe().epoch
    host.restart()
    assert host.durable_facts() == []
    host.advance(1)  # session clocks start
    for consumer in consumers:
        reply = consumer.beat()
        assert (reply.code, reply.assignment, reply.member_epoch) == (Code.NONE, None, epoch)
        assert host.durable_facts() == []
    assert host.group.state_name == "Stable"


def test_after_a_restart_silent_members_and_unfinished_revocations_still_time_out() -> None:
    host = Host(SIX)
    (old,) = stable(host, 1, "orders")
    new = Consumer(host, "new", "orders")
    new.beat()
    old.beat()
    host.restart()
    assert host.group.next_deadline_ms() == 0, "at once, to start the clocks"
    host.tell(Tick())
    assert host.group.next_deadline_ms() == host.now_ms + REBALANCE_MS
    host.advance(REBALANCE_MS)
    assert list(host.members) == ["new"]
    host.advance(host.options.session_ms)
    assert host.members == {}
    assert host.group.next_deadline_ms() is None


def test_partitions_added_while_the_broker_was_down_are_noticed_at_its_start() -> None:
    host = Host(SIX)
    (member,) = stable(host, 1, "orders")
    host.topics = topics(orders=7)
    host.restart()
    settle(host, member)
    assert member.holds == all_of(host.topics)


def test_the_names_of_a_groups_life() -> None:
    host = Host(SIX)
    assert host.group.state_name == "Dead"
    (member,) = stable(host, 1, "orders")
    assert host.group.state_name == "Stable"
    member.leave()
    assert host.group.state_name == "Empty"
    host.store([ConsumerGroupGone("g")])
    assert host.group.state_name == "Dead"
    assert list(host.group.facts()) == []
    assert set(host.ledger.values()) == {None}
    assert host.replayed(compacted=False).state_name == "Dead"


def test_facts_of_two_members_may_be_replayed_in_any_order() -> None:
    """What one member no longer has, another may have got in a fact that lies before."""
    group = ConsumerGroup("g")
    orders = packed(all_of(SIX))
    group.apply(ConsumerMemberKept("g", ConsumerMember("old", instance_id="i", assigned=orders)))
    group.apply(ConsumerMemberKept("g", ConsumerMember("new", instance_id="i", assigned=orders)))
    group.apply(ConsumerMemberKept("g", ConsumerMember("old")))
    group.forget(ConsumerMemberGone("g", "old").key())
    group.forget(ConsumerMemberGone("g", "old").key())
    assert set(group._state.owners.values()) == {"new"}
    assert group._state.instances == {"i": "new"}


def test_what_describe_returns_cannot_change_the_group() -> None:
    host = Host(SIX)
    stable(host, 2, "orders")
    description = host.tell(DescribeConsumerGroup("g"))
    assert description.state == "Stable"
    assert [member.member_id for member in description.members] == ["m0", "m1"]
    with pytest.raises(AttributeError):
        description.members[0].epoch = 9
    with pytest.raises(TypeError):
        description.members[0].assigned[0] = None
    assert msgspec.json.decode(msgspec.json.encode(description))["members"][1]["client_id"] == "client"


def test_a_group_that_knows_no_topics_yet_asks_for_patience() -> None:
    host = Host(SIX)
    host.group = ConsumerGroup("g", host.options)
    assert Consumer(host, "m0", "orders").beat().code == Code.COORDINATOR_LOAD_IN_PROGRESS
    assert host.facts == []

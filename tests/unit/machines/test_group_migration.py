"""A group with members changes between the classic protocol and that of KIP-848, and nobody is stopped for it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goqueue.machines.groups.commands import GroupProtocol, Heartbeat, JoinReply, LeavingMember, SyncGroup
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat, DescribeConsumerGroup
from goqueue.model.codes import Code
from tests.unit.machines.group_driver import SESSION_MS, Driver, at, join
from tests.unit.machines.migrating_members import (
    TRY_AGAIN,
    ClassicClient,
    Client,
    NewClient,
    announce,
    check_disjoint,
    kind_of,
    new_driver,
    settle,
    subscription,
)

REBALANCE_MS = 60_000


@pytest.fixture
def driver() -> Driver:
    return new_driver()


@pytest.mark.parametrize("is_cooperative", [False, True])
def test_members_are_replaced_one_by_one_both_ways(driver: Driver, is_cooperative: bool) -> None:
    members: list[Client] = [ClassicClient(driver, f"c{each}", is_cooperative=is_cooperative) for each in range(3)]
    settle(driver, *members)
    assert kind_of(driver) == "classic"
    for number in range(3):
        assert members[number].leave() is Code.NONE
        members[number] = NewClient(driver, f"n{number}")
        settle(driver, *members)
        assert kind_of(driver) == "consumer"
    for number in range(3):
        assert members[number].leave() is Code.NONE
        members[number] = ClassicClient(driver, f"d{number}", is_cooperative=is_cooperative)
        settle(driver, *members)
        assert kind_of(driver) == ("consumer" if number < 2 else "classic")
    told = {code for member in members for code in member.codes}
    assert told <= TRY_AGAIN, "nobody was fenced, and nobody was turned away"


@pytest.mark.parametrize("is_cooperative", [False, True])
def test_a_new_member_joins_a_running_classic_group(driver: Driver, is_cooperative: bool) -> None:
    classic = ClassicClient(driver, "c", is_cooperative=is_cooperative)
    settle(driver, classic)
    new = NewClient(driver, "n")
    new.step()
    assert new.owned == set(), "the other still has everything"
    assert classic.owned == set(range(6))
    settle(driver, classic, new)
    assert len(classic.owned) == len(new.owned) == 3
    assert set(classic.codes) <= TRY_AGAIN
    described = driver.ask(DescribeConsumerGroup("g"))
    assert {each.member_id: bool(each.classic_protocols) for each in described.members} == {"c": True, "n": False}
    assert driver.describe().code is Code.GROUP_ID_NOT_FOUND


def test_offsets_stay_and_each_member_commits_with_its_own_epoch(driver: Driver) -> None:
    classic, new = ClassicClient(driver, "c"), NewClient(driver, "n")
    settle(driver, classic)
    assert driver.commit(at("orders", 0, 5), member_id="c", generation=classic.generation) == [Code.NONE]
    settle(driver, classic, new)
    assert driver.offsets() == {("orders", 0): 5}
    assert driver.commit(at("orders", 0, 6), member_id="c", generation=classic.generation) == [Code.NONE]
    assert driver.commit(at("orders", 1, 7), member_id="n", generation=new.epoch) == [Code.NONE]
    assert driver.commit(at("orders", 0, 1), member_id="c", generation=1) == [Code.ILLEGAL_GENERATION]
    assert driver.commit(at("orders", 0, 1), member_id="n", generation=1) == [Code.STALE_MEMBER_EPOCH]
    new.leave()
    settle(driver, classic)
    assert kind_of(driver) == "classic"
    assert driver.offsets() == {("orders", 0): 6, ("orders", 1): 7}


def test_a_restart_in_the_middle_changes_nothing(driver: Driver) -> None:
    classic, new = ClassicClient(driver, "c"), NewClient(driver, "n")
    settle(driver, classic, new)
    before = classic.owned, new.owned, classic.generation
    driver.restart()
    announce(driver)
    settle(driver, classic, new)
    assert (classic.owned, new.owned, classic.generation) == before
    new.leave()
    driver.restart()
    announce(driver)
    settle(driver, classic)
    assert kind_of(driver) == "classic"
    assert Code.UNKNOWN_MEMBER_ID not in classic.codes


def test_who_waits_in_a_classic_group_that_becomes_another_is_told_to_join_again(driver: Driver) -> None:
    first = ClassicClient(driver, "a")
    settle(driver, first)
    waiting = driver.join_new("b", protocols=(GroupProtocol("any", subscription()),))
    assert waiting not in driver.replies
    new = NewClient(driver, "n")
    new.step()
    assert driver.join_reply(waiting).code is Code.COORDINATOR_LOAD_IN_PROGRESS, "aiokafka gives up at any other"
    second = ClassicClient(driver, "b")
    second.member_id = "b"
    settle(driver, first, second, new)
    assert {len(each.owned) for each in (first, second, new)} == {2}


OFFERS = tuple(GroupProtocol(name, subscription()) for name in ("range", "roundrobin"))


def test_a_late_sync_names_another_protocol_than_the_changed_group_and_is_told_to_join_again(driver: Driver) -> None:
    """Clients end at a protocol that does not fit. It fitted when they joined."""
    driver.join_new("a", protocols=OFFERS)
    tickets = [driver.join_new("b", protocols=OFFERS[::-1]), driver.send(join("a", protocols=OFFERS))]
    joined = [driver.join_reply(each) for each in tickets]
    assert {each.protocol for each in joined} == {"range"}
    NewClient(driver, "n").step()
    assert kind_of(driver) == "consumer"
    assert {_sync(driver, each) for each in joined} == {Code.REBALANCE_IN_PROGRESS}
    joined = [driver.ask(join("a", protocols=OFFERS)), driver.ask(join("b", protocols=OFFERS[::-1]))]
    assert [each.protocol for each in joined] == ["range", "roundrobin"], "each its own"
    driver.ask(ConsumerHeartbeat("g", "n", -1))
    assert kind_of(driver) == "classic"
    assert {_sync(driver, each) for each in joined} <= {Code.REBALANCE_IN_PROGRESS, Code.ILLEGAL_GENERATION}


def _sync(driver: Driver, joined: JoinReply) -> Code:
    return Code(driver.ask(SyncGroup("g", joined.generation, joined.member_id, protocol=joined.protocol)).code)


def test_a_new_member_that_falls_silent_leaves_a_classic_group_behind(driver: Driver) -> None:
    classic, new = ClassicClient(driver, "c"), NewClient(driver, "n")
    settle(driver, classic, new)
    new.owned = set()  # its process is gone
    for _ in range(40):
        driver.advance(1000)
        classic.step()
    settle(driver, classic)
    assert kind_of(driver) == "classic"


def test_a_classic_member_that_falls_silent_is_dropped_after_its_own_session(driver: Driver) -> None:
    classic, new = ClassicClient(driver, "c"), NewClient(driver, "n")
    settle(driver, classic, new)
    for _ in range(SESSION_MS // 1000):
        driver.advance(1000)
        new.step()
    new.step()
    classic.owned = set()
    settle(driver, new)
    assert driver.ask(Heartbeat("g", classic.generation, "c")).code is Code.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_join_again_in_time_is_dropped(driver: Driver) -> None:
    classic, new = ClassicClient(driver, "c"), NewClient(driver, "n")
    settle(driver, classic)
    new.step()
    for _ in range(REBALANCE_MS // 1000):
        assert driver.ask(Heartbeat("g", classic.generation, "c")).code is Code.REBALANCE_IN_PROGRESS
        driver.advance(1000)
        new.step()
    assert driver.ask(Heartbeat("g", classic.generation, "c")).code is Code.UNKNOWN_MEMBER_ID
    classic.owned = set()
    settle(driver, new)


@pytest.mark.parametrize(
    ("protocol_type", "metadata"), [("connect", subscription()), ("consumer", b"\x00\x01\xff\xff\xff\xff")]
)
def test_a_group_of_something_else_than_consumers_does_not_change(
    driver: Driver, protocol_type: str, metadata: bytes
) -> None:
    protocols = (GroupProtocol("any", metadata),)
    ticket = driver.join_new("w", protocol_type=protocol_type, protocols=protocols)
    driver.sync("w", driver.join_reply(ticket).generation, w=b"")
    new = NewClient(driver, "n")
    new.step()
    assert new.codes == [Code.GROUP_ID_NOT_FOUND]
    assert kind_of(driver) == "classic"


def test_only_consumers_that_agree_with_others_join_as_classic_members(driver: Driver) -> None:
    settle(driver, NewClient(driver, "n"), ClassicClient(driver, "c"))
    for protocol_type, offered in (("connect", "any"), ("consumer", "unheard-of")):
        protocols = (GroupProtocol(offered, subscription()),)
        refused = driver.ask(join("", "x", protocol_type=protocol_type, protocols=protocols))
        assert refused.code is Code.INCONSISTENT_GROUP_PROTOCOL
    bad = (GroupProtocol("any", b"\xff"),)
    assert driver.ask(join("", "x", protocols=bad)).code is Code.INCONSISTENT_GROUP_PROTOCOL
    short = join("", "x", session_timeout_ms=1, protocols=(GroupProtocol("any", subscription()),))
    assert driver.ask(short).code is Code.INVALID_SESSION_TIMEOUT


def test_members_are_told_when_they_speak_from_the_past_or_in_the_wrong_protocol(driver: Driver) -> None:
    classic, new = ClassicClient(driver, "c"), NewClient(driver, "n")
    settle(driver, classic, new)
    for member_id, generation, code in (
        ("c", classic.generation - 1, Code.ILLEGAL_GENERATION),
        ("n", new.epoch, Code.UNKNOWN_MEMBER_ID),
        ("x", 1, Code.UNKNOWN_MEMBER_ID),
    ):
        assert driver.ask(Heartbeat("g", generation, member_id)).code is code
        assert driver.ask(SyncGroup("g", generation, member_id)).code is code
    wrong = SyncGroup("g", classic.generation, "c", protocol="other")
    assert driver.ask(wrong).code is Code.INCONSISTENT_GROUP_PROTOCOL
    assert driver.leave(LeavingMember("n"), LeavingMember("x")) == (Code.UNKNOWN_MEMBER_ID,) * 2


def test_a_static_member_keeps_its_partitions_when_it_comes_back_in_the_other_protocol(driver: Driver) -> None:
    settle(driver, NewClient(driver, "n"))
    protocols = (GroupProtocol("any", subscription()),)

    def joined(new_id: str, member_id: str = "") -> Code:
        return Code(driver.ask(join(member_id, new_id, instance_id="i", protocols=protocols)).code)

    assert joined("s1") is Code.NONE
    assert joined("s2") is Code.NONE, "it was restarted, and has forgotten its id"
    assert joined("", "s1") is Code.FENCED_INSTANCE_ID
    described = driver.ask(DescribeConsumerGroup("g"))
    assert [each.member_id for each in described.members] == ["n", "s2"]
    taken = ConsumerHeartbeat(
        "g", "s3", 0, "i", rebalance_timeout_ms=1000, subscribed_topic_names=("orders",), owned=()
    )
    assert driver.ask(taken).code is Code.UNRELEASED_INSTANCE_ID
    assert driver.leave(LeavingMember("", "i")) == (Code.NONE,)
    assert driver.ask(taken).code is Code.NONE


actions = st.lists(
    st.tuples(st.sampled_from(["classic", "cooperative", "new", "leave", "die", "restart"]), st.integers(0, 40)),
    max_size=12,
)


def restart(driver: Driver, clients: list[Client]) -> None:
    driver.restart()
    announce(driver)
    for client in clients:
        if isinstance(client, ClassicClient):
            client.lose_connection()


def walk(actions: list[tuple[str, int]]) -> None:
    driver = new_driver()
    clients: list[Client] = []
    for number, (action, steps) in enumerate(actions):
        if action == "restart":
            restart(driver, clients)
        elif action == "new":
            clients.append(NewClient(driver, f"m{number}"))
        elif action in ("classic", "cooperative"):
            clients.append(ClassicClient(driver, f"m{number}", is_cooperative=action == "cooperative"))
        elif clients:
            gone = clients.pop(steps % len(clients))
            if action == "leave":
                gone.leave()
            else:
                gone.owned = set()
        for turn in range(steps):
            if clients:
                clients[turn % len(clients)].step()
                check_disjoint(clients)
            driver.advance(100)
    clients.append(NewClient(driver, "last"))
    for _ in range(120):
        for client in clients:
            client.step()
            check_disjoint(clients)
        driver.advance(1000)
    settle(driver, *clients)


@settings(max_examples=5, deadline=None)
@example([("classic", 0), ("cooperative", 9), ("classic", 27), ("leave", 0)])  # who had not heard yet what to give up
@example([("cooperative", 2), ("classic", 15), ("restart", 0)])  # who waited for an answer when the node was restarted
@given(actions)
def test_no_partition_has_two_owners_and_none_is_left_over(actions: list[tuple[str, int]]) -> None:
    walk(actions)


@pytest.mark.second_layer
@settings(max_examples=45, deadline=None)
@given(actions)
def test_no_partition_has_two_owners_and_none_is_left_over_in_more_walks(actions: list[tuple[str, int]]) -> None:
    walk(actions)

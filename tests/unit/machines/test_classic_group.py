import pytest

from goqueue.machines.groups.classic.payloads import topics_of_subscription
from goqueue.machines.groups.commands import GroupOptions, GroupProtocol, JoinedMember, LeavingMember, SyncGroup
from goqueue.model.codes import Code
from tests.unit.machines.group_driver import REBALANCE_MS, SESSION_MS, Driver, join, subscription


def offers(*names: str) -> tuple[GroupProtocol, ...]:
    return tuple(GroupProtocol(name, b"about " + name.encode()) for name in names)


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_a_new_member_is_told_its_id_and_joins_with_it(driver: Driver) -> None:
    """The id comes with the command, where the dice are."""
    told = driver.ask(join(new_id="app-5eed"))
    assert (told.code, told.member_id) == (Code.MEMBER_ID_REQUIRED, "app-5eed")
    reply = driver.ask(join("app-5eed"))
    assert reply.code is Code.NONE
    assert (reply.member_id, reply.leader, reply.generation) == ("app-5eed", "app-5eed", 1)
    assert (reply.protocol_type, reply.protocol) == ("consumer", "range")
    assert reply.members == (JoinedMember("app-5eed", None, subscription("orders")),)


def test_an_old_client_joins_in_one_step(driver: Driver) -> None:
    reply = driver.ask(join(new_id="app-1", knows_member_id_required=False))
    assert (reply.code, reply.member_id, reply.generation) == (Code.NONE, "app-1", 1)


def test_a_group_waits_for_an_id_that_was_given_out(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.ask(join(new_id="b"))
    first = driver.send(join("a"))
    assert first not in driver.replies
    second = driver.send(join("b"))
    assert driver.join_reply(first).generation == driver.join_reply(second).generation == 1


def test_only_the_leader_sees_the_members(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.ask(join(new_id="b"))
    leader, follower = driver.send(join("a")), driver.send(join("b"))
    assert [each.member_id for each in driver.join_reply(leader).members] == ["a", "b"]
    assert driver.join_reply(follower).members == ()
    assert driver.join_reply(follower).leader == "a"


def test_the_protocol_is_one_that_all_support_by_votes(driver: Driver) -> None:
    wishes = {"a": offers("x", "range", "sticky"), "b": offers("sticky", "range"), "c": offers("sticky", "range", "x")}
    for member_id, protocols in wishes.items():
        driver.ask(join(new_id=member_id, protocols=protocols))
    tickets = [driver.send(join(member_id, protocols=protocols)) for member_id, protocols in wishes.items()]
    replies = [driver.join_reply(ticket) for ticket in tickets]
    assert {reply.protocol for reply in replies} == {"sticky"}
    assert {each.metadata for each in replies[0].members} == {b"about sticky"}


def test_equal_votes_always_end_the_same_way(driver: Driver) -> None:
    driver.ask(join(new_id="a", protocols=offers("x", "y")))
    driver.ask(join(new_id="b", protocols=offers("y", "x")))
    ticket = driver.send(join("a", protocols=offers("x", "y")))
    driver.send(join("b", protocols=offers("y", "x")))
    assert driver.join_reply(ticket).protocol == "x"


def test_followers_wait_for_the_leaders_assignment(driver: Driver) -> None:
    for member_id in ("a", "b", "c"):
        driver.ask(join(new_id=member_id))
    for member_id in ("a", "b", "c"):
        driver.send(join(member_id))
    follower = driver.sync("b", 1)
    assert follower not in driver.replies
    assert driver.describe().state == "CompletingRebalance"
    leader = driver.sync("a", 1, a=b"0", b=b"1")
    assert driver.sync_reply(follower).assignment == b"1"
    assert driver.sync_reply(leader).assignment == b"0"
    assert driver.sync_reply(driver.sync("c", 1)).assignment == b"", "whom the leader does not name gets nothing"
    assert driver.describe().state == "Stable"


def test_a_repeated_sync_repeats_the_assignment(driver: Driver) -> None:
    generation = driver.stable("a", "b")
    for member_id in ("a", "b"):
        reply = driver.sync_reply(driver.sync(member_id, generation, a=b"other", b=b"other"))
        assert (reply.code, reply.assignment) == (Code.NONE, member_id.encode())


def test_a_sync_that_was_sent_again_answers_the_first_one_too(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.ask(join(new_id="b"))
    driver.send(join("a"))
    driver.send(join("b"))
    lost, again = driver.sync("b", 1), driver.sync("b", 1)
    assert driver.sync_reply(lost).code is Code.REBALANCE_IN_PROGRESS
    driver.sync("a", 1, b=b"1")
    assert driver.sync_reply(again).assignment == b"1"


def test_a_join_that_was_sent_again_answers_the_first_one_too(driver: Driver) -> None:
    driver.stable("a", "b")
    lost, again = driver.send(join("a")), driver.send(join("a"))
    assert driver.join_reply(lost).code is Code.REBALANCE_IN_PROGRESS
    driver.send(join("b"))
    assert driver.join_reply(again).generation == 2


def test_a_sync_that_names_another_protocol_is_refused(driver: Driver) -> None:
    generation = driver.stable("a")
    for protocol_type, protocol in (("connect", None), (None, "sticky")):
        refused = driver.ask(SyncGroup("g", generation, "a", None, protocol_type, protocol))
        assert refused.code is Code.INCONSISTENT_GROUP_PROTOCOL
    assert driver.ask(SyncGroup("g", generation, "a", None, "consumer", "range")).code is Code.NONE


def test_each_rebalance_begins_a_generation(driver: Driver) -> None:
    assert driver.stable("a") == 1
    second = driver.join_new("b")
    assert driver.heartbeat("a", 1) is Code.REBALANCE_IN_PROGRESS
    driver.send(join("a"))
    assert driver.join_reply(second).generation == 2
    driver.sync("a", 2)
    driver.sync("b", 2)
    assert driver.heartbeat("a", 1) is Code.ILLEGAL_GENERATION
    assert driver.heartbeat("a", 2) is Code.NONE
    assert driver.leave(LeavingMember("b")) == (Code.NONE,)
    assert driver.join_reply(driver.send(join("a"))).generation == 3


def test_a_follower_with_nothing_new_starts_no_rebalance(driver: Driver) -> None:
    generation = driver.stable("a", "b")
    told = driver.ask(join("b"))
    assert (told.code, told.generation, told.leader, told.members) == (Code.NONE, generation, "a", ())
    assert driver.describe().state == "Stable"


@pytest.mark.parametrize("news", [{"member_id": "a"}, {"member_id": "b", "protocols": offers("range")}])
def test_a_leader_or_a_changed_subscription_starts_a_rebalance(driver: Driver, news: dict[str, str]) -> None:
    driver.stable("a", "b")
    ticket = driver.send(join(**news))
    assert ticket not in driver.replies
    assert driver.describe().state == "PreparingRebalance"


def test_a_member_that_missed_its_generation_is_told_it_again(driver: Driver) -> None:
    first = driver.join_new("a")
    assert driver.ask(join("a")) == driver.join_reply(first)


def test_news_during_the_sync_phase_send_all_back_to_join(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.ask(join(new_id="b"))
    driver.send(join("a"))
    driver.send(join("b"))
    waiting = driver.sync("b", 1)
    driver.send(join("a", protocols=offers("range")))
    assert driver.sync_reply(waiting).code is Code.REBALANCE_IN_PROGRESS


def test_a_member_without_a_common_protocol_is_refused(driver: Driver) -> None:
    driver.stable("a")
    for fields in ({"protocol_type": "connect"}, {"protocols": offers("other")}, {"protocols": ()}):
        assert driver.ask(join(new_id="b", **fields)).code is Code.INCONSISTENT_GROUP_PROTOCOL
    assert driver.describe().state == "Stable"


@pytest.mark.parametrize("fields", [{"protocol_type": ""}, {"protocols": ()}])
def test_the_first_member_must_offer_something(driver: Driver, fields: dict[str, str]) -> None:
    assert driver.ask(join(new_id="a", **fields)).code is Code.INCONSISTENT_GROUP_PROTOCOL
    assert driver.describe().code is Code.GROUP_ID_NOT_FOUND, "a refusal leaves no group behind"


def test_an_empty_group_may_begin_again_with_another_protocol_type(driver: Driver) -> None:
    driver.stable("a")
    driver.leave(LeavingMember("a"))
    ticket = driver.join_new("w", protocol_type="connect", protocols=offers("default"))
    assert driver.join_reply(ticket).generation == 3
    assert driver.describe().protocol_type == "connect"


def test_a_full_group_takes_nobody_but_its_own() -> None:
    driver = Driver(GroupOptions(size_max=2))
    driver.stable("a", "b")
    refused = driver.ask(join(new_id="c"))
    assert (refused.code, refused.member_id) == (Code.GROUP_MAX_SIZE_REACHED, "")
    assert driver.ask(join("b")).code is Code.NONE


def test_ids_given_out_count_as_members() -> None:
    driver = Driver(GroupOptions(size_max=2))
    driver.ask(join(new_id="a"))
    driver.ask(join(new_id="b"))
    assert driver.ask(join(new_id="c")).code is Code.GROUP_MAX_SIZE_REACHED
    driver.send(join("a"))
    assert driver.join_reply(driver.send(join("b"))).code is Code.NONE


def test_leaving_hands_over_at_once(driver: Driver) -> None:
    generation = driver.stable("a", "b")
    assert driver.leave(LeavingMember("a")) == (Code.NONE,)
    assert driver.heartbeat("b", generation) is Code.REBALANCE_IN_PROGRESS
    reply = driver.ask(join("b"))
    assert (reply.generation, reply.leader) == (generation + 1, "b")


def test_a_group_without_members_is_empty_in_a_new_generation(driver: Driver) -> None:
    generation = driver.stable("a", "b")
    assert driver.leave(LeavingMember("a"), LeavingMember("x"), LeavingMember("b")) == (
        Code.NONE,
        Code.UNKNOWN_MEMBER_ID,
        Code.NONE,
    )
    described = driver.describe()
    assert (described.state, described.generation, described.members) == ("Empty", generation + 1, ())


def test_who_leaves_while_it_waits_is_answered(driver: Driver) -> None:
    driver.stable("a", "b")
    waiting = driver.send(join("a"))
    driver.leave(LeavingMember("a"))
    assert driver.join_reply(waiting).code is Code.UNKNOWN_MEMBER_ID


def test_an_id_given_out_may_be_given_back(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.ask(join(new_id="b"))
    waiting = driver.send(join("a"))
    assert driver.leave(LeavingMember("b")) == (Code.NONE,)
    assert driver.join_reply(waiting).generation == 1
    driver.sync("a", 1)
    driver.ask(join(new_id="d"))
    driver.leave(LeavingMember("d"))
    assert driver.describe().state == "Stable", "nobody who took part is gone"


def test_what_is_described_is_a_copy(driver: Driver) -> None:
    driver.stable("a", "b")
    described = driver.describe()
    assert [(each.member_id, each.assignment) for each in described.members] == [("a", b"a"), ("b", b"b")]
    assert (described.members[0].client_id, described.members[0].client_host) == ("app", "/127.0.0.1")
    assert described.members[0].metadata == subscription("orders")
    driver.leave(LeavingMember("a"))
    assert [each.member_id for each in described.members] == ["a", "b"]
    with pytest.raises(AttributeError):
        described.state = "Dead"  # type: ignore[misc]
    during = driver.describe()
    assert (during.state, during.protocol, [each.assignment for each in during.members]) == (
        "PreparingRebalance",
        "",
        [b""],
    )


def test_the_session_timeout_stands_in_for_a_missing_rebalance_timeout(driver: Driver) -> None:
    driver.join_new("a", rebalance_timeout_ms=-1)
    driver.sync("a", 1)
    driver.join_new("b", rebalance_timeout_ms=-1)
    for _ in range(2):
        driver.advance(SESSION_MS // 2)
        driver.heartbeat("a", 1)
    assert SESSION_MS < REBALANCE_MS
    assert [each.member_id for each in driver.describe().members] == ["b"]


@pytest.mark.parametrize(
    ("metadata", "topics"),
    [
        (subscription("orders", "größe"), ["orders", "größe"]),
        (subscription(), []),
        (b"", None),
        (b"\x00\x01\xff\xff\xff\xff", None),
        (b"\x00\x01\x00\x00\x00\x02\x00\x01a", None),
        (b"\x00\x01\x00\x00\x00\x01\x00\x05a", None),
        (b"\x00\x01\x00\x00\x00\x01\x00\x01\xff", None),
        (b"\x00\x01\x7f\xff\xff\xff", None),
    ],
)
def test_subscriptions_are_read_with_tolerance(metadata: bytes, topics: list[str] | None) -> None:
    assert topics_of_subscription(metadata) == topics

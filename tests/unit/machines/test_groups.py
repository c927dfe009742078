from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import pytest

from goqueue.machines.groups.classic.group import ClassicGroup
from goqueue.machines.groups.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    DeleteGroup,
    DescribeGroup,
    FetchOffsets,
    GroupOptions,
    Heartbeat,
    KnownTopics,
    LeaveGroup,
    LeavingMember,
    ListedGroup,
    ListGroups,
    SyncGroup,
    TopicsChanged,
    ledger_key,
)
from goqueue.machines.groups.kinds import GroupKind, OneGroup
from goqueue.machines.machine import Fact, Machine, Outcome
from goqueue.model.codes import Code
from goqueue.model.topics import Topic
from tests.unit.machines.group_driver import SESSION_MS, Driver, at, join

# A second kind of group, as small as it can be: who says hello is a member until it says goodbye.


class Hello(msgspec.Struct, frozen=True):
    group_id: str
    is_goodbye: bool = False


class Greeted(Fact, frozen=True):
    durable: ClassVar[bool] = False
    group_id: str
    members: int
    heard: str


class OtherGone(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str
    part: str = "other"

    def key(self) -> bytes:
        return ledger_key(self.part, self.group_id)


class OtherGroup:
    kind: ClassVar[str] = "other"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members = 0
        self.heard = ""
        """Of changes of topics: which it was asked about."""
        self.known = KnownTopics()
        self.forgotten: list[bytes] = []

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        if isinstance(command, TopicsChanged):
            return Outcome([Greeted(self.group_id, self.members, ",".join(command.names or ["any"]))], [])
        if command.is_goodbye and not self.members:
            return Outcome([], [(ticket, (Code.UNKNOWN_MEMBER_ID, ""))])
        members = self.members - 1 if command.is_goodbye else self.members + 1
        told = f"{self.heard}|{','.join(self.known.topics or ())}"
        return Outcome([Greeted(self.group_id, members, self.heard)], [(ticket, (Code.NONE, told))])

    def know(self, known: KnownTopics) -> None:
        self.known = known

    def apply(self, fact: Greeted) -> None:
        self.members, self.heard = fact.members, fact.heard

    def forget(self, key: bytes) -> None:
        self.forgotten.append(key)

    def facts(self) -> Iterator[Fact]:
        return iter(())

    def next_deadline_ms(self) -> int | None:
        return None

    def deadline_set_ms(self, fact: Greeted) -> int | None:
        return None

    def admit_commit(self, command: CommitOffsets | CommitTransactionOffsets, now_ms: int) -> tuple[Code, list[Fact]]:
        return (Code.NONE if command.generation == self.members else Code.STALE_MEMBER_EPOCH), []

    def fetch_refusal(self, command: FetchOffsets) -> Code:
        return Code.NONE if command.member_epoch in (-1, self.members) else Code.STALE_MEMBER_EPOCH

    def keeps_progress(self) -> bool:
        return False

    def empty_since_ms(self) -> int | None:
        return None if self.members else 0

    def subscribed_topics(self) -> frozenset[str] | None:
        return frozenset({"t"})

    def held_bytes(self) -> int:
        return 0

    def replaced_bytes(self, command: Any) -> int:
        return 0

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, "consumer", "Stable" if self.members else "Empty", self.kind)

    def retire(self) -> list[Fact]:
        return [OtherGone(self.group_id, "other_part"), OtherGone(self.group_id)]


OTHER = GroupKind(
    name="other",
    make=OtherGroup,
    commands=(Hello,),
    facts=(Greeted,),
    opens=lambda command: not command.is_goodbye,
    refuse=lambda command, code: (code, ""),
    refuse_foreign=lambda command: (Code.GROUP_ID_NOT_FOUND, ""),
    part_names=("other_part",),
    announcements=(TopicsChanged,),
    topics_in=lambda fact: ("t",),
)


@pytest.fixture
def driver() -> Driver:
    return Driver(kinds=(OTHER,))


def listed(driver: Driver) -> list[tuple[str, str, str]]:
    groups = driver.ask(ListGroups(driver.machine.page(None, 1000))).groups
    return [(each.group_id, each.state, each.type) for each in groups]


def test_groups_are_a_machine(driver: Driver) -> None:
    machine: Machine = driver.machine
    group: OneGroup = OtherGroup("g")
    assert (machine.next_deadline_ms(), group.next_deadline_ms()) == (None, None)


def test_the_first_member_decides_what_a_group_is(driver: Driver) -> None:
    driver.stable("a")
    assert driver.ask(Hello("g"))[0] is Code.GROUP_ID_NOT_FOUND
    assert driver.ask(Hello("h"))[0] is Code.NONE
    assert driver.ask(join(new_id="a", group_id="h")).code is Code.INCONSISTENT_GROUP_PROTOCOL
    commands = [join("a", group_id="h"), SyncGroup("h", 1, "a"), Heartbeat("h", 1, "a")]
    assert {driver.ask(command).code for command in commands} == {Code.UNKNOWN_MEMBER_ID}
    left = driver.ask(LeaveGroup("h", (LeavingMember("a"), LeavingMember("b"))))
    assert (left.code, left.codes) == (Code.NONE, (Code.UNKNOWN_MEMBER_ID,) * 2)


def test_an_empty_group_becomes_what_its_next_member_wants_and_keeps_its_offsets(driver: Driver) -> None:
    driver.stable("a")
    driver.leave(LeavingMember("a"))
    driver.commit(at("t", 0, 5))
    assert driver.ask(Hello("g", is_goodbye=True))[0] is Code.GROUP_ID_NOT_FOUND
    assert listed(driver) == [("g", "Empty", "classic")]
    assert driver.ask(Hello("g"))[0] is Code.NONE
    assert listed(driver) == [("g", "Stable", "other")]
    assert driver.describe().code is Code.GROUP_ID_NOT_FOUND, "only classic groups are described like this"
    driver.ask(Hello("g", is_goodbye=True))
    assert driver.ask(join("a")).code is Code.UNKNOWN_MEMBER_ID
    driver.stable("b")
    assert listed(driver) == [("g", "Stable", "classic")]
    assert driver.offsets() == {("t", 0): 5}
    assert set(driver.ledger) >= {ledger_key("other", "g"), ledger_key("other_part", "g")}


def test_a_refused_command_converts_nothing(driver: Driver) -> None:
    driver.ask(Hello("g"))
    driver.ask(Hello("g", is_goodbye=True))
    assert driver.ask(join(new_id="a", protocols=())).code is Code.INCONSISTENT_GROUP_PROTOCOL
    assert listed(driver) == [("g", "Empty", "other")]


def test_tombstones_find_the_part_they_are_for(driver: Driver) -> None:
    driver.ask(Hello("g"))
    part = ledger_key("other_part", "g")
    driver.machine.forget(part)
    group = driver.machine._groups["g"]
    assert isinstance(group, OtherGroup)
    assert group.forgotten == [part]
    driver.machine.forget(ledger_key("classic", "g"))
    assert listed(driver) == [("g", "Stable", "other")], "it was about a group of another kind"
    driver.machine.forget(ledger_key("other", "g"))
    driver.machine.forget(part)
    assert listed(driver) == []


def test_other_groups_fence_commits_and_fetches_their_own_way(driver: Driver) -> None:
    driver.ask(Hello("g"))
    assert driver.commit(at("t", 0, 1), generation=0, member_id="m") == [Code.STALE_MEMBER_EPOCH]
    assert driver.commit(at("t", 0, 1), generation=1, member_id="m") == [Code.NONE]
    assert driver.ask(FetchOffsets("g", None, member_id="m", member_epoch=0)).code is Code.STALE_MEMBER_EPOCH
    assert driver.ask(FetchOffsets("g", None, member_id="m", member_epoch=1)).code is Code.NONE


def test_a_change_of_topics_is_put_to_those_who_read_them_and_seen_by_all(driver: Driver) -> None:
    driver.ask(Hello("g"))
    driver.stable("a", group_id="classic")
    t, u = Topic("t", b"t" * 16, 1, {}), Topic("u", b"u" * 16, 1, {})
    assert driver.ask(TopicsChanged({"t": t})).code is Code.NONE
    assert driver.ask(Hello("g")) == (Code.NONE, "any|t")
    driver.ask(TopicsChanged({"t": t}, frozenset({"t"})))
    driver.ask(TopicsChanged({"t": t, "u": u}, frozenset({"u"})))
    assert driver.ask(Hello("g")) == (Code.NONE, "t|t,u")
    assert driver.ask(Hello("later")) == (Code.NONE, "|t,u")


def test_an_empty_id_is_refused_for_every_kind(driver: Driver) -> None:
    assert driver.ask(Hello("")) == (Code.INVALID_GROUP_ID, "")


# Operators


def test_a_list_has_groups_of_every_kind_and_leaves_out_those_that_there_are_not(driver: Driver) -> None:
    driver.stable("a")
    driver.ask(Hello("h"))
    driver.commit(at("t", 0, 1), group_id="simple")
    assert listed(driver) == [("g", "Stable", "classic"), ("h", "Stable", "other"), ("simple", "Empty", "classic")]
    assert driver.ask(ListGroups(["unknown", "g"])).groups == (
        ListedGroup("g", "consumer", "Stable", "classic", members=1, generation=1),
    )


def test_a_group_that_only_committed_is_described_as_empty(driver: Driver) -> None:
    driver.commit(at("t", 0, 1))
    described = driver.describe()
    assert (described.code, described.state, described.members) == (Code.NONE, "Empty", ())
    assert driver.ask(DescribeGroup("nobody")).code is Code.GROUP_ID_NOT_FOUND


def test_a_group_with_members_cannot_be_deleted(driver: Driver) -> None:
    generation = driver.stable("a")
    driver.commit(at("t", 0, 1), member_id="a", generation=generation)
    assert driver.ask(DeleteGroup("g")).code is Code.NON_EMPTY_GROUP
    driver.leave(LeavingMember("a"))
    assert driver.ask(DeleteGroup("g")).code is Code.NONE
    assert driver.ask(DeleteGroup("g")).code is Code.GROUP_ID_NOT_FOUND
    assert (driver.offsets(), listed(driver)) == ({}, [])


def test_a_deleted_group_has_no_deadlines(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.commit(at("t", 0, 1), group_id="other")
    assert driver.ask(DeleteGroup("g")).code is Code.NONE
    driver.advance(SESSION_MS)
    assert listed(driver) == [("other", "Empty", "classic")]


def test_a_group_made_again_has_its_own_deadlines(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.ask(DeleteGroup("g"))
    driver.advance(SESSION_MS // 2)
    driver.stable("a")
    driver.advance(SESSION_MS - 1)
    assert driver.describe().state == "Stable"
    driver.advance(1)
    assert driver.describe().state == "Empty"


def test_a_deleted_group_stays_deleted_after_a_restart(driver: Driver) -> None:
    driver.stable("a")
    driver.leave(LeavingMember("a"))
    driver.commit(at("t", 0, 1))
    pending = CommitTransactionOffsets("g", 1, 0, (at("t", 1, 1),))
    assert driver.ask(pending).codes == (Code.NONE,)
    driver.ask(DeleteGroup("g"))
    driver.restart()
    assert listed(driver) == []
    assert list(driver.machine.facts()) == []
    assert driver.stable("a") == 1


def test_a_group_of_offsets_alone_can_be_deleted(driver: Driver) -> None:
    driver.commit(at("t", 0, 1))
    assert driver.ask(DeleteGroup("g")).code is Code.NONE
    assert driver.offsets() == {}


def test_a_group_that_never_came_to_anything_is_cleared_away(driver: Driver) -> None:
    driver.ask(join(new_id="a"))
    driver.advance(SESSION_MS)
    assert driver.describe().state == "Empty"
    driver.advance(GroupOptions().expiry_interval_ms)
    assert driver.describe().state == "Dead"
    assert driver.machine.next_deadline_ms() is None


def test_a_group_that_somebody_is_about_to_join_is_not_cleared_away(driver: Driver) -> None:
    driver.commit(at("t", 0, 1), group_id="other")
    driver.advance(GroupOptions().expiry_interval_ms - 1)
    driver.ask(join(new_id="a"))
    driver.advance(1)
    assert driver.ask(join("a")).code is Code.NONE


# Deadlines of many groups


def test_each_group_keeps_its_own_time(driver: Driver) -> None:
    """Rebalances of groups do not touch each other."""
    for index in range(5):
        driver.stable("a", group_id=f"g{index}")
        driver.advance(1_000)
    driver.advance(SESSION_MS - 5_000 - 1)
    assert {state for _name, state, _type in listed(driver)} == {"Stable"}
    for index in range(5):
        driver.advance(1 if not index else 1_000)
        empty = [name for name, state, _type in listed(driver) if state == "Empty"]
        assert empty == [f"g{each}" for each in range(index + 1)]


def test_heartbeats_cost_no_search_for_the_next_deadline(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    generation = driver.stable("a")
    driver.advance(0)
    noted_ms = driver.machine.next_deadline_ms()
    with monkeypatch.context() as patch:
        patch.delattr(ClassicGroup, "next_deadline_ms")
        for _ in range(50):
            driver.advance(100)
            driver.heartbeat("a", generation)
            assert driver.machine.next_deadline_ms() == noted_ms, "the old time stands for the new until it comes"
    assert len(driver.machine._deadlines._noted._heap) <= 3
    driver.advance(SESSION_MS - 5_000)
    assert driver.machine.next_deadline_ms() == driver.now_ms + 5_000


def test_every_command_must_be_known(driver: Driver) -> None:
    with pytest.raises(KeyError):
        driver.machine.decide(object(), 1, 0)
    with pytest.raises(KeyError):
        driver.machine.apply(OtherFact())


class OtherFact(Fact, frozen=True):
    group_id: str = "g"

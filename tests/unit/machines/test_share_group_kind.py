"""Share groups among all groups, and what members do to one at random."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from goqueue.machines.groups.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    DeleteGroup,
    DeleteOffsets,
    FetchOffsets,
    FetchOffsetsReply,
    GroupOptions,
    ListGroups,
    ResetOffsets,
    TopicsChanged,
)
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat, unpacked
from goqueue.machines.groups.consumer.kind import consumer_kind
from goqueue.machines.groups.kinds import OneGroup
from goqueue.machines.groups.share.facts import DescribeShareGroup, ShareHeartbeat, ShareHeartbeatReply
from goqueue.machines.groups.share.kind import ListedShareGroup, share_kind
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.topics import Topic
from tests.unit.machines.consumer_groups import all_of, topic_id
from tests.unit.machines.group_driver import Driver, at, join
from tests.unit.machines.share_groups import OPTIONS, Host, Reader

JOIN = ShareHeartbeat("g", "m", 0, subscribed_topic_names=("orders",))
CONSUMER_JOIN = ConsumerHeartbeat("g", "c", 0, rebalance_timeout_ms=1000, subscribed_topic_names=("orders",), owned=())


def topics(**counts: int) -> dict[str, Topic]:
    """That can be copied: the driver compares states."""
    return {name: Topic(name, topic_id(name), count, {}) for name, count in counts.items()}


@pytest.fixture
def driver() -> Driver:
    driver = Driver(kinds=(consumer_kind(), share_kind(OPTIONS)))
    driver.ask(TopicsChanged(topics(orders=2)))
    return driver


def beat(driver: Driver, epoch: int = 0, **fields: str) -> ShareHeartbeatReply:
    names = ("orders",) if epoch == 0 else None
    reply = driver.ask(ShareHeartbeat("g", fields.get("member_id", "m"), epoch, subscribed_topic_names=names))
    assert isinstance(reply, ShareHeartbeatReply)
    return reply


def listed(driver: Driver, *types: str) -> list[tuple[str, str, str, str]]:
    found = driver.ask(ListGroups(driver.machine.page(None, 1000))).groups
    groups = [each for each in found if not types or each.type in types]
    return [(each.group_id, each.protocol_type, each.state, each.type) for each in groups]


def test_a_share_group_is_one_kind_of_group(driver: Driver) -> None:
    group: OneGroup = ListedShareGroup("g", OPTIONS)
    assert group.kind == "share"
    assert unpacked(beat(driver).assignment or ()) == all_of(topics(orders=2))
    assert listed(driver, "share") == [("g", "share", "Stable", "share")]
    assert listed(driver, "consumer") == []
    assert driver.ledger == {}, "nothing of it is stored"


def test_new_topics_reach_all_kinds_of_groups(driver: Driver) -> None:
    beat(driver)
    driver.ask(ConsumerHeartbeat("c", "m", 0, None, None, 1000, ("orders",), owned=()))
    driver.ask(TopicsChanged(topics(orders=5)))
    assert len(unpacked(beat(driver, 1).assignment or ())) == 5
    reply = driver.ask(ConsumerHeartbeat("c", "m", 1))
    assert len(unpacked(reply.assignment)) == 5


def test_a_restart_forgets_members_and_they_join_again(driver: Driver) -> None:
    epoch = beat(driver).member_epoch
    driver.restart()
    driver.ask(TopicsChanged(topics(orders=2)))
    assert beat(driver, epoch).code is Code.UNKNOWN_MEMBER_ID
    assert listed(driver) == [], "who is refused leaves no group behind"
    assert beat(driver).code is Code.NONE


def test_a_name_in_use_by_another_kind_is_refused(driver: Driver) -> None:
    driver.ask(CONSUMER_JOIN)
    assert beat(driver).code is Code.GROUP_ID_NOT_FOUND
    assert beat(driver, 3).code is Code.GROUP_ID_NOT_FOUND
    assert driver.ask(DescribeShareGroup("g")).state == "Dead"


def test_other_kinds_do_not_get_into_a_share_group(driver: Driver) -> None:
    beat(driver)
    assert driver.ask(CONSUMER_JOIN).code is Code.GROUP_ID_NOT_FOUND
    assert driver.ask(join(new_id="c")).code is Code.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_share_group_stays_one_until_it_is_deleted(driver: Driver) -> None:
    beat(driver)
    beat(driver, -1)
    assert listed(driver) == [("g", "share", "Empty", "share")]
    assert driver.ask(CONSUMER_JOIN).code is Code.GROUP_ID_NOT_FOUND
    assert driver.ask(join(new_id="c")).code is Code.INCONSISTENT_GROUP_PROTOCOL
    assert driver.ask(DeleteGroup("g")).code is Code.NONE
    assert driver.ask(CONSUMER_JOIN).code is Code.NONE
    assert [each[-1] for each in listed(driver)] == ["consumer"]


def test_an_empty_consumer_group_does_not_become_a_share_group(driver: Driver) -> None:
    driver.ask(CONSUMER_JOIN)
    driver.ask(ConsumerHeartbeat("g", "c", -1))
    assert beat(driver).code is Code.GROUP_ID_NOT_FOUND
    assert driver.ask(DeleteGroup("g")).code is Code.NONE
    assert beat(driver).code is Code.NONE


def test_committed_offsets_alone_keep_share_members_out(driver: Driver) -> None:
    assert driver.ask(CommitOffsets("g", (at("orders", 0, 5),))).codes == (Code.NONE,)
    assert beat(driver).code is Code.GROUP_ID_NOT_FOUND
    assert driver.offsets() == {("orders", 0): 5}
    assert driver.ask(DeleteGroup("g")).code is Code.NONE
    assert beat(driver).code is Code.NONE


def test_silent_members_are_dropped_by_the_tick_of_all_groups(driver: Driver) -> None:
    beat(driver)
    driver.advance(OPTIONS.session_ms)
    assert listed(driver) == [("g", "share", "Empty", "share")]


def test_an_empty_group_is_cleared_away(driver: Driver) -> None:
    beat(driver)
    beat(driver, -1)
    driver.advance(3 * GroupOptions().expiry_interval_ms)
    assert listed(driver) == []


def test_only_a_group_without_members_can_be_deleted(driver: Driver) -> None:
    beat(driver)
    assert driver.ask(DeleteGroup("g")).code is Code.NON_EMPTY_GROUP
    beat(driver, -1)
    assert driver.ask(DeleteGroup("g")).code is Code.NONE
    assert driver.ask(DeleteGroup("g")).code is Code.GROUP_ID_NOT_FOUND


def test_a_share_group_has_no_offsets(driver: Driver) -> None:
    offsets = (at("orders", 0, 5),)
    for epoch in (0, -1):
        beat(driver, epoch)
        for generation in (-1, 1):
            refused = driver.ask(CommitOffsets("g", offsets, generation, "m"))
            assert refused.codes == (Code.GROUP_ID_NOT_FOUND,)
        pending = CommitTransactionOffsets("g", 7, 0, offsets)
        assert driver.ask(pending).codes == (Code.GROUP_ID_NOT_FOUND,)
        assert driver.ask(ResetOffsets("g", offsets)).codes == (Code.GROUP_ID_NOT_FOUND,)
        assert driver.ask(DeleteOffsets("g", (TopicPartition("orders", 0),))).code is Code.GROUP_ID_NOT_FOUND
        assert driver.ask(FetchOffsets("g", None, member_id="m", member_epoch=1)) == FetchOffsetsReply(Code.NONE)


def test_an_empty_name_is_refused(driver: Driver) -> None:
    assert driver.ask(ShareHeartbeat("", "m", 0, subscribed_topic_names=("orders",))).code is Code.INVALID_GROUP_ID
    assert driver.ask(DescribeShareGroup("")).state == "Dead"


NAMES = ("a", "b", "c")
pick = st.integers(0, 1_000)
subscriptions = st.sets(st.sampled_from(NAMES), min_size=1).map(sorted)


class Sharing(RuleBasedStateMachine):
    """Readers that join, pause, lose answers and leave, over topics that change."""

    @initialize(counts=st.lists(st.integers(0, 4), min_size=3, max_size=3))
    def begin(self, counts: list[int]) -> None:
        self.host = Host({name: Topic(name, topic_id(name), count) for name, count in zip(NAMES, counts)})
        self.readers: list[Reader] = []
        self.born = 0

    @precondition(lambda self: len(self.readers) < 8)
    @rule(names=subscriptions)
    def join(self, names: list[str]) -> None:
        self.born += 1
        self.readers.append(Reader(self.host, f"m{self.born}", *names))
        self.readers[-1].beat()

    @precondition(lambda self: self.readers)
    @rule(number=pick, loses_reply=st.booleans())
    def beat(self, number: int, loses_reply: bool) -> None:
        self.readers[number % len(self.readers)].beat(loses_reply)

    @precondition(lambda self: self.readers)
    @rule(number=pick, names=subscriptions)
    def subscribe_anew(self, number: int, names: list[str]) -> None:
        reader = self.readers[number % len(self.readers)]
        reader.names, reader.has_doubts = tuple(names), True

    @precondition(lambda self: self.readers)
    @rule(number=pick)
    def leave(self, number: int) -> None:
        reader = self.readers.pop(number % len(self.readers))
        assert reader.leave().code in (Code.NONE, Code.UNKNOWN_MEMBER_ID)

    @rule(name=st.sampled_from(NAMES), count=st.integers(0, 6))
    def change_topic(self, name: str, count: int) -> None:
        self.host.change_topics(self.host.topics | {name: Topic(name, topic_id(name), count)})

    @rule(ms=st.sampled_from([500, 20_000, 50_000]))
    def wait(self, ms: int) -> None:
        self.host.advance(ms)

    @invariant()
    def everything_is_read_once_all_have_spoken(self) -> None:
        for _ in range(3):
            for reader in self.readers:
                reader.beat()
        wanted = {name for reader in self.readers for name in reader.names}
        known = self.host.topics
        assert set().union(*(reader.reads for reader in self.readers)) == (all_of(known, *wanted) if wanted else set())
        for reader in self.readers:
            has_choice = any(known[name].partitions for name in reader.names)
            assert bool(reader.reads) == has_choice
            assert reader.reads <= all_of(known, *reader.names)
            assert reader.beat().heartbeat_interval_ms == (OPTIONS.heartbeat_ms if has_choice else 500)
        assert set(self.host.members) == {reader.member_id for reader in self.readers}


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)

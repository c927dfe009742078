from typing import Any

import pytest

from goqueue.machines.groups.commands import (
    CommitTransactionOffsets,
    DeleteOffsets,
    EndTransactionOffsets,
    FetchedOffset,
    FetchOffsets,
    GroupOptions,
    GroupProtocol,
    LeavingMember,
    OffsetToCommit,
    ResetOffsets,
    TopicDeleted,
)
from goqueue.machines.groups.machine import Groups
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from tests.unit.machines.group_driver import SESSION_MS, Driver, at, join

DAY_MS = 24 * 3_600_000
PRODUCER = 7


def pend(
    driver: Driver, *offsets: OffsetToCommit, producer_id: int = PRODUCER, epoch: int = 0, **who: Any
) -> list[Code]:
    return list(driver.ask(CommitTransactionOffsets("g", producer_id, epoch, offsets, **who)).codes)


def end(driver: Driver, committed: bool, producer_id: int = PRODUCER, epoch: int = 0, **coordinator: int) -> None:
    assert driver.ask(EndTransactionOffsets(producer_id, epoch, committed, epoch, **coordinator)).code is Code.NONE


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_what_is_committed_is_fetched_with_epoch_metadata_and_topic_id(driver: Driver) -> None:
    driver.commit(at("t", 0, 42, leader_epoch=3, metadata="where I was", topic_id=b"\x01" * 16))
    assert driver.fetch() == {
        ("t", 0): FetchedOffset("t", 0, 42, 3, "where I was", b"\x01" * 16, committed_at_ms=driver.now_ms)
    }


def test_what_was_never_committed_is_minus_one_without_error(driver: Driver) -> None:
    driver.commit(at("t", 0, 1))
    wanted = (TopicPartition("t", 1), TopicPartition("t", 0))
    reply = driver.ask(FetchOffsets("g", wanted))
    assert reply.offsets == (FetchedOffset("t", 1, -1), FetchedOffset("t", 0, 1, committed_at_ms=driver.now_ms))
    assert driver.ask(FetchOffsets("other", wanted)).offsets[1] == FetchedOffset("t", 0, -1)
    assert driver.fetch("other") == {}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (at("t", 0, 0), Code.NONE),
        (at("t", 0, 1 << 62), Code.NONE),
        (at("t", 0, -1), Code.NONE),
        (at("t", 0, -2), Code.NONE),
        (at("t", 0, 1, exists=False), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (at("t", 0, 1, metadata="x" * 4096), Code.NONE),
        (at("t", 0, 1, metadata="x" * 4097), Code.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_any_offset_of_a_partition_is_taken_as_it_is(driver: Driver, wanted: OffsetToCommit, code: Code) -> None:
    good = at("t", 1, 5)
    assert driver.commit(good, wanted) == [Code.NONE, code]
    assert driver.ask(ResetOffsets("g", (wanted,))).codes == (code,)
    assert pend(driver, wanted) == [code]
    assert driver.offsets() == {("t", 1): 5} | ({("t", 0): wanted.offset} if code is Code.NONE else {})


def test_an_offset_may_move_back(driver: Driver) -> None:
    driver.commit(at("t", 0, 9))
    driver.commit(at("t", 0, 4))
    assert driver.offsets() == {("t", 0): 4}


def test_groups_do_not_share_offsets(driver: Driver) -> None:
    driver.commit(at("t", 0, 9), group_id="g")
    driver.commit(at("t", 0, 4), group_id="h")
    assert (driver.offsets("g"), driver.offsets("h")) == ({("t", 0): 9}, {("t", 0): 4})


def test_offsets_survive_a_restart_and_a_snapshot(driver: Driver) -> None:
    driver.commit(at("t", 0, 9), at("u", 3, 4, metadata="ü"))
    pend(driver, at("t", 0, 50))
    before = driver.fetch()
    snapshot = Groups()
    for fact in driver.machine.facts():
        snapshot.apply(fact)
    for machine in (driver.replayed(), snapshot):
        driver.machine = machine
        assert driver.fetch() == before
        end(driver, committed=True)
        assert driver.offsets() == {("t", 0): 50, ("u", 3): 4}


# Transactions


def test_offsets_of_a_transaction_count_once_it_commits(driver: Driver) -> None:
    driver.commit(at("t", 0, 1))
    assert pend(driver, at("t", 0, 10), at("t", 1, 11)) == [Code.NONE, Code.NONE]
    assert driver.offsets() == {("t", 0): 1}
    end(driver, committed=True)
    assert driver.offsets() == {("t", 0): 10, ("t", 1): 11}


def test_offsets_of_an_aborted_transaction_are_dropped(driver: Driver) -> None:
    driver.commit(at("t", 0, 1))
    pend(driver, at("t", 0, 10))
    end(driver, committed=False)
    assert driver.offsets() == {("t", 0): 1}
    end(driver, committed=True)
    assert driver.offsets() == {("t", 0): 1}, "what was dropped does not come back"


def test_who_requires_stable_offsets_is_told_to_wait(driver: Driver) -> None:
    driver.commit(at("t", 0, 1), at("t", 1, 1))
    pend(driver, at("t", 0, 10))
    unstable = FetchedOffset("t", 0, code=Code.UNSTABLE_OFFSET_COMMIT)
    assert driver.fetch(require_stable=True) == {
        ("t", 0): unstable,
        ("t", 1): FetchedOffset("t", 1, 1, committed_at_ms=driver.now_ms),
    }
    assert driver.fetch(require_stable=True, partitions=(TopicPartition("t", 0),)) == {("t", 0): unstable}
    assert driver.fetch()[("t", 0)].offset == 1
    end(driver, committed=False)
    assert driver.fetch(require_stable=True)[("t", 0)].offset == 1


def test_the_end_of_one_producer_leaves_others_pending(driver: Driver) -> None:
    pend(driver, at("t", 0, 10), producer_id=1)
    pend(driver, at("t", 0, 20), producer_id=2)
    end(driver, committed=True, producer_id=2)
    assert driver.offsets() == {("t", 0): 20}
    stable = FetchOffsets("g", (TopicPartition("t", 0),), require_stable=True)
    assert driver.ask(stable).offsets[0].code is Code.UNSTABLE_OFFSET_COMMIT
    end(driver, committed=True, producer_id=1)
    assert driver.ask(stable).offsets[0].offset == 20, "it was overtaken by a later commit"


def test_a_plain_commit_after_a_pending_one_wins(driver: Driver) -> None:
    pend(driver, at("t", 0, 10))
    driver.commit(at("t", 0, 30))
    driver.restart()
    end(driver, committed=True)
    assert driver.offsets() == {("t", 0): 30}


def test_a_later_commit_wins_wherever_it_stood_in_the_transaction(driver: Driver) -> None:
    pend(driver, *(at("t", partition, 10) for partition in range(5)))
    driver.commit(at("t", 4, 30))
    end(driver, committed=True)
    assert driver.offsets() == {("t", 0): 10, ("t", 1): 10, ("t", 2): 10, ("t", 3): 10, ("t", 4): 30}


def test_ending_a_transaction_twice_changes_nothing(driver: Driver) -> None:
    pend(driver, at("t", 0, 10))
    end(driver, committed=True)
    driver.commit(at("t", 0, 12))
    end(driver, committed=True)
    assert driver.offsets() == {("t", 0): 12}


def test_an_old_coordinator_ends_nothing_even_if_the_new_one_had_nothing_to_end(driver: Driver) -> None:
    """Its word may have been on the way for long, and the producer is in its next transaction by now."""
    end(driver, True, coordinator=3, coordinator_epoch=5)
    pend(driver, at("t", 0, 5))
    for _ in range(2):
        late = driver.ask(EndTransactionOffsets(PRODUCER, 0, True, 0, 3, 4))
        assert late.code is Code.TRANSACTION_COORDINATOR_FENCED
        assert driver.offsets() == {}
        driver.restart()
    end(driver, True, coordinator=2, coordinator_epoch=1)  # of another shard, which counts for itself
    assert driver.offsets() == {("t", 0): 5}


def test_a_coordinator_is_noted_once_per_epoch(driver: Driver) -> None:
    end(driver, True, coordinator=3, coordinator_epoch=5)
    again = EndTransactionOffsets(PRODUCER, 0, True, 0, 3, 5)
    assert driver.machine.decide(again, 1, driver.now_ms).facts == []


def test_a_fenced_producer_cannot_slip_offsets_into_its_successors_transaction(driver: Driver) -> None:
    pend(driver, at("t", 0, 10), epoch=0)
    end(driver, committed=True, epoch=1)
    assert driver.offsets() == {}
    pend(driver, at("t", 0, 20), epoch=2)
    assert pend(driver, at("t", 0, 10), epoch=1) == [Code.INVALID_PRODUCER_EPOCH]
    end(driver, committed=False, epoch=1)
    end(driver, committed=True, epoch=2)
    assert driver.offsets() == {("t", 0): 20}


def test_a_transaction_is_fenced_by_the_groups_generation_too(driver: Driver) -> None:
    generation = driver.stable("a")
    offset = at("t", 0, 10)
    assert pend(driver, offset, generation=generation - 1, member_id="a") == [Code.ILLEGAL_GENERATION]
    assert pend(driver, offset, generation=generation, member_id="x") == [Code.UNKNOWN_MEMBER_ID]
    fenced = pend(driver, offset, generation=generation, member_id="a", instance_id="A")
    assert fenced == [Code.UNKNOWN_MEMBER_ID]
    assert pend(driver, offset, generation=generation, member_id="a") == [Code.NONE]
    assert pend(driver, offset) == [Code.NONE], "older clients do not say who they are"
    driver.send(join("a"))
    assert driver.describe().state == "CompletingRebalance"
    assert pend(driver, offset, generation=generation + 1, member_id="a") == [Code.NONE]


def test_a_transaction_needs_a_group_id(driver: Driver) -> None:
    command = CommitTransactionOffsets("", PRODUCER, 0, (at("t", 0, 1),))
    assert driver.ask(command).codes == (Code.INVALID_GROUP_ID,)
    assert driver.commit(at("t", 0, 1), group_id="") == [Code.NONE], "a plain commit never needed one"


# Deleting


def delete(driver: Driver, *topics: str) -> Any:
    return driver.ask(DeleteOffsets("g", tuple(TopicPartition(topic, 0) for topic in topics)))


def test_offsets_of_topics_that_members_consume_cannot_be_deleted(driver: Driver) -> None:
    generation = driver.stable("a")
    driver.commit(at("orders", 0, 1), at("old", 0, 1), member_id="a", generation=generation)
    reply = delete(driver, "orders", "old", "none")
    assert reply.code is Code.NONE
    assert reply.codes == (Code.GROUP_SUBSCRIBED_TO_TOPIC, Code.NONE, Code.NONE)
    assert driver.offsets() == {("orders", 0): 1}
    driver.leave(LeavingMember("a"))
    assert delete(driver, "orders").codes == (Code.NONE,)
    assert driver.offsets() == {}


@pytest.mark.parametrize(
    "fields",
    [{"protocol_type": "connect"}, {"protocols": (GroupProtocol("range", b"not a subscription"),)}],
)
def test_if_nobody_can_tell_what_members_consume_nothing_is_deleted(driver: Driver, fields: dict[str, Any]) -> None:
    driver.commit(at("t", 0, 1))
    driver.join_new("a", **fields)
    assert delete(driver, "t").code is Code.NON_EMPTY_GROUP
    assert driver.offsets() == {("t", 0): 1}


def test_deleting_offsets_needs_a_group(driver: Driver) -> None:
    assert delete(driver, "t").code is Code.GROUP_ID_NOT_FOUND
    assert driver.ask(DeleteOffsets("", ())).code is Code.INVALID_GROUP_ID


def test_deleting_a_topic_drops_its_offsets_in_every_group(driver: Driver) -> None:
    driver.commit(at("t", 0, 1), at("u", 0, 1), group_id="g")
    driver.commit(at("t", 5, 1), group_id="h")
    pend(driver, at("t", 0, 9), at("u", 0, 9))
    driver.ask(TopicDeleted("t"))
    assert (driver.offsets("g"), driver.offsets("h")) == ({("u", 0): 1}, {})
    end(driver, committed=True)
    assert driver.offsets("g") == {("u", 0): 9}


def test_a_topic_made_again_keeps_the_offsets_committed_to_it(driver: Driver) -> None:
    old, new = b"o" * 16, b"n" * 16
    driver.commit(at("t", 0, 1, topic_id=old), at("t", 1, 1, topic_id=new), at("t", 2, 1))
    driver.ask(TopicDeleted("t", old))
    assert driver.offsets() == {("t", 1): 1}


# Operators


def test_offsets_are_reset_only_while_nobody_consumes(driver: Driver) -> None:
    generation = driver.stable("a")
    driver.commit(at("t", 0, 50), member_id="a", generation=generation)
    assert driver.ask(ResetOffsets("g", (at("t", 0, 0),))).codes == (Code.NON_EMPTY_GROUP,)
    driver.leave(LeavingMember("a"))
    assert driver.ask(ResetOffsets("g", (at("t", 0, 0),))).codes == (Code.NONE,)
    assert driver.offsets() == {("t", 0): 0}
    assert driver.ask(ResetOffsets("", (at("t", 0, 0),))).codes == (Code.INVALID_GROUP_ID,)


# Expiry


def test_offsets_of_an_empty_group_expire_with_it() -> None:
    """They count from when it became empty, not from the commit."""
    driver = Driver(GroupOptions(offset_retention_ms=60_000, expiry_interval_ms=1_000))
    generation = driver.stable("a")
    driver.commit(at("t", 0, 1), member_id="a", generation=generation)
    for _ in range(3):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat("a", generation)
    driver.leave(LeavingMember("a"))
    driver.advance(60_000 - 1)
    assert driver.offsets() == {("t", 0): 1}
    driver.advance(1_000)
    assert driver.offsets() == {}
    assert driver.describe().state == "Dead"
    assert driver.machine.next_deadline_ms() is None


def test_offsets_of_a_group_in_use_do_not_expire_but_those_of_topics_it_left_do() -> None:
    driver = Driver(GroupOptions(offset_retention_ms=60_000, expiry_interval_ms=10_000))
    generation = driver.stable("a")
    driver.commit(at("orders", 0, 1), at("old", 0, 1), member_id="a", generation=generation)
    for _ in range(20):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat("a", generation)
    assert driver.offsets() == {("orders", 0): 1}


def test_offsets_without_members_expire_by_their_last_commit(driver: Driver) -> None:
    """After 7 days, unless told otherwise."""
    driver.commit(at("t", 0, 1), at("t", 1, 1))
    driver.advance(6 * DAY_MS)
    driver.commit(at("t", 0, 2))
    driver.advance(DAY_MS - 1)
    assert driver.offsets() == {("t", 0): 2, ("t", 1): 1}
    driver.advance(DAY_MS)
    assert driver.offsets() == {("t", 0): 2}


def test_offsets_that_a_transaction_may_still_set_do_not_expire(driver: Driver) -> None:
    driver.commit(at("t", 0, 1))
    pend(driver, at("t", 0, 2))
    driver.advance(8 * DAY_MS)
    assert driver.offsets() == {("t", 0): 1}
    end(driver, committed=False)
    driver.advance(DAY_MS)
    assert driver.offsets() == {}

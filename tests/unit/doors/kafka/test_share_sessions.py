"""Share sessions: opened, counted, closed, lost; and what becomes of what they hold. KIP-932."""

import pytest

from goqueue.doors.kafka.share_sessions import ShareSessions
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import share_groups as wire
from goqueue.wire.kafka.messages.describe_groups import DeleteGroupsRequest, DeleteGroupsResponse
from goqueue.wire.kafka.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from goqueue.wire.kafka.notation import INT32_MAX
from tests.unit.doors.kafka.share_members import ACCEPT, GROUP, House, Member, acquired, offsets, parts, topic_id

LEASE_MS = 30_000
HOUR_MS = 3_600_000


def test_a_closed_session_gives_back_at_once_what_was_not_acknowledged() -> None:
    house = House()
    house.publish(b"a", b"b", b"c")
    first, second = Member(house, "a"), Member(house, "b")
    first.get()
    second.park(max_wait_ms=LEASE_MS)
    first.epoch = -1
    response = first.fetch({0: [(1, 1, [ACCEPT])]})
    assert response.error_code == 0
    assert parts(response)[0].acknowledge_error_code == 0
    (response,) = second.parked()
    assert acquired(response) == offsets(0, 2), "as if they had never been delivered"
    first.epoch = 1
    assert first.fetch().error_code == Code.SHARE_SESSION_NOT_FOUND


def test_a_session_can_be_closed_with_its_last_acknowledgements() -> None:
    house = House()
    house.publish(b"a", b"b")
    first, second = Member(house, "a"), Member(house, "b")
    first.get()
    first.epoch = -1
    assert first.ack(0, 0) is Code.NONE
    assert second.get() == offsets(1)


def test_a_lost_connection_gives_back_at_once_and_counts() -> None:
    house = House()
    house.publish(b"a", b"b")
    first, second = Member(house, "a"), Member(house, "b")
    first.get()
    assert first.ack(0, 0) is Code.NONE
    second.park(max_wait_ms=LEASE_MS)
    first.lose_connection()
    (response,) = second.parked()
    assert acquired(response) == offsets(1, count=2)


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
def test_a_lost_connection_gives_back_all_it_holds_though_the_clock_was_set(step_ms: int) -> None:
    house = House()
    house.publish(b"a")
    first, second = Member(house, "a"), Member(house, "b")
    assert first.get() == offsets(0)
    house.broker.clock.step(step_ms)
    house.publish(b"b")
    assert first.get() == offsets(1)
    second.park(max_wait_ms=LEASE_MS)
    first.lose_connection()
    (response,) = second.parked()
    assert acquired(response) == offsets(0, 1, count=2)


def test_a_lost_connection_gives_back_what_is_left_of_each_lease_and_of_nobody_else() -> None:
    house = House(partitions=2)
    house.publish(b"a", b"b", b"c", b"d", b"e")
    house.publish(b"f", partition=1)
    first, second, third = Member(house, "a", partitions=2), Member(house, "b"), Member(house, "c", partitions=2)
    assert first.get(max_records=2) == offsets(0) | {(1, 0): 1}
    assert second.get(max_records=1) == offsets(1)
    assert first.get(max_records=3) == offsets(2, 3, 4)
    assert first.ack(3, 3) is Code.NONE
    first.lose_connection()
    assert third.get() == offsets(0, 2, 4, count=2) | {(1, 0): 2}
    assert second.ack(1, 1) is Code.NONE


def test_a_lost_connection_leaves_alone_what_others_lease_after_a_reload() -> None:
    house = House()
    house.publish(b"a")
    first, second = Member(house, "a"), Member(house, "b")
    assert first.get() == offsets(0)
    (deliveries,) = house.broker.broker.health._coordinators.of_kind("deliveries")
    deliveries.unload()
    deliveries.load()
    house.broker.commit()
    assert second.get() == offsets(0), "a reload forgets leases"
    first.lose_connection()
    assert Member(house, "c").get() == {}
    assert second.ack(0, 0) is Code.NONE


def test_a_record_that_kills_its_consumers_dies_in_the_end() -> None:
    house = House()
    house.publish(b"poison")
    counts: list[int] = []
    for number in range(7):
        member = Member(house, f"m{number}")
        counts += member.get().values()
        member.lose_connection()
    assert counts == [1, 2, 3, 4, 5]
    assert house.broker.broker.topics.end_offset("orders.dlq", 0) == 1


def test_a_waiting_fetch_whose_connection_is_lost_takes_nothing() -> None:
    house = House()
    first, second = Member(house, "a"), Member(house, "b")
    first.park(max_wait_ms=LEASE_MS)
    first.lose_connection()
    house.publish(b"a")
    assert second.get() == offsets(0)


def test_a_connection_lost_during_the_acknowledgement_takes_nothing() -> None:
    house = House()
    house.publish(b"a")
    first, second = Member(house, "a"), Member(house, "b")
    first.get()
    house.publish(b"b")
    commit = house.broker.commit
    house.broker.commit = lambda: None  # type: ignore[method-assign]  # the settlement is not durable yet
    first.send(first.request({0: [(0, 0, [ACCEPT])]}), 1)
    first.lose_connection()
    house.broker.commit = commit  # type: ignore[method-assign]
    commit()
    assert second.get() == offsets(1)


def test_a_session_opened_again_ends_the_one_before_and_keeps_what_is_held() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    member.get()
    member.park(max_wait_ms=LEASE_MS)
    again = Member(house)
    assert again.get() == {}
    (response,) = member.parked()
    assert response.error_code == Code.SHARE_SESSION_NOT_FOUND
    assert again.ack(0, 0) is Code.NONE
    member.lose_connection()
    house.publish(b"b")
    assert again.get() == offsets(1)


def test_a_session_may_move_to_another_connection() -> None:
    house = House()
    house.publish(b"a", b"b")
    member, moved = Member(house), Member(house)
    member.get(max_records=1)
    moved.epoch, moved.to_add = member.epoch, []
    assert moved.get() == offsets(1)
    member.lose_connection()
    assert moved.ack(0, 1) is Code.NONE


def test_epochs_are_counted() -> None:
    house = House()
    member = Member(house)
    member.epoch = 1
    assert member.fetch().error_code == Code.SHARE_SESSION_NOT_FOUND
    member.epoch = -1
    assert member.fetch().error_code == Code.SHARE_SESSION_NOT_FOUND
    member.epoch = 0
    assert member.fetch().error_code == 0
    member.epoch = 2
    assert member.fetch().error_code == Code.INVALID_SHARE_SESSION_EPOCH
    member.epoch = 1
    assert member.fetch().error_code == 0
    (session,) = house.door.sessions.share._by_member.values()
    session.epoch = member.epoch = INT32_MAX
    assert member.fetch().error_code == 0
    member.epoch = 1
    assert member.fetch().error_code == 0


def test_what_a_session_cannot_be_is_refused() -> None:
    house = House()
    member = Member(house)
    assert member.fetch({0: [(0, 0, [ACCEPT])]}).error_code == Code.INVALID_REQUEST
    member.epoch = 0
    assert member.acknowledge({}).error_code == Code.INVALID_SHARE_SESSION_EPOCH
    member.epoch = 0
    member.fetch()
    member.epoch = -1
    forgotten = [wire.ForgottenShareTopic(topic_id("orders"), [0])]
    assert member.fetch(forgotten_topics_data=forgotten).error_code == Code.INVALID_REQUEST
    member.epoch = 0
    assert member.fetch(group_id=None).error_code == Code.INVALID_REQUEST
    member.epoch = 0
    assert member.fetch(member_id="").error_code == Code.INVALID_REQUEST
    member.epoch = 0
    assert member.acknowledge({}, member_id=None).error_code == Code.INVALID_SHARE_SESSION_EPOCH


def test_a_session_of_what_has_become_a_consumer_group_gets_nothing() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    assert member.get() == offsets(0)
    deleted = house.operator.call(DeleteGroupsRequest([GROUP]), 2, DeleteGroupsResponse)
    assert deleted.results[0].error_code == Code.NONE
    committed = OffsetCommitRequest(
        GROUP, topics=[OffsetCommitRequestTopic("orders", partitions=[OffsetCommitRequestPartition(0, 0)])]
    )
    answer = house.operator.call(committed, 8, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == Code.NONE
    assert member.fetch().error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    member.epoch = 0
    assert member.fetch().error_code == Code.GROUP_ID_NOT_FOUND


def test_there_are_only_so_many_sessions() -> None:
    house = House()
    house.door.sessions.share = ShareSessions(sessions_max=2)
    members = [Member(house, f"m{number}") for number in range(3)]
    assert [member.fetch().error_code for member in members] == [0, 0, Code.SHARE_SESSION_LIMIT_REACHED]
    members[0].lose_connection()
    members[2].epoch = 0
    assert members[2].fetch().error_code == 0


def test_sessions_leave_nothing_behind() -> None:
    house = House()
    house.publish(b"a")
    members = [Member(house, f"m{number}") for number in range(3)]
    for member in members:
        member.get()
        member.lose_connection()
    assert house.door.sessions.share._by_member == {}
    assert house.door.sessions.share._by_connection == {}

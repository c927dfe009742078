"""An id names one group of one kind: members, offsets and records of the other kind are refused as in Kafka."""

from collections.abc import Callable

import pytest

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import (
    classic_groups,
    consumer_groups,
    describe_groups,
    offsets,
    share_groups,
    share_offsets,
)
from tests.unit.doors.kafka.share_members import GROUP, Guest, House, Member, topic_id


def join_classic(guest: Guest) -> Code:
    protocols = [classic_groups.JoinGroupRequestProtocol("range", b"")]
    request = classic_groups.JoinGroupRequest(GROUP, 10_000, 10_000, "", None, "consumer", protocols)
    return Code(guest.call(request, 5, classic_groups.JoinGroupResponse).error_code)


def beat_consumer(guest: Guest, epoch: int = 0) -> Code:
    request = consumer_groups.ConsumerGroupHeartbeatRequest(GROUP, "c", epoch, rebalance_timeout_ms=-1 if epoch else 9)
    if not epoch:
        request.subscribed_topic_names, request.topic_partitions = ["orders"], []
    return Code(guest.call(request, 1, consumer_groups.ConsumerGroupHeartbeatResponse).error_code)


def beat_share(guest: Guest, epoch: int = 0) -> Code:
    names = None if epoch else ["orders"]
    request = share_groups.ShareGroupHeartbeatRequest(GROUP, "s", epoch, None, names)
    return Code(guest.call(request, 1, share_groups.ShareGroupHeartbeatResponse).error_code)


def fetch_share(guest: Guest) -> Code:
    asked = share_groups.ShareTopic(topic_id("orders"), [share_groups.SharePartition(0)])
    request = share_groups.ShareFetchRequest(GROUP, "s", 0, max_records=10, topics=[asked])
    return Code(guest.call(request, 1, share_groups.ShareFetchResponse).error_code)


def commit(guest: Guest, offset: int = 1) -> Code:
    one = offsets.OffsetCommitRequestPartition(0, offset)
    request = offsets.OffsetCommitRequest(GROUP, topics=[offsets.OffsetCommitRequestTopic("orders", partitions=[one])])
    response = guest.call(request, 9, offsets.OffsetCommitResponse)
    return Code(response.topics[0].partitions[0].error_code)


def committed(guest: Guest) -> int:
    asked = offsets.OffsetFetchRequestGroup(
        GROUP, topics=[offsets.OffsetFetchRequestTopics("orders", partition_indexes=[0])]
    )
    (group,) = guest.call(offsets.OffsetFetchRequest(groups=[asked]), 9, offsets.OffsetFetchResponse).groups
    assert group.error_code == 0
    return group.topics[0].partitions[0].committed_offset


def delete_offset(guest: Guest) -> Code:
    one = offsets.OffsetDeleteRequestPartition(0)
    request = offsets.OffsetDeleteRequest(GROUP, [offsets.OffsetDeleteRequestTopic("orders", [one])])
    return Code(guest.call(request, 0, offsets.OffsetDeleteResponse).error_code)


def describe_share(guest: Guest) -> Code:
    request = share_groups.ShareGroupDescribeRequest([GROUP])
    return Code(guest.call(request, 1, share_groups.ShareGroupDescribeResponse).groups[0].error_code)


def describe_consumer(guest: Guest) -> Code:
    request = consumer_groups.ConsumerGroupDescribeRequest([GROUP])
    return Code(guest.call(request, 1, consumer_groups.ConsumerGroupDescribeResponse).groups[0].error_code)


def describe_classic(guest: Guest) -> Code:
    request = describe_groups.DescribeGroupsRequest([GROUP])
    return Code(guest.call(request, 6, describe_groups.DescribeGroupsResponse).groups[0].error_code)


def describe_share_offsets(guest: Guest) -> Code:
    request = share_offsets.DescribeShareGroupOffsetsRequest(
        [share_offsets.DescribeShareGroupOffsetsRequestGroup(GROUP, None)]
    )
    return Code(guest.call(request, 1, share_offsets.DescribeShareGroupOffsetsResponse).groups[0].error_code)


def alter_share_offsets(guest: Guest) -> Code:
    one = share_offsets.AlterShareGroupOffsetsRequestPartition(0, 0)
    request = share_offsets.AlterShareGroupOffsetsRequest(
        GROUP, [share_offsets.AlterShareGroupOffsetsRequestTopic("orders", [one])]
    )
    return Code(guest.call(request, 0, share_offsets.AlterShareGroupOffsetsResponse).error_code)


def delete_share_offsets(guest: Guest) -> Code:
    request = share_offsets.DeleteShareGroupOffsetsRequest(
        GROUP, [share_offsets.DeleteShareGroupOffsetsRequestTopic("orders")]
    )
    return Code(guest.call(request, 0, share_offsets.DeleteShareGroupOffsetsResponse).error_code)


def kinds(house: House) -> list[str]:
    response = house.operator.call(describe_groups.ListGroupsRequest(), 5, describe_groups.ListGroupsResponse)
    return [one.group_type for one in response.groups if one.group_id == GROUP]


def delete(house: House) -> Code:
    request = describe_groups.DeleteGroupsRequest([GROUP])
    (result,) = house.operator.call(request, 2, describe_groups.DeleteGroupsResponse).results
    return Code(result.error_code)


FOR_SHARE_GROUPS: list[Callable[[Guest], Code]] = [
    beat_share,
    fetch_share,
    describe_share,
    describe_share_offsets,
    alter_share_offsets,
    delete_share_offsets,
]
FOR_STREAM_GROUPS: list[tuple[Callable[[Guest], Code], Code]] = [
    (join_classic, Code.INCONSISTENT_GROUP_PROTOCOL),
    (beat_consumer, Code.GROUP_ID_NOT_FOUND),
    (commit, Code.GROUP_ID_NOT_FOUND),
    (delete_offset, Code.GROUP_ID_NOT_FOUND),
    (describe_classic, Code.GROUP_ID_NOT_FOUND),
    (describe_consumer, Code.GROUP_ID_NOT_FOUND),
]


@pytest.mark.parametrize("has_members", [True, False])
@pytest.mark.parametrize("ask", FOR_SHARE_GROUPS, ids=lambda ask: ask.__name__)
def test_a_consumer_group_is_no_share_group(ask: Callable[[Guest], Code], has_members: bool) -> None:
    house = House(share_auto_offset_reset=None)
    house.publish(b"a", b"b")
    assert commit(Guest(house)) is Code.NONE
    if has_members:
        assert beat_consumer(Guest(house)) is Code.NONE
    assert ask(Guest(house)) is Code.GROUP_ID_NOT_FOUND
    assert kinds(house) == ["consumer" if has_members else "classic"]
    assert committed(Guest(house)) == 1


@pytest.mark.parametrize("has_members", [True, False])
@pytest.mark.parametrize(("ask", "code"), FOR_STREAM_GROUPS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_share_group_is_no_consumer_group(ask: Callable[[Guest], Code], code: Code, has_members: bool) -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house, "s")
    if has_members:
        assert beat_share(Guest(house)) is Code.NONE
    assert set(member.get(max_records=1)) == {(0, 0)}
    assert member.ack(0, 0) is Code.NONE
    assert ask(Guest(house)) is code
    assert kinds(house) == ["share"]
    assert committed(Guest(house)) == -1
    assert set(member.get()) == {(0, 1)}, "its progress is untouched"


@pytest.mark.parametrize("use", [commit, beat_consumer])
def test_a_deleted_id_may_become_a_group_of_another_kind(use: Callable[[Guest], Code]) -> None:
    house = House()
    house.publish(b"a")
    member = Member(house, "s")
    member.get()
    assert member.ack(0, 0) is Code.NONE
    assert delete(house) is Code.NONE
    assert use(Guest(house)) is Code.NONE
    if use is beat_consumer:
        assert beat_consumer(Guest(house), -1) is Code.NONE
    assert delete(house) is Code.NONE
    house.configure(share_auto_offset_reset="earliest")
    assert Member(house, "s").get() == {(0, 0): 1}


def test_deleting_a_consumer_group_leaves_no_share_group_behind() -> None:
    house = House(share_auto_offset_reset=None)
    house.publish(b"a")
    assert commit(Guest(house)) is Code.NONE
    assert delete(house) is Code.NONE
    assert delete(house) is Code.GROUP_ID_NOT_FOUND
    assert kinds(house) == []


def test_options_of_a_consumer_group_do_not_make_it_a_share_group() -> None:
    house = House()  # which sets one
    house.publish(b"a")
    assert commit(Guest(house)) is Code.NONE
    for ask in (describe_share, describe_share_offsets):
        assert ask(Guest(house)) is Code.GROUP_ID_NOT_FOUND
    assert kinds(house) == ["classic"]

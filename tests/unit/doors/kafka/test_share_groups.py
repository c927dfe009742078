"""Share groups as operators see them: members, lists, options, offsets."""

from typing import Any

import pytest

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import describe_groups, share_groups, share_offsets
from goqueue.wire.kafka.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from tests.unit.doors.kafka.share_members import ACCEPT, GROUP, GROUP_RESOURCE, Guest, House, Member, topic_id

SOURCE_GROUP, SOURCE_DEFAULT = 8, 5
NO_OFFSET = -1


def beat(
    guest: Guest, member_id: str = "m", epoch: int = 0, group_id: str = GROUP
) -> share_groups.ShareGroupHeartbeatResponse:
    names = ["orders"] if epoch == 0 else None
    request = share_groups.ShareGroupHeartbeatRequest(group_id, member_id, epoch, None, names)
    return guest.call(request, 1, share_groups.ShareGroupHeartbeatResponse)


def describe(house: House, *names: str) -> list[share_groups.DescribedShareGroup]:
    request = share_groups.ShareGroupDescribeRequest(list(names))
    return house.operator.call(request, 1, share_groups.ShareGroupDescribeResponse).groups


def listed(house: House, states: list[str] | None = None, types: list[str] | None = None) -> list[tuple[str, str, str]]:
    request = describe_groups.ListGroupsRequest(states or [], types or [])
    response = house.operator.call(request, 5, describe_groups.ListGroupsResponse)
    return [(one.group_id, one.group_state, one.group_type) for one in response.groups]


def delete(house: House, *names: str) -> list[Code]:
    request = describe_groups.DeleteGroupsRequest(list(names))
    results = house.operator.call(request, 2, describe_groups.DeleteGroupsResponse).results
    codes = {one.group_id: Code(one.error_code) for one in results}
    return [codes[name] for name in names]


# -- members


def test_a_member_is_told_what_to_read_and_when_to_speak() -> None:
    house = House(partitions=3)
    guest = Guest(house)
    response = beat(guest)
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m", 1)
    assert response.assignment is not None
    (assigned,) = response.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (topic_id("orders"), [0, 1, 2])
    response = beat(guest, epoch=1)
    assert (response.assignment, response.heartbeat_interval_ms) == (None, 3_000)
    assert beat(guest, epoch=9).error_code == Code.FENCED_MEMBER_EPOCH
    assert beat(guest, "stranger", 1).error_code == Code.UNKNOWN_MEMBER_ID
    assert beat(guest, epoch=-1).member_epoch == -1


def test_the_times_of_members_are_options_of_their_group() -> None:
    house = House(share_session_timeout_ms="9000", share_heartbeat_interval_ms="1500")
    guest = Guest(house)
    beat(guest)
    assert beat(guest, epoch=1).heartbeat_interval_ms == 1_500
    house.advance(9_000)
    assert beat(guest, epoch=1).error_code == Code.UNKNOWN_MEMBER_ID


def test_groups_are_described_with_their_members() -> None:
    house = House()
    guest = Guest(house)
    beat(guest, "a")
    beat(guest, "b")
    group, missing = describe(house, GROUP, "nobody")
    assert (group.error_code, group.group_id, group.group_state, group.assignor_name) == (0, GROUP, "Stable", "simple")
    assert [member.member_id for member in group.members] == ["a", "b"]
    first = group.members[0]
    assert (first.client_id, first.client_host, first.subscribed_topic_names) == ("test", "/10.0.0.1", ["orders"])
    (assigned,) = first.assignment.topic_partitions
    assert (assigned.topic_name, assigned.topic_id, assigned.partitions) == ("orders", topic_id("orders"), [0])
    assert (missing.error_code, missing.group_state) == (Code.GROUP_ID_NOT_FOUND, "Dead")
    assert describe(house) == []


def test_groups_without_members_are_known_by_their_deliveries() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    member.get()
    assert listed(house) == [(GROUP, "Empty", "share")]
    assert [group.group_state for group in describe(house, GROUP)] == ["Empty"]
    beat(member)
    assert listed(house) == [(GROUP, "Stable", "share")]
    assert listed(house, states=["empty"]) == []
    assert listed(house, types=["Share"]) == [(GROUP, "Stable", "share")]
    assert listed(house, types=["classic", "consumer"]) == []


def test_a_deleted_group_begins_anew() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    beat(member)
    assert member.get() == {(0, 0): 1}
    assert member.ack(0, 0, ACCEPT) is Code.NONE
    assert delete(house, GROUP, "nobody") == [Code.NON_EMPTY_GROUP, Code.GROUP_ID_NOT_FOUND]
    beat(member, epoch=-1)
    assert delete(house, GROUP) == [Code.NONE]
    assert delete(house, GROUP) == [Code.GROUP_ID_NOT_FOUND]
    assert listed(house) == []
    house.configure(share_auto_offset_reset="earliest")
    assert Member(house, "again").get() == {(0, 0): 1}


# -- options


def options(house: House, group: str = GROUP, keys: list[str] | None = None) -> dict[str, tuple[str | None, int]]:
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP_RESOURCE, group, keys)])
    (result,) = house.operator.call(request, 4, DescribeConfigsResponse).results
    assert result.error_code == 0
    return {one.name: (one.value, one.config_source) for one in result.configs}


def test_options_of_a_group_have_kafkas_names_and_defaults() -> None:
    house = House(share_record_lock_duration_ms="20000")
    found = options(house)
    assert found["share.auto.offset.reset"] == ("earliest", SOURCE_GROUP)
    assert found["share.record.lock.duration.ms"] == ("20000", SOURCE_GROUP)
    assert found["share.session.timeout.ms"] == ("45000", SOURCE_DEFAULT)
    assert found["share.heartbeat.interval.ms"] == ("3000", SOURCE_DEFAULT)
    assert found["share.delivery.count.limit"] == ("5", SOURCE_DEFAULT)
    assert found["share.isolation.level"] == ("read_committed", SOURCE_DEFAULT)
    assert found["unacked.max"] == ("1000", SOURCE_DEFAULT)
    assert options(house, keys=["share.auto.offset.reset"]) == {"share.auto.offset.reset": ("earliest", SOURCE_GROUP)}
    assert options(house, "other")["share.auto.offset.reset"] == ("latest", SOURCE_DEFAULT)


def test_options_hold_for_what_is_leased_from_now_on() -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    member.get(max_records=1)
    assert house.configure(share_record_lock_duration_ms="5000") is Code.NONE
    assert member.fetch().acquisition_lock_timeout_ms == 5_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share.auto.offset.reset", "by_duration:1h"),
        ("share.auto.offset.reset", "by_duration:P"),
        ("share.auto.offset.reset", "by_duration:-PT1H"),
        ("share.auto.offset.reset", "none"),
        ("share.record.lock.duration.ms", "soon"),
        ("share.record.lock.duration.ms", "0"),
        ("share.session.timeout.ms", "10"),
        ("share.session.timeout.ms", "9" * 5000),
        ("share.heartbeat.interval.ms", "-1"),
        ("share.isolation.level", "none"),
        ("consumer.session.timeout.ms", "0"),
        ("consumer.heartbeat.interval.ms", "often"),
        ("share.nothing", "1"),
        ("retention.ms", "1"),
    ],
)
def test_options_that_cannot_be_are_refused_and_none_is_set(name: str, value: str) -> None:
    house = House()
    before = options(house)
    changed: dict[str, str] = {"share_delivery_count_limit": "9", name.replace(".", "_"): value}
    assert house.configure(**changed) is Code.INVALID_CONFIG
    assert options(house) == before


def change(house: House, request: Any, version: int, response: Any) -> Code:
    (result,) = house.operator.call(request, version, response).responses
    return Code(result.error_code)


def test_options_can_be_tried_taken_back_and_replaced() -> None:
    house = House(share_delivery_count_limit="9")
    config = IncrementalAlterableConfig("share.delivery.count.limit", 1, None)
    resources = [IncrementalAlterConfigsResource(GROUP_RESOURCE, GROUP, [config])]
    for validate_only, left in ((True, ("9", SOURCE_GROUP)), (False, ("5", SOURCE_DEFAULT))):
        request = IncrementalAlterConfigsRequest(resources, validate_only)
        assert change(house, request, 1, IncrementalAlterConfigsResponse) is Code.NONE
        assert options(house)["share.delivery.count.limit"] == left
    replacing = [AlterConfigsResource(GROUP_RESOURCE, GROUP, [AlterableConfig("unacked.max", "7")])]
    assert change(house, AlterConfigsRequest(replacing), 2, AlterConfigsResponse) is Code.NONE
    assert {name for name, (_, source) in options(house).items() if source == SOURCE_GROUP} == {"unacked.max"}
    nameless = [AlterConfigsResource(GROUP_RESOURCE, "", [AlterableConfig("unacked.max", "7")])]
    assert change(house, AlterConfigsRequest(nameless), 2, AlterConfigsResponse) is Code.INVALID_REQUEST


# -- offsets


Described = dict[tuple[str, int], tuple[int, int, Code]]


def describe_offsets(house: House, group: str = GROUP, topics: dict[str, list[int]] | None = None) -> Described:
    """Start offset, lag and error."""
    wanted = None
    if topics is not None:
        wanted = [share_offsets.DescribeShareGroupOffsetsRequestTopic(*each) for each in topics.items()]
    asked = share_offsets.DescribeShareGroupOffsetsRequestGroup(group, wanted)
    request = share_offsets.DescribeShareGroupOffsetsRequest([asked])
    (found,) = house.operator.call(request, 1, share_offsets.DescribeShareGroupOffsetsResponse).groups
    assert found.error_code == 0, found
    return {
        (topic.topic_name, one.partition_index): (one.start_offset, one.lag, Code(one.error_code))
        for topic in found.topics
        for one in topic.partitions
    }


def alter(house: House, offset: int, topic: str = "orders", partition: int = 0, group: str = GROUP) -> Code:
    part = share_offsets.AlterShareGroupOffsetsRequestPartition(partition, offset)
    request = share_offsets.AlterShareGroupOffsetsRequest(
        group, [share_offsets.AlterShareGroupOffsetsRequestTopic(topic, [part])]
    )
    response = house.operator.call(request, 0, share_offsets.AlterShareGroupOffsetsResponse)
    if response.error_code:
        return Code(response.error_code)
    return Code(response.responses[0].partitions[0].error_code)


def delete_offsets(house: House, *topics: str, group: str = GROUP) -> list[Code]:
    request = share_offsets.DeleteShareGroupOffsetsRequest(
        group, [share_offsets.DeleteShareGroupOffsetsRequestTopic(topic) for topic in topics]
    )
    response = house.operator.call(request, 0, share_offsets.DeleteShareGroupOffsetsResponse)
    if response.error_code:
        return [Code(response.error_code)]
    return [Code(one.error_code) for one in response.responses]


def test_offsets_say_what_is_settled_and_what_is_left() -> None:
    house = House(partitions=2)
    house.publish(*[b"%d" % number for number in range(10)])
    member = Member(house)
    member.get(max_records=8)
    member.acknowledge({0: [(0, 2, [ACCEPT]), (5, 5, [ACCEPT])]})
    assert describe_offsets(house) == {("orders", 0): (3, 6, Code.NONE)}
    asked = {"orders": [0, 1, 9], "nothing": [0]}
    assert describe_offsets(house, topics=asked) == {
        ("orders", 0): (3, 6, Code.NONE),
        ("orders", 1): (NO_OFFSET, NO_OFFSET, Code.NONE),
        ("orders", 9): (NO_OFFSET, NO_OFFSET, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ("nothing", 0): (NO_OFFSET, NO_OFFSET, Code.UNKNOWN_TOPIC_OR_PARTITION),
    }


def test_offsets_of_nobody_are_not_found() -> None:
    house = House()
    request = share_offsets.DescribeShareGroupOffsetsRequest(
        [share_offsets.DescribeShareGroupOffsetsRequestGroup("nobody", None)]
    )
    (group,) = house.operator.call(request, 0, share_offsets.DescribeShareGroupOffsetsResponse).groups
    assert group.error_code == Code.GROUP_ID_NOT_FOUND
    assert alter(house, 0, group="") is Code.GROUP_ID_NOT_FOUND
    assert delete_offsets(house, "orders", group="nobody") == [Code.GROUP_ID_NOT_FOUND]
    empty = house.operator.call(
        share_offsets.DescribeShareGroupOffsetsRequest(), 0, share_offsets.DescribeShareGroupOffsetsResponse
    )
    assert empty.groups == []


def test_setting_the_offsets_of_a_group_that_is_not_there_makes_it() -> None:
    house = House(share_auto_offset_reset=None)
    house.publish(b"a", b"b", b"c")
    assert alter(house, 1) is Code.NONE
    assert listed(house) == [(GROUP, "Empty", "share")]
    assert set(Member(house).get()) == {(0, 1), (0, 2)}


def test_offsets_can_be_set_while_there_are_no_members() -> None:
    house = House(partitions=2)
    house.publish(*[b"%d" % number for number in range(5)])
    member = Member(house)
    beat(member)
    member.get()
    member.acknowledge({0: [(0, 4, [ACCEPT])]})
    assert alter(house, 3) is Code.NON_EMPTY_GROUP
    beat(member, epoch=-1)
    assert alter(house, 3) is Code.NONE
    assert alter(house, 0, partition=1) is Code.NONE
    assert describe_offsets(house) == {("orders", 0): (3, 2, Code.NONE), ("orders", 1): (0, 0, Code.NONE)}
    assert set(member.get()) == {(0, 3), (0, 4)}
    assert alter(house, 6) is Code.OFFSET_OUT_OF_RANGE
    assert alter(house, -1) is Code.OFFSET_OUT_OF_RANGE
    assert alter(house, 0, "nothing") is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_can_be_forgotten_while_there_are_no_members() -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    beat(member)
    member.get()
    member.acknowledge({0: [(0, 1, [ACCEPT])]})
    assert delete_offsets(house, "orders") == [Code.NON_EMPTY_GROUP]
    beat(member, epoch=-1)
    assert delete_offsets(house, "orders", "nothing") == [Code.NONE, Code.UNKNOWN_TOPIC_OR_PARTITION]
    assert describe_offsets(house) == {}
    assert set(member.get()) == {(0, 0), (0, 1)}, "it begins anew"

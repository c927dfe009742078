"""Options of groups that Kafka names: where share groups begin, what they see, and the pace of consumer groups."""

import pytest

from goqueue.model.codes import Code
from goqueue.records.batch import check_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.wire.kafka.messages import consumer_groups as wire
from goqueue.wire.kafka.messages.configs import DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse
from goqueue.wire.kafka.messages.describe_groups import ListGroupsRequest, ListGroupsResponse
from tests.brokers import data
from tests.unit.doors.kafka.share_members import GROUP, GROUP_RESOURCE, House, Member

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("written", "first"),
    [("PT1H", 2), ("PT60M", 2), ("PT3600.000S", 2), ("PT1H1S", 1), ("P1D", 0), ("PT0S", 3)],
)
def test_a_share_group_begins_as_long_ago_as_it_is_told(written: str, first: int) -> None:
    house = House(share_auto_offset_reset=f"by_duration:{written}")
    now_ms = house.broker.clock.now_ms()
    for ago_ms in (2 * HOUR_MS, HOUR_MS + 1000, HOUR_MS):
        house.broker.publish("orders", b"x", timestamp=now_ms - ago_ms)
    house.broker.commit()
    member = Member(house)
    assert member.get() == {(0, offset): 1 for offset in range(first, 3)}
    house.publish(b"new")
    assert (0, 3) in member.get()


def transact(house: House, *values: bytes) -> None:
    batch = data(*values, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    replica = house.broker.broker.topics.replica("orders", 0)
    replica.append(check_batch(batch), house.broker.clock.now_ms())
    house.broker.commit()


def abort(house: House) -> None:
    now_ms = house.broker.clock.now_ms()
    marker = build_control(ControlKind.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=now_ms)
    replica = house.broker.broker.topics.replica("orders", 0)
    replica.append_marker(check_batch(memoryview(marker)), 0, now_ms)
    house.broker.commit()


@pytest.mark.parametrize(
    ("level", "open_ones", "aborted_ones"),
    [("read_committed", [0], [0, 4]), ("read_uncommitted", [0, 1, 2], [0, 1, 2, 4])],
)
def test_a_share_group_sees_open_and_aborted_transactions_only_if_it_is_told_to(
    level: str, open_ones: list[int], aborted_ones: list[int]
) -> None:
    house = House(share_isolation_level=level)
    house.publish(b"before")
    transact(house, b"a", b"b")
    found = Member(house).get()
    assert found == {(0, offset): 1 for offset in open_ones}
    abort(house)
    house.publish(b"after")
    found |= Member(house, "other").get()
    assert found == {(0, offset): 1 for offset in aborted_ones}


def test_an_aborted_transaction_is_seen_by_a_group_that_comes_later_only_if_it_reads_uncommitted() -> None:
    for level, offsets in (("read_committed", []), ("read_uncommitted", [0, 1])):
        house = House(share_isolation_level=level)
        transact(house, b"a", b"b")
        abort(house)
        assert Member(house).get() == {(0, offset): 1 for offset in offsets}


def beat(house: House, epoch: int, member: str = "m") -> wire.ConsumerGroupHeartbeatResponse:
    request = wire.ConsumerGroupHeartbeatRequest(GROUP, member, epoch)
    if not epoch:
        request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = 9000, ["orders"], []
    return house.operator.call(request, 1, wire.ConsumerGroupHeartbeatResponse)


def test_members_of_a_consumer_group_keep_the_pace_and_the_session_of_their_group() -> None:
    house = House(share_auto_offset_reset=None)
    assert house.configure(consumer_heartbeat_interval_ms="7000", consumer_session_timeout_ms="60000") is Code.NONE
    joined = beat(house, 0)
    assert beat(house, joined.member_epoch).heartbeat_interval_ms == 7000
    house.advance(59_000)
    assert beat(house, joined.member_epoch).error_code == Code.NONE
    house.advance(60_000)
    assert beat(house, joined.member_epoch).error_code == Code.UNKNOWN_MEMBER_ID


def test_options_of_consumers_make_no_share_group() -> None:
    house = House(share_auto_offset_reset=None)
    assert house.configure(consumer_session_timeout_ms="60000") is Code.NONE
    assert house.operator.call(ListGroupsRequest(), 5, ListGroupsResponse).groups == []
    beat(house, 0)
    listed = house.operator.call(ListGroupsRequest(), 5, ListGroupsResponse).groups
    assert [(one.group_id, one.group_type) for one in listed] == [(GROUP, "consumer")]


def test_every_option_of_a_group_has_a_sentence() -> None:
    resource = DescribeConfigsResource(GROUP_RESOURCE, GROUP, None)
    request = DescribeConfigsRequest([resource], include_documentation=True)
    (result,) = House().operator.call(request, 4, DescribeConfigsResponse).results
    assert [one.name for one in result.configs if not one.documentation] == []
    assert {one.name for one in result.configs} >= {"consumer.session.timeout.ms", "share.isolation.level"}

"""ShareFetch and ShareAcknowledge: what is fetched, acknowledged, and delivered again. KIP-932."""

from typing import Any

import pytest

from goqueue.model.codes import Code
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.wire.kafka.messages import share_groups as wire
from tests.unit.doors.kafka.share_members import (
    ACCEPT,
    GROUP,
    REJECT,
    RELEASE,
    RENEW,
    House,
    Member,
    acquired,
    offsets,
    parts,
    topic_id,
)

LEASE_MS = 30_000


# -- fetching


def test_records_come_in_their_own_batches_and_only_leased_ones_are_named() -> None:
    house = House()
    house.publish(b"a", b"b", b"c", b"d")
    member = Member(house)
    response = member.fetch(max_records=2)
    assert acquired(response) == offsets(0, 1)
    assert response.acquisition_lock_timeout_ms == LEASE_MS
    (part,) = parts(response).values()
    (batch,) = split(memoryview(bytes(part.records)))  # type: ignore[arg-type]
    assert [record.value for record in decode(batch)] == [b"a", b"b", b"c", b"d"]
    assert [(run.first_offset, run.last_offset) for run in part.acquired_records] == [(0, 1)]
    assert member.get(max_records=2) == offsets(2, 3)
    assert member.get() == {}


def test_two_members_share_one_partition() -> None:
    house = House()
    for number in range(10):
        house.publish(b"%d" % number)
    first, second = Member(house, "a"), Member(house, "b")
    mine, yours = first.get(max_records=4), second.get()
    assert mine == offsets(*range(4))
    assert yours == offsets(*range(4, 10))


def test_batches_of_several_leases_are_joined_in_order() -> None:
    house = House()
    for number in range(6):
        house.publish(b"%d" % number)
    first, second = Member(house, "a"), Member(house, "b")
    first.get()
    assert first.ack(0, 5, RELEASE, ACCEPT, ACCEPT, RELEASE, ACCEPT, RELEASE) is Code.NONE
    (part,) = parts(second.fetch()).values()
    assert [(run.first_offset, run.last_offset, run.delivery_count) for run in part.acquired_records] == [
        (0, 0, 2),
        (3, 3, 2),
        (5, 5, 2),
    ]
    batches = list(split(memoryview(bytes(part.records))))  # type: ignore[arg-type]
    assert [record.value for batch in batches for record in decode(batch)] == [b"0", b"3", b"5"]


def test_a_fetch_waits_for_records_and_no_longer_than_asked() -> None:
    house = House()
    member = Member(house)
    member.park(max_wait_ms=500)
    house.advance(499)
    assert member.parked() == []
    house.publish(b"a")
    (response,) = member.parked()
    assert acquired(response) == offsets(0)
    member.park(max_wait_ms=500)
    house.advance(500)
    (response,) = member.parked()
    assert acquired(response) == {}


def test_a_new_group_begins_at_the_end_if_nothing_else_was_said() -> None:
    house = House()
    house.configure(share_auto_offset_reset="latest")
    house.publish(b"old")
    member = Member(house)
    assert member.get() == {}
    house.publish(b"new")
    assert member.get() == offsets(1)


@pytest.mark.parametrize("field", ["max_records", "max_bytes"])
def test_who_wants_no_records_gets_none_at_once(field: str) -> None:
    house = House()
    house.publish(b"a")
    fields: dict[str, Any] = {field: 0}
    assert Member(house).get(max_wait_ms=500, **fields) == {}


def test_a_session_remembers_its_partitions_until_they_are_forgotten() -> None:
    house = House(partitions=2)
    member = Member(house, partitions=2)
    member.get()
    house.publish(b"a", partition=0)
    house.publish(b"b", partition=1)
    assert set(member.get()) == {(0, 0), (1, 0)}
    forgotten = [wire.ForgottenShareTopic(topic_id("orders"), [1])]
    house.publish(b"c", partition=1)
    assert member.get(forgotten_topics_data=forgotten) == {}
    member.to_add = [1]
    assert member.get() == {(1, 1): 1}


def test_what_cannot_be_read_is_told_once_and_then_with_a_pause() -> None:
    house = House()
    member = Member(house)
    member.to_add = [0, 7]
    strangers = [wire.ShareTopic(topic_id("nothing"), [wire.SharePartition(0)])]
    request = member.request(max_wait_ms=500)
    request.topics += strangers
    response = member.call(request, 1, wire.ShareFetchResponse)
    assert {
        (topic.topic_id, one.partition_index, one.error_code)
        for topic in response.responses
        for one in topic.partitions
    } == {
        (topic_id("orders"), 7, Code.UNKNOWN_TOPIC_OR_PARTITION),
        (topic_id("nothing"), 0, Code.UNKNOWN_TOPIC_ID),
    }
    member.park(max_wait_ms=500)
    assert member.parked() == []
    house.publish(b"a")
    (response,) = member.parked()
    assert acquired(response) == offsets(0)
    assert parts(response)[7].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_session_without_anything_to_read_does_not_spin() -> None:
    house = House()
    member = Member(house, partitions=0)
    assert member.get(max_wait_ms=500) == {}
    member.to_add = [9]
    assert parts(member.fetch(max_wait_ms=500))[9].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    member.park(max_wait_ms=500)
    assert member.parked() == []
    house.advance(500)
    assert len(member.parked()) == 1


def record_bytes(response: wire.ShareFetchResponse) -> int:
    return sum(len(bytes(part.records)) for part in parts(response).values() if part.records)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize("partitions", [1, 3])
def test_all_but_the_first_batch_fit_into_the_limit_of_bytes(partitions: int) -> None:
    house = House(partitions)
    for number in range(9):
        house.publish(b"x" * 1000, partition=number % partitions)
    member = Member(house, partitions=partitions)
    one = record_bytes(Member(house, "other", partitions=partitions).fetch(max_records=1))
    got: dict[tuple[int, int], int] = {}
    for _ in range(4):
        response = member.fetch(max_bytes=2 * one + one // 2)
        assert record_bytes(response) == 2 * one
        got |= acquired(response)
    assert len(got) == 8
    assert set(got.values()) == {1}, "what was left out counts as not delivered"


def test_a_batch_larger_than_the_limit_comes_alone() -> None:
    house = House(partitions=2)
    for partition in (0, 1):
        house.publish(b"x" * 1000, partition=partition)
    member = Member(house, partitions=2)
    first, second = member.fetch(max_bytes=10), member.fetch(max_bytes=10)
    assert len(acquired(first)) == len(acquired(second)) == 1
    assert acquired(first) | acquired(second) == {(0, 0): 1, (1, 0): 1}


def test_a_record_dies_after_five_deliveries() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    for count in range(1, 6):
        assert member.get() == offsets(0, count=count)
        assert member.ack(0, 0, RELEASE) is Code.NONE
    house.advance(10 * LEASE_MS)
    assert member.get() == {}
    assert house.broker.broker.topics.end_offset("orders.dlq", 0) == 1


# -- acknowledging


def test_accepted_records_never_come_again() -> None:
    house = House()
    house.publish(b"a", b"b", b"c")
    member = Member(house)
    member.get()
    response = member.fetch({0: [(0, 1, [ACCEPT]), (2, 2, [ACCEPT])]})
    assert parts(response)[0].acknowledge_error_code == 0
    house.advance(10 * LEASE_MS)
    assert member.get() == {}


def test_released_records_come_again_at_once_and_counted() -> None:
    house = House()
    house.publish(b"a", b"b", b"c")
    member = Member(house)
    member.get()
    assert member.get({0: [(0, 2, [ACCEPT, RELEASE, RELEASE])]}) == offsets(1, 2, count=2)
    assert member.get({0: [(1, 2, [RELEASE])]}) == offsets(1, 2, count=3)


def settle_with_wishes(member: Member, kind: int, **wishes: Any) -> None:
    """Offset 0 of partition 0, by itself."""
    request = member.request({0: [(0, 0, [kind])]})
    (batch,) = request.topics[0].partitions[0].acknowledgement_batches
    for name, value in wishes.items():
        setattr(batch, name, value)
    renews = kind == RENEW
    sent = wire.ShareAcknowledgeRequest(GROUP, member.name, request.share_session_epoch, renews, request.topics)
    response = member.call(sent, member.version, wire.ShareAcknowledgeResponse)
    assert response.responses[0].partitions[0].error_code == 0


def test_a_released_record_may_wait() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    member.get()
    settle_with_wishes(member, RELEASE, gq_delay_ms=5000)
    house.advance(4999)
    assert member.get() == {}
    house.advance(1)
    assert member.get() == offsets(0, count=2)
    settle_with_wishes(member, RELEASE, gq_delay_ms=-1)  # a second, doubled for the second attempt
    house.advance(1999)
    assert member.get() == {}
    house.advance(1)
    assert member.get() == offsets(0, count=3)


def test_a_renewal_may_be_as_long_as_wished() -> None:
    house = House()
    house.publish(b"a")
    member, other = Member(house, version=2), Member(house, "other")
    member.get()
    settle_with_wishes(member, RENEW, gq_delay_ms=10 * LEASE_MS)
    house.advance(10 * LEASE_MS - 1)
    assert other.get() == {}
    house.advance(1)
    assert other.get() == offsets(0, count=2)


def test_a_rejection_may_say_why() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    member.get()
    settle_with_wishes(member, REJECT, gq_reason="no such customer")
    house.advance(1)
    piece = house.broker.broker.topics.replica("orders.dlq", 0).read(0, 10_000, 1)
    assert piece is not None
    ((letter,),) = [decode(batch) for batch in split(piece.view())]
    assert dict(letter.headers)["gq-dlq-error"] == b"no such customer"


def test_rejected_records_are_dead_letters_and_never_come_again() -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    member.get()
    assert member.ack(0, 1, REJECT, ACCEPT) is Code.NONE
    house.advance(10 * LEASE_MS)
    assert member.get() == {}
    assert house.broker.broker.topics.end_offset("orders.dlq", 0) == 1


def test_gaps_are_settled_like_accepted_records() -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    member.get()
    assert member.ack(0, 1, 0, ACCEPT) is Code.NONE
    house.advance(10 * LEASE_MS)
    assert member.get() == {}


def test_a_lease_that_runs_out_is_delivered_again_and_counted() -> None:
    house = House()
    house.publish(b"a", b"b")
    first, second = Member(house, "a"), Member(house, "b")
    first.get()
    assert second.get() == {}
    second.park(max_wait_ms=10 * LEASE_MS)
    house.advance(LEASE_MS - 1)
    assert second.parked() == []
    house.advance(2_000)  # and the pause before a retry
    (response,) = second.parked()
    assert acquired(response) == offsets(0, 1, count=2)
    assert first.ack(0, 1) is Code.INVALID_RECORD_STATE
    assert second.ack(0, 1) is Code.NONE


def test_renewed_leases_last_longer() -> None:
    house = House()
    house.publish(b"a", b"b")
    first, second = Member(house, "a", version=2), Member(house, "b")
    first.get()
    house.advance(LEASE_MS - 1_000)
    response = first.acknowledge({0: [(0, 1, [RENEW, ACCEPT])]}, is_renew_ack=True)
    assert response.acquisition_lock_timeout_ms == LEASE_MS
    assert response.responses[0].partitions[0].error_code == 0
    house.advance(LEASE_MS - 1_000)
    assert second.get() == {}
    assert first.get({0: [(0, 0, [RENEW])]}, is_renew_ack=True) == {}
    house.advance(LEASE_MS - 1_000)
    assert second.get() == {}
    assert first.ack(0, 0) is Code.NONE


def test_a_renewal_must_be_announced() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house, version=2)
    member.get()
    assert member.ack(0, 0, RENEW) is Code.INVALID_REQUEST
    assert member.ack(0, 0, RENEW, is_renew_ack=True) is Code.NONE


@pytest.mark.parametrize(
    "batches",
    [
        [(1, 0, [ACCEPT])],
        [(-1, 0, [ACCEPT])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(0, 1, [])],
        [(0, 1, [9])],
        [(0, 1, [-1])],
        [(1, 1, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 1, [ACCEPT]), (1, 1, [ACCEPT])],
        [(0, 2**62, [ACCEPT])],
    ],
)
def test_acknowledgements_that_make_no_sense_are_refused(batches: list[tuple[int, int, list[int]]]) -> None:
    house = House()
    house.publish(b"a", b"b", b"c")
    member = Member(house)
    member.get()
    response = member.fetch({0: batches})
    assert parts(response)[0].acknowledge_error_code == Code.INVALID_REQUEST
    assert parts(response)[0].error_code == 0


def test_nobody_settles_what_he_does_not_hold() -> None:
    house = House()
    house.publish(b"a", b"b")
    first, second = Member(house, "a"), Member(house, "b")
    first.get()
    second.get()
    assert second.ack(0, 1) is Code.INVALID_RECORD_STATE
    assert second.ack(5, 6) is Code.INVALID_RECORD_STATE
    assert first.ack(0, 1) is Code.NONE
    assert first.ack(0, 1) is Code.INVALID_RECORD_STATE


def test_acknowledgements_of_unknown_partitions_are_told_apart() -> None:
    house = House()
    member = Member(house)
    member.get()
    request = member.request({3: [(0, 0, [ACCEPT])]})
    request.topics.append(
        wire.ShareTopic(bytes(16), [wire.SharePartition(0, [wire.AcknowledgementBatch(0, 0, [ACCEPT])])])
    )
    sent = wire.ShareAcknowledgeRequest("g", "m", request.share_session_epoch, topics=request.topics)
    response = member.call(sent, 1, wire.ShareAcknowledgeResponse)
    codes = [Code(one.error_code) for topic in response.responses for one in topic.partitions]
    assert codes == [Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID]

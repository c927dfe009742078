"""A ShareFetch leases while what it acknowledges becomes durable: its answer waits for both."""

import errno

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import share_groups as wire
from tests.unit.doors.kafka.share_members import ACCEPT, GROUP, House, Member, acquired, offsets, parts, topic_id

ONE_DONE = {0: [(0, 0, [ACCEPT])]}
LEASE_MS = 30_000


def begun() -> tuple[House, Member]:
    """One record was leased, and its acknowledgement came with a fetch of the next; nothing is durable of it."""
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    assert member.get(max_records=1, share_acquire_mode=1) == offsets(0)
    member.post(member.request(ONE_DONE, max_records=1, share_acquire_mode=1), member.version)
    house.broker.clock.run()
    return house, member


def replies(member: Member) -> list[wire.ShareFetchResponse]:
    return member.replies(wire.ShareFetchResponse, member.version)


def test_an_answer_with_records_waits_until_what_it_acknowledges_is_durable() -> None:
    house, member = begun()
    assert replies(member) == []
    house.broker.commit()
    (reply,) = replies(member)
    assert acquired(reply) == offsets(1)
    assert parts(reply)[0].acknowledge_error_code == Code.NONE
    house.advance(10 * LEASE_MS)
    assert Member(house, "other").get() == offsets(1, count=2)


def test_what_was_leased_meanwhile_is_nobody_elses() -> None:
    house, member = begun()
    assert Member(house, "other").get() == {}
    assert acquired(replies(member)[0]) == offsets(1)


def test_what_was_leased_for_a_connection_that_was_lost_meanwhile_is_given_back() -> None:
    house, member = begun()
    member.lose_connection()
    assert Member(house, "other").get() == offsets(1, count=2)


def test_the_time_that_is_left_is_told_as_it_is_when_the_answer_leaves() -> None:
    house, member = begun()
    house.broker.clock.advance(1_000)
    house.broker.commit()
    assert replies(member)[0].acquisition_lock_timeout_ms == LEASE_MS - 1_000


def test_acknowledgements_that_could_not_be_made_durable_are_told_with_the_records() -> None:
    house, member = begun()
    house.broker.disk.faults.add("sync", errno.EIO, prefix="logs/@deliveries", forever=True)
    house.broker.commit()
    (reply,) = replies(member)
    assert parts(reply)[0].acknowledge_error_code != Code.NONE


def test_a_fetch_that_finds_nothing_plain_is_answered_when_its_acknowledgements_are_durable() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    member.get()
    member.post(member.request(ONE_DONE), member.version)
    house.broker.clock.run()
    assert replies(member) == []
    house.broker.commit()
    (reply,) = replies(member)
    assert (acquired(reply), parts(reply)[0].acknowledge_error_code) == ({}, Code.NONE)


def test_what_was_leased_for_a_session_that_was_opened_anew_meanwhile_is_given_back() -> None:
    """The member never heard of it, so it would acknowledge nothing of it either."""
    house, member = begun()
    member.epoch, member.to_add = 0, [0]
    member.post(member.request(max_records=1, max_wait_ms=0), member.version)
    house.broker.commit()
    refused, opened = replies(member)
    assert refused.error_code == Code.SHARE_SESSION_NOT_FOUND
    assert acquired(opened) == {}
    assert Member(house, "other").get() == offsets(1)


def test_an_acknowledgement_does_not_wait_for_the_records_of_a_fetch_whose_own_are_not_durable_yet() -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    assert member.get() == offsets(0, 1)
    member.post(member.request(ONE_DONE, max_wait_ms=500), member.version)
    batches = [wire.AcknowledgementBatch(1, 1, [ACCEPT])]
    topics = [wire.ShareTopic(topic_id("orders"), [wire.SharePartition(0, batches)])]
    member.post(wire.ShareAcknowledgeRequest(GROUP, "m", member.epoch, topics=topics), member.version)
    house.broker.commit()
    assert member._connection.is_idle

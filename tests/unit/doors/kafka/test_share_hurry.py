"""What our own workers ask of a share session, beyond what Kafka's do."""

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import share_groups as wire
from tests.unit.doors.kafka.share_members import ACCEPT, GROUP, House, Member, acquired, offsets

LEASE_MS = 30_000


def sent(member: Member, acks: dict[int, list[tuple[int, int, list[int]]]]) -> wire.ShareAcknowledgeRequest:
    request = member.request(acks)
    return wire.ShareAcknowledgeRequest(GROUP, member.name, request.share_session_epoch, topics=request.topics)


def test_a_fetch_that_waits_does_not_keep_a_settlement_waiting() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    member.get()
    member.park(max_wait_ms=60_000)
    assert member.parked() == []
    member.send(sent(member, {0: [(0, 0, [ACCEPT])]}), member.version)
    assert acquired(member.next_reply(wire.ShareFetchResponse)) == {}
    settled = member.next_reply(wire.ShareAcknowledgeResponse)
    assert settled.responses[0].partitions[0].error_code == 0
    house.advance(10 * LEASE_MS)
    assert member.get() == {}


def test_each_settlement_is_told_what_became_of_it() -> None:
    house = House()
    house.publish(b"a", b"b", b"c")
    member = Member(house)
    member.get()
    member.ack(1, 1)
    response = member.call(
        sent(member, {0: [(0, 0, [ACCEPT]), (1, 1, [ACCEPT]), (2, 2, [ACCEPT])]}),
        member.version,
        wire.ShareAcknowledgeResponse,
    )
    (part,) = response.responses[0].partitions
    assert part.error_code == Code.INVALID_RECORD_STATE
    assert [verdict == 0 for verdict in part.gq_verdicts] == [True, False, True]
    house.advance(10 * LEASE_MS)
    assert member.get() == {}


def test_all_is_well_in_few_words() -> None:
    house = House()
    house.publish(b"a")
    member = Member(house)
    member.get()
    response = member.call(sent(member, {0: [(0, 0, [ACCEPT])]}), member.version, wire.ShareAcknowledgeResponse)
    (part,) = response.responses[0].partitions
    assert (part.error_code, part.gq_verdicts) == (0, [])


def test_a_new_group_may_begin_at_the_earliest_record() -> None:
    house = House(share_auto_offset_reset=None)
    house.publish(b"a")
    assert Member(house).get() == {}
    house = House(share_auto_offset_reset=None)
    house.publish(b"a")
    assert Member(house).get(gq_start="earliest") == offsets(0, count=1)


def test_a_lease_may_be_as_long_as_wished() -> None:
    house = House()
    house.publish(b"a")
    member, other = Member(house), Member(house, "other")
    member.get(gq_lease_ms=2 * LEASE_MS)
    house.advance(2 * LEASE_MS - 1)
    assert other.get() == {}
    house.advance(1)
    assert other.get() == offsets(0, count=2)

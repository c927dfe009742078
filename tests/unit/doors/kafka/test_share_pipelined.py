"""Several requests of one share session under way at once: answers leave in the order in which they were asked for, so
none may keep the next one waiting, and none is forgotten.
"""

import pytest

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import share_groups as wire
from tests.unit.doors.kafka.share_members import ACCEPT, House, Member, acquired, offsets

WAIT_MS = 60_000


def taken(member: Member) -> list[dict[tuple[int, int], int]]:
    return [acquired(one) for one in member.parked()]


def test_a_second_fetch_of_a_session_has_the_first_answered() -> None:
    house = House()
    member = Member(house)
    member.get()
    member.park(WAIT_MS)
    member.park(WAIT_MS)
    assert taken(member) == [{}]
    house.publish(b"a")
    assert taken(member) == [offsets(0)]


@pytest.mark.parametrize("fetches", [2, 3])
def test_all_fetches_are_answered_when_their_session_is_closed(fetches: int) -> None:
    house = House()
    member, other = Member(house), Member(house, "other")
    member.get()
    for _ in range(fetches):
        member.park(WAIT_MS)
    member.epoch = -1
    member.park()
    assert [one.error_code for one in member.parked()] == [0] * (fetches - 1) + [Code.SHARE_SESSION_NOT_FOUND, 0]
    house.publish(b"a")
    assert other.get() == offsets(0)


def test_a_fetch_behind_one_whose_acknowledgements_are_not_durable_is_still_hurried() -> None:
    """The first is answered when the second waits already, and must not make the session forget that."""
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    member.get()
    member.post(member.request({0: [(0, 0, [ACCEPT])]}, max_wait_ms=WAIT_MS), member.version)
    member.park(WAIT_MS)
    assert taken(member) == [{}]
    request = member.request({0: [(1, 1, [ACCEPT])]})
    settle = wire.ShareAcknowledgeRequest("g", "m", request.share_session_epoch, topics=request.topics)
    member.send(settle, member.version)
    assert acquired(member.next_reply(wire.ShareFetchResponse)) == {}
    settled = member.next_reply(wire.ShareAcknowledgeResponse)
    assert settled.responses[0].partitions[0].error_code == 0


def test_a_session_that_ends_tells_the_fetch_behind_one_whose_acknowledgements_are_not_durable() -> None:
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    member.get()
    member.post(member.request({0: [(0, 0, [ACCEPT])]}, max_wait_ms=WAIT_MS), member.version)
    member.park(WAIT_MS)
    assert taken(member) == [{}]
    again = Member(house)
    assert again.get() == {}
    (gone,) = member.parked()
    assert gone.error_code == Code.SHARE_SESSION_NOT_FOUND


def test_records_that_come_for_the_first_of_two_are_in_its_answer() -> None:
    house = House()
    house.publish(b"a", b"b", b"c")
    member = Member(house)
    member.get(max_records=1, share_acquire_mode=1)
    member.post(member.request({0: [(0, 0, [ACCEPT])]}, max_records=1, share_acquire_mode=1), member.version)
    member.post(member.request(max_records=1, share_acquire_mode=1), member.version)
    house.broker.commit()
    assert taken(member) == [offsets(1), offsets(2)]

"""A share group whose deliveries are not to be had here while leaders change."""

from goqueue.model.codes import Code
from tests.unit.doors.kafka.share_members import House, Member, offsets, parts


def test_clients_are_sent_to_the_leader_and_never_to_a_coordinator() -> None:
    """Java's share consumer ends with an exception when a partition is answered with NOT_COORDINATOR."""
    house = House()
    house.publish(b"a", b"b")
    member = Member(house)
    assert member.get() == offsets(0, 1)
    (deliveries,) = house.broker.broker.queues.companions.coordinators
    deliveries.unload()
    answer = parts(member.fetch({0: [(0, 0, [1])]}))[0]
    assert answer.acknowledge_error_code == Code.NOT_LEADER_OR_FOLLOWER
    assert answer.error_code == Code.NOT_LEADER_OR_FOLLOWER
    deliveries.load()
    house.broker.commit()
    assert member.get() == offsets(0, 1)

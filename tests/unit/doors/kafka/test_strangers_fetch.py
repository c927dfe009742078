"""A fetch that says it is a follower's is refused on the clients' door: it would acknowledge what nobody has."""

from typing import Any

import pytest

from goqueue.model.codes import Code
from goqueue.model.refusal import NotLeader
from goqueue.replica.standing import Standing
from goqueue.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.unit.doors.kafka.test_door_fuzz import House
from tests.unit.doors.kafka.test_new_leader import LATEST, ask, offset_at

FETCH = 1


def fetch(house: House, version: int, **fields: Any) -> tuple[int, int, bytes]:
    topic_id = house.broker.broker.topics.image.topics["orders"].id
    wanted = FetchTopic("orders", topic_id, [FetchPartition(0, partition_max_bytes=1000)])
    answer = ask(house, FetchRequest(topics=[wanted], **fields), FETCH, version)
    (found,) = answer.responses[0].partitions
    return answer.error_code, found.error_code, bytes(found.records or b"")


@pytest.mark.parametrize("replica_id", [0, 7])
def test_a_fetch_as_a_replica_is_refused_on_the_clients_door(replica_id: int) -> None:
    house = House()
    house.broker.publish("orders", b"x")
    house.broker.commit()
    denied = Code.CLUSTER_AUTHORIZATION_FAILED
    assert fetch(house, 11, replica_id=replica_id) == (denied, denied, b"")
    assert fetch(house, 18, replica_state=ReplicaState(replica_id, 1)) == (denied, denied, b"")
    assert fetch(house, 18, replica_state=ReplicaState(-1, -1))[1] == Code.NONE
    assert fetch(house, 11, replica_id=-1)[1] == Code.NONE


def test_a_leader_that_may_have_been_replaced_answers_no_reads() -> None:
    house = House()
    house.broker.publish("orders", b"x")
    house.broker.commit()
    replica = house.broker.broker.topics.replica("orders", 0)
    is_fresh = [False]

    def asked(_replica: Standing) -> bool:
        return is_fresh[0]

    replica.freshness = asked
    assert fetch(house, 11)[1] == Code.NOT_LEADER_OR_FOLLOWER
    assert offset_at(house, LATEST)[0] == Code.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(NotLeader):
        replica.check_fresh()
    is_fresh[0] = True
    assert fetch(house, 11)[1] == Code.NONE

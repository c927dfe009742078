"""What clients hear from a copy that has begun to lead, or does not lead any more."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goqueue.broker.cluster_watch import GONE_S
from goqueue.broker.publishing.acknowledgements import OUTLIVING_MS
from goqueue.model.codes import Code
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.topics import Topic, TopicsChange
from goqueue.replica.roles import Reign
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages.classic_groups import FindCoordinatorRequest
from goqueue.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from goqueue.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from goqueue.wire.kafka.messages.metadata import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from goqueue.wire.kafka.notation import Message
from tests.brokers import data
from tests.unit.doors.kafka.share_members import ACCEPT, Member, offsets
from tests.unit.doors.kafka.share_members import House as ShareHouse
from tests.unit.doors.kafka.test_door_fuzz import House, frame

LATEST, EARLIEST = -1, -2
LIST_OFFSETS, PRODUCE, METADATA, FETCH, FIND_COORDINATOR, DESCRIBE_CLUSTER = 2, 0, 3, 1, 10, 60


def ask(house: House, message: Message, key: int, version: int) -> Any:
    guest = house.knock()
    guest.send(frame(message, version, 1))
    house.broker.commit()
    (reply,) = guest.replies()
    return decode_response(APIS[key].response, version, reply)[1]


def produce() -> ProduceRequest:
    part = PartitionProduceData(0, data(b"x"))
    return ProduceRequest(None, -1, 1000, [TopicProduceData("orders", partition_data=[part])])


def offset_at(house: House, timestamp: int, version: int = 7) -> tuple[int, int]:
    wanted = ListOffsetsPartition(0, timestamp=timestamp)
    message = ListOffsetsRequest(-1, topics=[ListOffsetsTopic("orders", [wanted])])
    (found,) = ask(house, message, LIST_OFFSETS, version).topics[0].partitions
    return found.error_code, found.offset


@pytest.mark.parametrize(("version", "code"), [(7, Code.OFFSET_NOT_AVAILABLE), (4, Code.LEADER_NOT_AVAILABLE)])
def test_a_new_leader_does_not_tell_its_end_before_all_that_it_found_is_committed(version: int, code: Code) -> None:
    house = House()
    replica = house.broker.broker.topics.replica("orders", 0)
    house.broker.publish("orders", b"c")
    end = replica.end_offset
    replica.lead(Reign(3, me=1, isr=(1, 2), replicas=2))
    assert offset_at(house, LATEST, version) == (code, -1)
    assert offset_at(house, EARLIEST, version) == (Code.NONE, 0)
    replica.lead(Reign(4))
    assert offset_at(house, LATEST, version) == (Code.NONE, end)


def test_a_produce_to_a_copy_that_does_not_lead_is_refused_and_stores_nothing() -> None:
    house = House()
    replica = house.broker.broker.topics.replica("orders", 0)
    end = replica.end_offset
    replica.follow(3, leader=2)
    for _ in range(3):
        (answered,) = ask(house, produce(), PRODUCE, 9).responses[0].partition_responses
        assert answered.error_code == Code.NOT_LEADER_OR_FOLLOWER
    assert replica.end_offset == end


def test_a_produce_that_waits_when_the_leader_changes_is_told_that_it_may_be_stored() -> None:
    house = House()
    replica = house.broker.broker.topics.replica("orders", 0)
    end = replica.end_offset
    guest = house.knock()
    guest.send(frame(produce(), 9, 1))
    house.broker.clock.run()
    assert replica.end_offset == end + 1
    replica.follow(3, leader=2)
    house.broker.commit()
    assert guest.replies() == []
    house.broker.clock.advance(OUTLIVING_MS)
    (reply,) = guest.replies()
    response: Any = decode_response(APIS[PRODUCE].response, 9, reply)[1]
    (answered,) = response.responses[0].partition_responses
    assert answered.error_code == Code.REQUEST_TIMED_OUT


def let_another_lead(house: House | ShareHouse) -> None:
    """Node 2 leads the first partition, in epoch 7."""
    topics = house.broker.broker.topics
    orders = topics.image.topics["orders"]
    changed = replace(orders, placements=(Placement(2, 20, 7, (2, 1), (1, 2)), *orders.placements[1:]))
    nodes = {**topics.image.nodes, 2: NodeInfo(2, 20, ("second.example", 9093), rack="r")}
    topics._seen = topics.image.replaced(topics.image.revision + 1, {"orders": changed}, nodes)
    topics.replica("orders", 0).follow(7, leader=2)
    for companion in house.broker.replicas.companions.of_host(orders.id, 0):
        companion.follow(7, leader=2)


def named(response: Any, answered: Any) -> tuple[Any, ...]:
    """The leader in a refusal, and where it is."""
    leader = answered.current_leader
    endpoints = [(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]
    return answered.error_code, None if leader is None else (leader.leader_id, leader.leader_epoch), endpoints


SECOND = [(2, "second.example", 9093, "r")]
REFUSED = Code.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("version", "leader", "endpoints"), [(9, None, []), (10, (2, 7), SECOND), (12, (2, 7), SECOND)]
)
def test_a_refused_produce_names_the_leader(version: int, leader: Any, endpoints: Any) -> None:
    house = House()
    let_another_lead(house)
    response = ask(house, produce(), PRODUCE, version)
    (answered,) = response.responses[0].partition_responses
    assert named(response, answered) == (REFUSED, leader, endpoints)


def fetch(house: House, version: int, offset: int = 0) -> tuple[Any, Any]:
    topic_id = house.broker.broker.topics.image.topics["orders"].id
    wanted = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1000)
    message = FetchRequest(max_wait_ms=0, topics=[FetchTopic("orders", topic_id, [wanted])])
    response = ask(house, message, FETCH, version)
    (answered,) = response.responses[0].partitions
    return response, answered


@pytest.mark.parametrize(
    ("version", "leader", "endpoints"),
    [(11, None, []), (12, (2, 7), []), (15, (2, 7), []), (16, (2, 7), SECOND), (17, (2, 7), SECOND)],
)
def test_a_refused_fetch_names_the_leader(version: int, leader: Any, endpoints: Any) -> None:
    house = House()
    let_another_lead(house)
    response, answered = fetch(house, version)
    assert named(response, answered) == (REFUSED, leader, endpoints)


def test_a_fetch_between_what_is_committed_and_the_end_gets_nothing_and_one_beyond_is_out_of_range() -> None:
    house = House()
    replica = house.broker.broker.topics.replica("orders", 0)
    end = replica.end_offset
    replica.lead(Reign(3, me=1, isr=(1, 2), replicas=2))
    house.broker.broker.publisher.publish("orders", 0, data(b"waits"))
    assert replica.high_watermark <= end < replica.end_offset
    for offset in range(replica.high_watermark, replica.end_offset + 1):
        _, answered = fetch(house, 12, offset)
        assert (answered.error_code, bytes(answered.records or b"")) == (Code.NONE, b"")
    _, answered = fetch(house, 12, replica.end_offset + 1)
    assert answered.error_code == Code.OFFSET_OUT_OF_RANGE


def test_metadata_tells_nodes_leaders_and_copies_as_the_image_has_them() -> None:
    house = House()
    topics = house.broker.broker.topics
    elsewhere = Placement(2, 20, 7, (2, 1), (1, 2, 3))
    nobody = Placement(3, 30, 4, (3,), (3, 1))
    orders = topics.image.topics["orders"]
    changed = replace(orders, partitions=3, placements=(orders.placements[0], elsewhere, nobody))
    nodes = {**topics.image.nodes, 2: NodeInfo(2, 20, ("second.example", 9093))}
    topics._seen = topics.image.replaced(topics.image.revision + 1, {"orders": changed}, nodes)
    answer = ask(house, MetadataRequest([MetadataRequestTopic(name="orders")]), METADATA, 12)
    me = house.broker.broker.identity.node_id
    assert {(one.node_id, one.host, one.port) for one in answer.brokers if one.node_id != me} == {
        (2, "second.example", 9093)
    }
    assert answer.controller_id == min(me, 2)
    told = {
        one.partition_index: (one.error_code, one.leader_id, one.leader_epoch, one.replica_nodes, one.isr_nodes)
        for one in answer.topics[0].partitions
    }
    assert told[0] == (Code.NONE, me, topics.leader_epoch("orders", 0), [me], [me])
    assert told[1] == (Code.NONE, 2, 7, [1, 2, 3], [2, 1])
    assert told[2] == (Code.LEADER_NOT_AVAILABLE, -1, 4, [3, 1], [3])


def brokers_and_leader(house: House) -> tuple[set[int], tuple[int, int], tuple[int, int]]:
    """What a client is told: nodes, error and leader of the first partition, and the same of a group's coordinator."""
    answer = ask(house, MetadataRequest([MetadataRequestTopic(name="orders")]), METADATA, 12)
    first = next(one for one in answer.topics[0].partitions if one.partition_index == 0)
    (found,) = ask(house, FindCoordinatorRequest(coordinator_keys=["g"]), FIND_COORDINATOR, 4).coordinators
    nodes = {one.node_id for one in answer.brokers}
    return nodes, (first.error_code, first.leader_id), (found.error_code, found.node_id)


def let_another_coordinate(house: House) -> None:
    """Node 2 leads all partitions of the ledger that groups are in."""
    topics = house.broker.broker.topics
    placements = (Placement(2, 20, 7, (2, 1), (1, 2)),) * 16
    groups = Topic("@groups", b"g" * 16, 16, placements=placements)
    topics._seen = topics.image.replaced(topics.image.revision + 1, {"@groups": groups}, topics.image.nodes)


def test_nobody_is_sent_to_a_node_that_is_most_likely_dead() -> None:
    house = House()
    let_another_lead(house)
    let_another_coordinate(house)
    me = house.broker.broker.identity.node_id
    assert brokers_and_leader(house) == ({me, 2}, (Code.NONE, 2), (Code.NONE, 2))
    house.broker.broker.cluster.is_suspected = lambda node: node.node_id == 2
    assert brokers_and_leader(house) == (
        {me},
        (Code.LEADER_NOT_AVAILABLE, -1),
        (Code.COORDINATOR_NOT_AVAILABLE, -1),
    )
    refusal = ask(house, produce(), PRODUCE, 10)
    assert named(refusal, refusal.responses[0].partition_responses[0]) == (REFUSED, None, [])


@pytest.mark.parametrize("is_back", [False, True], ids=["gone", "back"])
def test_a_node_whose_process_has_just_ended_is_named_for_some_seconds(is_back: bool) -> None:
    """librdkafka forgets a broker that is not named, and loses the partitions that the same answer gives to others."""
    house = House()
    let_another_lead(house)
    broker, me = house.broker.broker, house.broker.broker.identity.node_id
    topics, cluster = broker.topics, broker.cluster
    with_it, lives = topics.image, {**topics.image.nodes}
    cluster.image = with_it
    gone = with_it.replaced(with_it.revision + 1, {}, {number: each for number, each in lives.items() if number != 2})
    topics._seen = gone
    cluster.changed(TopicsChange(with_it, gone, frozenset()))

    def told() -> tuple[set[int], int]:
        answer = ask(house, MetadataRequest([MetadataRequestTopic(name="orders")]), METADATA, 12)
        first = next(one for one in answer.topics[0].partitions if one.partition_index == 0)
        return {one.node_id for one in answer.brokers}, first.leader_id

    assert told() == ({me}, -1), "who dials a machine that has vanished waits for it"
    cluster.is_refusing = lambda node: (node.node_id, node.incarnation) == (2, 20)
    assert told() == ({me, 2}, -1)
    described = ask(house, DescribeClusterRequest(), DESCRIBE_CLUSTER, 0)
    assert [one.broker_id for one in described.brokers] == [me], "whoever asks who is there is told the truth"
    if is_back:
        back = gone.replaced(gone.revision + 1, {}, {**lives, 2: lives[2]._replace(incarnation=21)})
        topics._seen = back
        cluster.changed(TopicsChange(gone, back, frozenset()))
        assert cluster.refusing_of_late() == []
    else:
        house.broker.clock.advance(int(GONE_S * 1000) + 1)
        assert told() == ({me}, -1)


def test_a_node_that_has_lost_its_session_still_names_itself() -> None:
    house = House()
    topics = house.broker.broker.topics
    me = house.broker.broker.identity.node_id
    topics._seen = topics.image.replaced(topics.image.revision + 1, {}, {})
    answer = ask(house, MetadataRequest([MetadataRequestTopic(name="orders")]), METADATA, 12)
    assert [one.node_id for one in answer.brokers] == [me]
    assert answer.controller_id == me


def test_a_coordinator_is_where_metadata_says_that_its_node_is() -> None:
    """A node may have several listeners: its first one may be for others."""
    house = House()
    let_another_lead(house)
    let_another_coordinate(house)
    topics = house.broker.broker.topics
    listeners = (("inside", ("inside.example", 1)), ("PLAINTEXT", ("outside.example", 2)))
    nodes = {**topics.image.nodes, 2: NodeInfo(2, 20, ("inside.example", 1), listeners=listeners)}
    topics._seen = topics.image.replaced(topics.image.revision + 1, {}, nodes)
    answer = ask(house, MetadataRequest([]), METADATA, 12)
    (found,) = ask(house, FindCoordinatorRequest(coordinator_keys=["g"]), FIND_COORDINATOR, 4).coordinators
    assert (found.host, found.port) == ("outside.example", 2)
    assert (2, "outside.example", 2) in {(one.node_id, one.host, one.port) for one in answer.brokers}


# -- share groups


def fetched(member: Member) -> tuple[Any, Any]:
    response = member.fetch()
    return response, response.responses[0].partitions[0]


def fetched_with_acks(member: Member) -> tuple[Any, Any]:
    response = member.fetch({0: [(0, 0, [ACCEPT])]})
    (answered,) = response.responses[0].partitions
    assert answered.acknowledge_error_code == REFUSED
    return response, answered


def acknowledged(member: Member) -> tuple[Any, Any]:
    response = member.acknowledge({0: [(0, 0, [ACCEPT])]})
    return response, response.responses[0].partitions[0]


@pytest.mark.parametrize("ask_for", [fetched, fetched_with_acks, acknowledged])
def test_a_share_group_is_told_the_leader_by_a_fetch_and_by_an_acknowledgement(
    ask_for: Callable[[Member], tuple[Any, Any]],
) -> None:
    house = ShareHouse()
    house.publish(b"a", b"b")
    member = Member(house)
    assert member.get(max_records=1) == offsets(0)
    let_another_lead(house)
    assert named(*ask_for(member)) == (REFUSED, (2, 7), SECOND)

"""Committed offsets: given back, deleted, reset, compared with the end; and what may not be committed."""

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import classic_groups as groups
from goqueue.wire.kafka.messages import offsets as wire_offsets
from tests.integration.clients import Client, ClientFailure, Consumer, Message
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.members import Crowd
from tests.integration.process import DEADLINE_S, Node
from tests.integration.topics import admin_client, end_offsets, group_offsets
from tests.integration.wire import Wire

PARTITIONS = 3
PER_PARTITION = 10
ALL = {(number, offset, b"%d" % offset) for number in range(PARTITIONS) for offset in range(PER_PARTITION)}


@pytest.fixture
def filled(node: Node, make_topic: CreateTopic) -> str:
    """A topic with ten messages in each partition."""
    topic = make_topic(PARTITIONS)
    messages = [Message(number, b"%d" % offset) for offset in range(PER_PARTITION) for number in range(PARTITIONS)]
    Confluent.producer(node.address).send(topic, messages)
    return topic


def received_from(node: Node, client: type[Client], group: str, topic: str, expected: set[object]) -> None:
    """A new member of the group receives exactly this."""
    with Crowd() as crowd:
        crowd.join("reader", lambda: client.member(node.address, group, [topic]))
        crowd.wait_for(lambda: crowd.received() >= expected, f"receipt of {sorted(map(str, expected))}")
        assert crowd.received() == expected


def commit(node: Node, client: type[Client], group: str, topic: str, offsets: dict[int, int]) -> None:
    """As a member of the group."""
    member = client.member(node.address, group, [topic])
    places = {(topic, number) for number in range(PARTITIONS)}
    try:
        while not has_committed(member, places, {(topic, number): offset for number, offset in offsets.items()}):
            member.poll()
        for number, offset in offsets.items():
            assert member.committed(topic, number) == offset
    finally:
        member.close()


def has_committed(member: Consumer, places: set[tuple[str, int]], offsets: dict[tuple[str, int], int]) -> bool:
    """A client that joins once more says so, and is to be polled and asked again."""
    if member.assignment() != places:
        return False
    try:
        member.commit(offsets)
    except ClientFailure as failure:
        if failure.code != Code.REBALANCE_IN_PROGRESS:
            raise
        return False
    return True


def test_the_next_member_starts_where_the_last_committed(
    node: Node, filled: str, group: str, client: type[Client]
) -> None:
    commit(node, client, group, filled, {0: 4, 1: PER_PARTITION})
    assert group_offsets(node, group) == {0: 4, 1: PER_PARTITION}
    rest = {place for place in ALL if place[0] == 2 or (place[0] == 0 and place[1] >= 4)}
    received_from(node, client, group, filled, set(rest))


def test_lag_is_the_high_watermark_less_the_committed_offset(
    node: Node, filled: str, group: str, client: type[Client]
) -> None:
    commit(node, client, group, filled, {0: 4, 1: PER_PARTITION, 2: 0})
    ends, committed = end_offsets(node, filled), group_offsets(node, group)
    assert {number: ends[number] - committed[number] for number in ends} == {0: 6, 1: 0, 2: 10}


def test_a_commit_beyond_the_end_is_taken_and_its_reader_begins_where_it_is_configured_to(
    node: Node, filled: str, group: str, client: type[Client]
) -> None:
    commit(node, client, group, filled, {0: PER_PARTITION + 7, 1: PER_PARTITION, 2: PER_PARTITION})
    assert group_offsets(node, group) == {0: PER_PARTITION + 7, 1: PER_PARTITION, 2: PER_PARTITION}
    received_from(node, client, group, filled, {place for place in ALL if place[0] == 0})


def raw_commit(wire: Wire, group: str, topic: str, offset: int, generation: int = -1, member_id: str = "") -> Code:
    partition = wire_offsets.OffsetCommitRequestPartition(0, offset)
    request = wire_offsets.OffsetCommitRequest(
        group, generation, member_id, topics=[wire_offsets.OffsetCommitRequestTopic(topic, partitions=[partition])]
    )
    answer = wire.call(request, 8, wire_offsets.OffsetCommitResponse)
    return Code(answer.topics[0].partitions[0].error_code)


def raw_committed(wire: Wire, group: str, topic: str) -> int:
    request = wire_offsets.OffsetFetchRequest(group, [wire_offsets.OffsetFetchRequestTopic(topic, [0])])
    answer = wire.call(request, 7, wire_offsets.OffsetFetchResponse)
    return answer.topics[0].partitions[0].committed_offset


@pytest.mark.parametrize("offset", [-1, -2])
def test_a_negative_commit_is_told_as_it_is_and_its_reader_begins_where_it_is_configured_to(
    node: Node, filled: str, group: str, offset: int, client: type[Client]
) -> None:
    """As KafkaJS resets offsets: -1 for the latest, -2 for the earliest."""
    commit(node, client, group, filled, dict.fromkeys(range(3), PER_PARTITION))
    with Wire(node) as wire:
        assert raw_commit(wire, group, filled, offset) is Code.NONE
        assert raw_committed(wire, group, filled) == offset
        assert raw_commit(wire, group, "no-such-topic", 0) is Code.UNKNOWN_TOPIC_OR_PARTITION
    received_from(node, client, group, filled, {place for place in ALL if place[0] == 0})


def join(wire: Wire, group: str, member_id: str = "") -> groups.JoinGroupResponse:
    protocol = groups.JoinGroupRequestProtocol("range", b"")
    request = groups.JoinGroupRequest(group, 30_000, 30_000, member_id, None, "consumer", [protocol])
    return wire.call(request, 5, groups.JoinGroupResponse)


def join_and_sync(wire: Wire, group: str, member_id: str = "") -> groups.JoinGroupResponse:
    joined = join(wire, group, member_id)
    if joined.error_code == Code.MEMBER_ID_REQUIRED:
        joined = join(wire, group, joined.member_id)
    assert joined.error_code == Code.NONE
    shares = [groups.SyncGroupRequestAssignment(joined.member_id, b"")]
    request = groups.SyncGroupRequest(group, joined.generation_id, joined.member_id, assignments=shares)
    assert wire.call(request, 3, groups.SyncGroupResponse).error_code == Code.NONE
    return joined


def test_a_commit_of_an_old_generation_or_a_stranger_never_moves_an_offset(node: Node, filled: str, group: str) -> None:
    """Also after the member has joined again, and on heartbeats."""
    with Wire(node) as wire:
        old = join_and_sync(wire, group)
        assert raw_commit(wire, group, filled, 3, old.generation_id, old.member_id) is Code.NONE
        new = join_and_sync(wire, group, old.member_id)
        assert new.generation_id > old.generation_id
        assert raw_commit(wire, group, filled, 5, old.generation_id, old.member_id) is Code.ILLEGAL_GENERATION
        assert raw_commit(wire, group, filled, 5, new.generation_id, "stranger") is Code.UNKNOWN_MEMBER_ID
        assert raw_commit(wire, group, filled, 5) is Code.UNKNOWN_MEMBER_ID  # not empty: nobody commits from outside
        heartbeat = groups.HeartbeatRequest(group, old.generation_id, old.member_id)
        assert wire.call(heartbeat, 3, groups.HeartbeatResponse).error_code == Code.ILLEGAL_GENERATION
        assert group_offsets(node, group) == {0: 3}
        assert raw_commit(wire, group, filled, 5, new.generation_id, new.member_id) is Code.NONE
    assert group_offsets(node, group) == {0: 5}


def test_a_group_that_is_reset_reads_again_from_there(
    node: Node, filled: str, group: str, client: type[Client]
) -> None:
    commit(node, client, group, filled, dict.fromkeys(range(PARTITIONS), PER_PARTITION))
    places = [TopicPartition(filled, number, 7 + number) for number in range(PARTITIONS)]
    wanted = [ConsumerGroupTopicPartitions(group, places)]
    admin_client(node.address).alter_consumer_group_offsets(wanted)[group].result(DEADLINE_S)
    received_from(node, client, group, filled, {place for place in ALL if place[1] >= 7 + place[0]})


def test_offsets_survive_kill_9(own_node: Node, make_topic: CreateTopic, group: str, client: type[Client]) -> None:
    topic = make_topic(PARTITIONS)
    messages = [Message(number, b"%d" % offset) for offset in range(PER_PARTITION) for number in range(PARTITIONS)]
    Confluent.producer(own_node.address).send(topic, messages)
    commit(own_node, client, group, topic, {0: 4, 1: PER_PARTITION})
    own_node.kill()
    own_node.start()
    assert group_offsets(own_node, group) == {0: 4, 1: PER_PARTITION}

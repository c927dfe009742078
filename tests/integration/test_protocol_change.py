"""A group that nobody is in may be joined by members of another protocol, and goes on where the others stopped. And the
first version of the new protocol, which no client of ours speaks.
"""

from collections.abc import Sequence

import pytest

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from tests.integration.clients import Client, ClientFailure, Message, Record
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.kafka_python_client import KafkaPython
from tests.integration.members import Crowd
from tests.integration.process import Node
from tests.integration.topics import group_offsets
from tests.integration.wire import Wire

PARTITIONS = 2
CLASSIC, CONSUMER = (Confluent, "range"), (Confluent, "consumer")
TURNED_AWAY = {23, -150}
"""INCONSISTENT_GROUP_PROTOCOL, and what librdkafka makes of GROUP_ID_NOT_FOUND: as Kafka answers them."""
Way = tuple[type[Client], str]
ORDERS: list[Sequence[Way]] = [
    (CLASSIC, CONSUMER, CLASSIC),
    (CONSUMER, CLASSIC, CONSUMER),
    (CONSUMER, (KafkaPython, "range"), CONSUMER),
    ((KafkaPython, "cooperative-sticky"), CONSUMER, (KafkaPython, "range")),
]


def send(node: Node, topic: str, value: bytes) -> set[tuple[int, int, bytes | None]]:
    messages = [Message(number, value) for number in range(PARTITIONS)]
    offsets = Confluent.producer(node.address).send(topic, messages)
    return {(one.partition, offset, one.value) for one, offset in zip(messages, offsets)}


def take(node: Node, topic: str, group: str, way: Way, count: int) -> set[tuple[int, int, bytes | None]]:
    """One member joins, receives so many messages, commits them and leaves."""
    client, assignor = way
    with Crowd() as crowd:
        crowd.join("only", lambda: client.member(node.address, group, [topic], assignor))
        crowd.wait_for(lambda: len(crowd.received()) >= count, "receipt of everything")
    return crowd.received()


@pytest.mark.parametrize("ways", ORDERS, ids=lambda ways: "-".join(f"{kind.name}.{way}" for kind, way in ways))
@pytest.mark.parametrize("restarts", [False, True], ids=["", "with restarts"])
def test_an_empty_group_changes_its_protocol_and_keeps_its_offsets(
    own_node: Node, make_topic: CreateTopic, group: str, ways: Sequence[Way], restarts: bool
) -> None:
    topic = make_topic(PARTITIONS)
    for number, way in enumerate(ways):
        sent = send(own_node, topic, b"%d" % number)
        assert take(own_node, topic, group, way, PARTITIONS) == sent, "each message once, by whichever protocol"
        assert group_offsets(own_node, group) == dict.fromkeys(range(PARTITIONS), number + 1)
        if restarts:
            own_node.kill()
            own_node.start()


@pytest.mark.parametrize(("inside", "outside"), [(CLASSIC, CONSUMER), (CONSUMER, CLASSIC)], ids=["classic", "consumer"])
def test_who_speaks_another_protocol_does_not_disturb_members(
    node: Node, make_topic: CreateTopic, group: str, inside: Way, outside: Way
) -> None:
    """It is turned away while they are there, and may come when they are gone."""
    topic = make_topic(PARTITIONS)
    with Crowd() as crowd:
        crowd.join("inside", lambda: inside[0].member(node.address, group, [topic], inside[1]))
        crowd.wait_shared(topic, PARTITIONS)
        stranger = outside[0].member(node.address, group, [topic], outside[1])
        refused = None
        records: list[Record] = []
        while refused is None:
            try:
                records += stranger.poll(1)
            except ClientFailure as failure:
                refused = failure.code
        assert refused in TURNED_AWAY
        assert records == []
        sent = send(node, topic, b"x")
        crowd.wait_for(lambda: crowd.received() >= sent, "receipt by those inside")
        assert len(crowd.owned("inside")) == PARTITIONS
    stranger.close()
    later = send(node, topic, b"y")
    assert take(node, topic, group, outside, PARTITIONS) == later


def test_a_member_of_the_first_version_is_given_its_id(node: Node, make_topic: CreateTopic, group: str) -> None:
    """As Java clients up to 3.9 join; from version 1 on a member brings its own."""
    topic = make_topic(PARTITIONS)
    join = ConsumerGroupHeartbeatRequest(
        group_id=group, rebalance_timeout_ms=10_000, subscribed_topic_names=[topic], topic_partitions=[]
    )
    with Wire(node) as wire:
        refused = wire.call(join, 1, ConsumerGroupHeartbeatResponse)
        assert Code(refused.error_code) is Code.INVALID_REQUEST
        joined = wire.call(join, 0, ConsumerGroupHeartbeatResponse)
        assert Code(joined.error_code) is Code.NONE
        assert joined.member_id
        assert joined.assignment is not None
        (assigned,) = joined.assignment.topic_partitions
        assert assigned.partitions == list(range(PARTITIONS))
        known = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=joined.member_id, member_epoch=joined.member_epoch
        )
        assert Code(wire.call(known, 0, ConsumerGroupHeartbeatResponse).error_code) is Code.NONE

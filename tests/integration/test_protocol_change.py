"""A group that nobody is in may be joined by members of another protocol, and goes on where the others stopped."""

from collections.abc import Sequence

import pytest

from tests.integration.clients import Client, ClientFailure, Message, Record
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.kafka_python_client import KafkaPython
from tests.integration.members import Crowd
from tests.integration.process import Node
from tests.integration.topics import group_offsets

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

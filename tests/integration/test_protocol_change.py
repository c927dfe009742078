"""A group changes between the classic protocol and that of KIP-848, empty or with members of both, and goes on where it
was. And the first version of the new protocol, which no client of ours speaks.
"""

from collections import Counter
from collections.abc import Sequence

import pytest

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from tests.integration.aiokafka_client import AioKafka
from tests.integration.clients import Client, Message
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.kafka_python_client import KafkaPython
from tests.integration.members import Crowd, Stream
from tests.integration.process import Node
from tests.integration.topics import group_offsets
from tests.integration.wire import Wire

PARTITIONS = 2
CLASSIC, CONSUMER = (Confluent, "range"), (Confluent, "consumer")
ROLLED_PARTITIONS, ROLLED_MEMBERS = 4, 2
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


@pytest.mark.parametrize(
    "old",
    [CLASSIC, (Confluent, "cooperative-sticky"), (KafkaPython, "range"), (AioKafka, "range")],
    ids=lambda way: f"{way[0].name}.{way[1]}",
)
def test_members_are_rolled_from_one_protocol_to_the_other_and_back_while_messages_flow(
    node: Node, make_topic: CreateTopic, group: str, old: Way
) -> None:
    """One process after the other is replaced, as in a deployment: nobody fails, and no message is passed over."""
    topic = make_topic(ROLLED_PARTITIONS)

    def join(crowd: Crowd, name: str, way: Way) -> None:
        crowd.join(name, lambda: way[0].member(node.address, group, [topic], way[1]))
        crowd.wait_shared(topic, ROLLED_PARTITIONS)

    with Crowd() as crowd, Stream(Confluent.producer(node.address), topic, ROLLED_PARTITIONS) as stream:
        for number in range(ROLLED_MEMBERS):
            join(crowd, f"old {number}", old)
        for before, after, way in (("old", "new", CONSUMER), ("new", "back", old)):
            for number in range(ROLLED_MEMBERS):
                join(crowd, f"{after} {number}", way)
                crowd.leave(f"{before} {number}")
                crowd.wait_shared(topic, ROLLED_PARTITIONS)
        stream.stop()
        crowd.wait_for(lambda: crowd.received() == stream.sent, "receipt of everything")
        assert crowd.gaps() == []
    ends = Counter(partition for partition, _, _ in stream.sent)
    assert group_offsets(node, group) == ends


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

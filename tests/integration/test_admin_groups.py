"""Groups through the admin clients: listed, described, deleted; their offsets read, reset, deleted."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from goqueue.model.codes import Code
from tests.integration.clients import Client, Message
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.kafka_python_client import admin as kafka_python_admin
from tests.integration.kafka_python_client import partition_of
from tests.integration.members import Crowd
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.topics import admin_client, group_offsets

PER_PARTITION = 5


@pytest.fixture
def admin(node: Node) -> AdminClient:
    return admin_client(node.address)


@pytest.fixture
def crowd(node: Node, make_topic: CreateTopic, group: str, client: type[Client]) -> Iterator[Crowd]:
    """Two members who have received everything of a topic and committed it."""
    topic = make_topic(2)
    messages = [Message(number, b"%d" % offset) for offset in range(PER_PARTITION) for number in range(2)]
    Confluent.producer(node.address).send(topic, messages)
    with Crowd() as made:
        for name in ("first", "second"):
            made.join(name, lambda: client.member(node.address, group, [topic]))
        made.wait_shared(topic, 2)
        made.wait_for(lambda: len(made.received()) == 2 * PER_PARTITION, "receipt")
        yield made


def leave_all(crowd: Crowd) -> None:
    """One by one: aiokafka says nothing when it is closed in the middle of a rebalance."""
    crowd.leave("first")
    crowd.wait_for(lambda: len(crowd.owned("second")) == 2, "the inheritance")
    crowd.leave("second")


def state(admin: AdminClient, group: str) -> ConsumerGroupState:
    found = admin.describe_consumer_groups([group])[group].result(DEADLINE_S).state
    assert isinstance(found, ConsumerGroupState)
    return found


def is_described_as_shared(admin: AdminClient, group: str, crowd: Crowd) -> bool:
    """Asked again until it is so: a member may join anew after a rebalance that seemed to be the last."""
    seen = admin.describe_consumer_groups([group])[group].result(DEADLINE_S)
    shares = {
        frozenset((one.topic, one.partition) for one in each.assignment.topic_partitions) for each in seen.members
    }
    described = (seen.state, seen.partition_assignor, shares)
    return described == (ConsumerGroupState.STABLE, "range", {crowd.owned("first"), crowd.owned("second")})


def delete(admin: AdminClient, group: str) -> Code:
    try:
        admin.delete_consumer_groups([group])[group].result(DEADLINE_S)
    except KafkaException as error:
        return Code(error.args[0].code())
    return Code.NONE


def test_a_group_is_listed_described_and_deleted_when_it_is_empty(
    node: Node, admin: AdminClient, crowd: Crowd, group: str
) -> None:
    listed = admin.list_consumer_groups().result(DEADLINE_S)
    assert (listed.errors, group in {one.group_id for one in listed.valid}) == ([], True)
    wait_until(lambda: is_described_as_shared(admin, group, crowd), "the end of the rebalance")
    assert delete(admin, group) is Code.NON_EMPTY_GROUP
    leave_all(crowd)
    assert state(admin, group) is ConsumerGroupState.EMPTY
    assert group_offsets(node, group) == {0: PER_PARTITION, 1: PER_PARTITION}
    assert delete(admin, group) is Code.NONE
    assert delete(admin, group) is Code.GROUP_ID_NOT_FOUND
    assert group not in {one.group_id for one in admin.list_consumer_groups().result(DEADLINE_S).valid}
    assert group_offsets(node, group) == {}


def test_offsets_of_a_group_are_listed_reset_and_deleted(
    node: Node, admin: AdminClient, crowd: Crowd, group: str
) -> None:
    """Not under the feet of those who read."""
    ((topic, _),) = crowd.owned("first")
    with kafka_python_admin(node.address) as other:
        places = [partition_of(topic, number) for number in range(2)]
        assert set(codes(other.delete_group_offsets(group, places))) == {Code.GROUP_SUBSCRIBED_TO_TOPIC}
        leave_all(crowd)
        asked = [ConsumerGroupTopicPartitions(group)]
        listed = admin.list_consumer_group_offsets(asked)[group].result(DEADLINE_S).topic_partitions
        assert {(one.topic, one.partition, one.offset) for one in listed} == {
            (topic, number, PER_PARTITION) for number in range(2)
        }
        other.reset_group_offsets(group, {places[0]: 2, places[1]: 0})
        assert group_offsets(node, group) == {0: 2, 1: 0}
        assert set(codes(other.delete_group_offsets(group, places[:1]))) == {Code.NONE}
    assert group_offsets(node, group) == {1: 0}


def codes(answer: dict[Any, Any]) -> list[Code]:
    return [Code(error.errno) for error in answer.values()]

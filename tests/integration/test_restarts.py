"""Clients that live longer than the node: it comes back under the same address, name and ids, and they go on."""

from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.integration.clients import Message
from tests.integration.confluent_client import QUIET, Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node
from tests.integration.topics import group_offsets

RESTARTS = 5


def result(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(DEADLINE_S)


def identity(admin: AdminClient) -> tuple[Any, ...]:
    cluster = admin.describe_cluster().result(DEADLINE_S)
    return cluster.cluster_id, cluster.controller.id, [(one.id, one.host, one.port) for one in cluster.nodes]


def test_one_admin_client_asks_everything_through_many_restarts(own_node: Node, group: str) -> None:
    """Of the controller, of a group's coordinator and of any node, each as the first thing after a restart."""
    admin = AdminClient({"bootstrap.servers": own_node.address, **QUIET})
    before = identity(admin)
    for number in range(RESTARTS):
        topic = NewTopic(f"topic-{number}", 1, 1)
        asks: list[Callable[[], object]] = [
            partial(lambda one: result(admin.create_topics([one])), topic),
            lambda: result(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])),
            lambda: admin.list_consumer_groups().result(DEADLINE_S),
        ]
        if number % 2:
            own_node.kill()
        else:
            own_node.stop()
        own_node.start()
        for ask in asks[number % len(asks) :] + asks[: number % len(asks)]:
            ask()
        assert identity(admin) == before
    assert set(admin.list_topics(timeout=DEADLINE_S).topics) == {f"topic-{number}" for number in range(RESTARTS)}


def test_one_transactional_producer_sends_offsets_through_many_restarts(
    own_node: Node, make_topic: CreateTopic, group: str
) -> None:
    source, topic = make_topic(1), make_topic(1)
    Confluent.producer(own_node.address).send(source, [Message(0, b"x")] * RESTARTS)
    producer = Confluent.producer(own_node.address, transactional_id="long-lived")
    for number in range(RESTARTS):
        producer.begin()
        producer.send(topic, [Message(0, b"%d" % number)])
        own_node.kill()
        own_node.start()
        producer.send_offsets({(source, 0): number + 1}, group)
        producer.commit()
        producer.begin()  # is not let in before the offsets of the one before are there
        producer.send_offsets({(source, 0): number + 1}, group)
        assert group_offsets(own_node, group) == {0: number + 1}
        producer.abort()
    producer.close()

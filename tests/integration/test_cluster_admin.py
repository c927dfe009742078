"""Kafka's admin tools through any node of a real cluster, and a cluster that is started again on its data."""

import signal
import socket
from pathlib import Path
from typing import Any

from confluent_kafka import ElectionType, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.integration.dev_cluster import DevCluster
from tests.integration.process import DEADLINE_S, own_host, wait_until

LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
PARTITIONS = 3
MESSAGES = 4
"""In each partition."""


def made(admin: AdminClient, topic: str) -> list[TopicPartition]:
    """A topic with messages, in sync on all nodes."""
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(DEADLINE_S)

    def is_in_sync() -> bool:
        found = admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions.values()
        return len(found) == PARTITIONS and all(sorted(one.isrs) == [1, 2, 3] for one in found)

    wait_until(is_in_sync, f"{topic} in sync")
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def ends(admin: AdminClient, partitions: list[TopicPartition], spec: Any) -> list[int]:
    """As Kafka's own Admin does: a node that does not answer for a moment, on a busy machine, is no leader to be told
    of, and whoever asks is to ask again. confluent-kafka leaves that to its caller.
    """
    found: list[int] = []

    def is_told() -> bool:
        asked = admin.list_offsets(dict.fromkeys(partitions, spec))
        try:
            found[:] = [asked[each].result(DEADLINE_S).offset for each in partitions]
        except KafkaException as error:
            if error.args[0].code() != KafkaError.LEADER_NOT_AVAILABLE:
                raise
            return False
        return True

    wait_until(is_told, "answer of all leaders")
    return found


def look_and_change(via: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": via})
    described = admin.describe_cluster().result(DEADLINE_S)
    assert sorted(node.id for node in described.nodes) == [1, 2, 3]
    assert described.controller.id in {1, 2, 3}
    partitions = made(admin, topic)
    leaders = {one.leader for one in admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions.values()}
    assert leaders == {1, 2, 3}
    producer = Producer({"bootstrap.servers": via, "acks": "all"})
    for number in range(MESSAGES * PARTITIONS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(DEADLINE_S) == 0
    assert ends(admin, partitions, LATEST) == [MESSAGES] * PARTITIONS
    cut = admin.delete_records([TopicPartition(topic, each.partition, 1) for each in partitions])
    assert [cut[each].result(DEADLINE_S).low_watermark for each in partitions] == [1] * PARTITIONS
    assert ends(admin, partitions, EARLIEST) == [1] * PARTITIONS
    entry = ConfigEntry("retention.ms", "90000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    def is_changed() -> bool:
        (asked,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        return bool(asked.result(DEADLINE_S)["retention.ms"].value == "90000000")

    wait_until(is_changed, "the change on the node that is asked")
    elected = admin.elect_leaders(ElectionType.PREFERRED, partitions).result(DEADLINE_S)
    assert elected.keys() == set(partitions)
    codes = {None if error is None else error.code() for error in elected.values()}
    assert codes <= {None, KafkaError.ELECTION_NOT_NEEDED}, elected
    admin.delete_topics([topic])[topic].result(DEADLINE_S)


def test_admin_tools_work_through_any_node_and_what_is_stored_is_there_after_a_second_start(tmp_path: Path) -> None:
    cluster = DevCluster(tmp_path).start()
    try:
        facts = cluster.facts()
        assert [set(node) >= {"id", "pid", "kafka", "http", "grpc"} for node in facts["nodes"]] == [True] * 3
        assert len(facts["etcd"]) == 1
        for number, via in enumerate(cluster.kafka):
            look_and_change(via, f"admin-{number}")
        kept = made(AdminClient({"bootstrap.servers": cluster.kafka[0]}), "kept")
        producer = Producer({"bootstrap.servers": cluster.kafka[0], "acks": "all"})
        for each in kept:
            producer.produce("kept", b"x", partition=each.partition)
        assert producer.flush(DEADLINE_S) == 0
        cluster.signal(signal.SIGTERM)
        assert cluster.wait() == 0, cluster.said()
        cluster.start()
        assert [node["id"] for node in cluster.nodes] == [1, 2, 3]
        for via in cluster.kafka:
            assert ends(AdminClient({"bootstrap.servers": via}), kept, LATEST) == [1] * PARTITIONS
    finally:
        cluster.clean_up()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    cluster = DevCluster(tmp_path)
    cluster.host = own_host()
    cluster._command[cluster._command.index("--host") + 1] = cluster.host
    with socket.create_server((cluster.host, 9093)):
        try:
            cluster.start()
        except AssertionError as error:
            said = str(error)
        else:
            raise AssertionError("it has started")
        finally:
            cluster.clean_up()
    assert f"{cluster.host}:9093" in said
    assert "Traceback" not in cluster.words()

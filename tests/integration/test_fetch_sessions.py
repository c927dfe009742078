"""Fetch sessions of a client that uses them, kafka-python: what it reads, and what the node says of its session."""

import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.kafka_python_client import QUIET, KafkaConsumer, KafkaProducer, partition_of
from tests.integration.process import DEADLINE_S, Node, wait_until

PARTITIONS = 30
TOLD = re.compile(r"^goqueue_broker_(fetch_sessions|fetch_session_partitions)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


def told(node: Node) -> dict[str, int]:
    with urllib.request.urlopen(f"{node.url}/metrics", timeout=DEADLINE_S) as page:
        return {name: round(float(number)) for name, number in TOLD.findall(page.read().decode())}


@contextmanager
def consumer_of(node: Node, topic: str) -> Iterator[Any]:
    consumer = KafkaConsumer(bootstrap_servers=node.address, auto_offset_reset="earliest", group_id=None, **QUIET)
    consumer.assign([partition_of(topic, number) for number in range(PARTITIONS)])
    try:
        yield consumer
    finally:
        consumer.close()


def publish(node: Node, topic: str, values: dict[int, bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=node.address, **QUIET)
    for number, value in values.items():
        producer.send(topic, value, partition=number).get(DEADLINE_S)
    producer.close()


def read(consumer: Any, count: int) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}

    def has_all() -> bool:
        for place, records in consumer.poll(200).items():
            found.setdefault(place.partition, []).extend(record.value for record in records)
        return sum(map(len, found.values())) >= count

    wait_until(has_all, "all that was published is read")
    return found


def test_a_consumer_names_its_partitions_once_and_reads_all_that_comes(
    own_node: Node, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(PARTITIONS)
    first = {number: b"first %d" % number for number in range(PARTITIONS)}
    publish(own_node, topic, first)
    with consumer_of(own_node, topic) as consumer:
        assert read(consumer, PARTITIONS) == {number: [value] for number, value in first.items()}
        for turn in range(5):
            later = {number: b"%d of %d" % (turn, number) for number in (turn, turn + 7, PARTITIONS - 1)}
            publish(own_node, topic, later)
            assert read(consumer, len(later)) == {number: [value] for number, value in later.items()}
        consumer.poll(100)
        assert told(own_node) == {"fetch_sessions": 1, "fetch_session_partitions": PARTITIONS}
    is_gone = {"fetch_sessions": 0, "fetch_session_partitions": 0}
    wait_until(lambda: told(own_node) == is_gone, "the session is gone with its connection")


def test_a_consumer_goes_on_after_its_node_was_killed(own_node: Node, make_topic: Callable[..., str]) -> None:
    topic = make_topic(PARTITIONS)
    publish(own_node, topic, {3: b"before"})
    with consumer_of(own_node, topic) as consumer:
        assert read(consumer, 1) == {3: [b"before"]}
        own_node.kill()
        own_node.start()
        publish(own_node, topic, {3: b"after", 4: b"too"})
        assert read(consumer, 2) == {3: [b"after"], 4: [b"too"]}

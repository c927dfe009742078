"""Fetch sessions of clients that use them, kafka-python and Kafka's own: what is read, and what the node says of it."""

import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]

from tests.integration.kafka_python_client import QUIET, partition_of
from tests.integration.process import DEADLINE_S, Node, wait_until
from tools import kafka_tools
from tools.kafka_jars import NoJars, find_jars

PARTITIONS = 30
READ = """
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

class Read {
    public static void main(String[] asked) {
        Map<String, Object> settings = Map.of("bootstrap.servers", asked[0], "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var places = new ArrayList<TopicPartition>();
            for (int number = 0; number < Integer.parseInt(asked[2]); number++)
                places.add(new TopicPartition(asked[1], number));
            consumer.assign(places);
            for (int left = Integer.parseInt(asked[3]); left > 0; )
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.value());
                    left--;
                }
        }
    }
}
"""
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


@pytest.fixture(scope="module")
def jars() -> Path:
    """As for Kafka's tools: where they cannot be had, the report says why."""
    try:
        found = find_jars(kafka_tools.TOOLS, kafka_tools.VERSION)
    except NoJars as error:
        pytest.skip(f"Kafka's own consumer is not tried: {error}")
    if shutil.which("javac") is None:
        pytest.skip("Kafka's own consumer is not tried: this Java has no compiler")
    return found


def test_kafkas_own_consumer_names_topics_by_id_and_reads_all_that_comes(
    own_node: Node, make_topic: Callable[..., str], jars: Path, tmp_path: Path
) -> None:
    topic = make_topic(PARTITIONS)
    first = {number: b"first %d" % number for number in range(PARTITIONS)}
    later = {number: b"later %d" % number for number in (0, 7, PARTITIONS - 1)}
    publish(own_node, topic, first)
    program = tmp_path / "Read.java"
    program.write_text(READ)
    asked = [own_node.address, topic, str(PARTITIONS), str(len(first) + len(later))]
    command = ["java", *kafka_tools.JVM, "-cp", f"{jars}/*", str(program), *asked]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consumer:
        try:
            expected = {"fetch_sessions": 1, "fetch_session_partitions": PARTITIONS}
            wait_until(lambda: told(own_node) == expected, "it has a session with all partitions")
            publish(own_node, topic, later)
            values, errors = consumer.communicate(timeout=DEADLINE_S)
        finally:
            consumer.kill()
    assert sorted(values.splitlines()) == sorted([*first.values(), *later.values()]), errors.decode()

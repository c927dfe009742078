"""Three real nodes and a real etcd: what clients see while one of them is killed, stopped, or while etcd is away."""

import json
import os
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.integration.dev_cluster import DevCluster
from tests.integration.process import wait_until

DEADLINE_S = 60.0
PARTITIONS = 6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """Whoever was killed comes back; each test waits until all are in sync before it begins."""
    running = DevCluster(tmp_path_factory.mktemp("cluster"), 3, "--restart").start_balanced()
    yield running
    running.clean_up()


class Topic:
    def __init__(self, cluster: DevCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.servers = ",".join(cluster.kafka)
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        wait_until(lambda: len(self.admin.list_topics(timeout=DEADLINE_S).brokers) == 3, "all nodes")
        self.admin.create_topics([NewTopic(name, PARTITIONS, 3)])[name].result(DEADLINE_S)
        self.wait_in_sync()

    def placements(self) -> dict[int, tuple[int, list[int]]]:
        """Leader and in-sync replicas of each partition."""
        topic = self.admin.list_topics(self.name, timeout=DEADLINE_S).topics[self.name]
        return {number: (one.leader, sorted(one.isrs)) for number, one in topic.partitions.items()}

    def wait_in_sync(self) -> None:
        def is_in_sync() -> bool:
            placed = self.placements()
            return len(placed) == PARTITIONS and all(isr == [1, 2, 3] for _, isr in placed.values())

        wait_until(is_in_sync, f"{self.name} in sync on all nodes")

    def read(self, group: str = "", via: str | None = None) -> "Reading":
        return Reading(via or self.servers, self.name, group or f"{self.name}-readers")


class Writing:
    """A producer that goes on until it is told to stop, and what was acknowledged to it."""

    def __init__(self, topic: Topic, via: str | None = None) -> None:
        settings: dict[str, Any] = {
            "log_level": 0,
            "bootstrap.servers": via or topic.servers,
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": int(DEADLINE_S * 1000),
        }
        self._producer = Producer(settings)
        self._topic = topic.name
        self._stop = threading.Event()
        self.sent = 0
        self.acked: dict[tuple[int, int], bytes] = {}
        self.failed: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            value = b"%d" % self.sent
            self._producer.produce(self._topic, value, partition=self.sent % PARTITIONS, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0.01)
        self._producer.flush(DEADLINE_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.acked[partition, offset] = value

    def wait_for_more(self, more: int = 300) -> None:
        begin = len(self.acked)
        wait_until(lambda: len(self.acked) >= begin + more, f"{more} more acknowledgements")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


class Reading:
    def __init__(self, servers: str, topic: str, group: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])
        self.found: dict[tuple[int, int], bytes] = {}

    def take(self) -> None:
        for message in self._consumer.consume(1000, 0.2):
            if message.error() is not None:
                continue
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            assert self.found.setdefault((partition, offset), value) == value

    def until(self, count: int) -> "Reading":
        def is_done() -> bool:
            self.take()
            return len(self.found) >= count

        wait_until(is_done, f"{count} messages")
        return self

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


def assert_nothing_lost(topic: Topic, *writings: Writing) -> None:
    acked: dict[tuple[int, int], bytes] = {}
    for writing in writings:
        assert writing.failed == []
        assert len(writing.acked) == writing.sent
        acked |= writing.acked
    reading = topic.read(f"{topic.name}-check").until(len(acked))
    reading.close()
    assert reading.found == acked


def post(url: str, body: object) -> Any:
    """None: not now, ask again."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = error.read().decode()
        assert error.code == 503, said
        return None


def publish(url: str, value: str) -> None:
    body = {"messages": [{"key": value, "value": value}]}
    wait_until(lambda: post(url, body) is not None, f"{value} published")


def test_every_node_takes_and_gives_every_message(cluster: DevCluster) -> None:
    topic = Topic(cluster, "through-each")
    leaders = {leader for leader, _ in topic.placements().values()}
    assert leaders == {1, 2, 3}
    # Copies that are made while a node starts are not taken for those of others.
    assert list(cluster.directory.glob("data/node-*/aside/*")) == []
    writings = [Writing(topic, via) for via in cluster.kafka]
    for writing in writings:
        writing.wait_for_more(60)
    for writing in writings:
        writing.stop()
    acked = {place: value for writing in writings for place, value in writing.acked.items()}
    assert len(acked) == sum(writing.sent for writing in writings)
    for number, via in enumerate(cluster.kafka):
        reading = topic.read(f"through-{number}", via).until(len(acked))
        reading.close()
        assert reading.found == acked


@pytest.mark.parametrize("node_id", [1, 2])
def test_a_killed_node_costs_nothing_that_was_acknowledged_and_comes_back(cluster: DevCluster, node_id: int) -> None:
    topic = Topic(cluster, f"killed-{node_id}")
    writing = Writing(topic)
    try:
        writing.wait_for_more()
        before = cluster.pid_of(node_id)
        cluster.kill(node_id)
        writing.wait_for_more()
        wait_until(lambda: cluster.pid_of(node_id) != before, "restart")
        topic.wait_in_sync()
        writing.wait_for_more()
    finally:
        writing.stop()
    assert_nothing_lost(topic, writing)


def test_a_node_that_stops_in_order_hands_its_partitions_over(cluster: DevCluster) -> None:
    topic = Topic(cluster, "stopped")
    writing = Writing(topic)
    try:
        writing.wait_for_more()
        before = cluster.pid_of(2)
        os.kill(before, signal.SIGTERM)
        wait_until(lambda: 2 not in {leader for leader, _ in topic.placements().values()}, "other leaders")
        writing.wait_for_more()
        wait_until(lambda: cluster.pid_of(2) != before, "restart")
        topic.wait_in_sync()
    finally:
        writing.stop()
    assert_nothing_lost(topic, writing)


def test_while_etcd_is_away_messages_are_taken_and_given(cluster: DevCluster) -> None:
    topic = Topic(cluster, "without-etcd")
    writing = Writing(topic)
    (etcd,) = cluster.facts()["etcd_pids"]
    pause = threading.Event()
    try:
        writing.wait_for_more()
        os.kill(etcd, signal.SIGSTOP)
        pause.wait(6)  # longer than a session lasts
        writing.wait_for_more()
        topic.read("during-the-outage").until(300).close()
        os.kill(etcd, signal.SIGCONT)
        writing.wait_for_more()
    finally:
        os.kill(etcd, signal.SIGCONT)
        writing.stop()
    topic.wait_in_sync()
    assert_nothing_lost(topic, writing)


def test_a_group_goes_on_where_it_was_when_its_coordinator_is_killed(cluster: DevCluster) -> None:
    topic = Topic(cluster, "group")
    writing = Writing(topic)
    writing.wait_for_more(600)
    writing.stop()
    first = topic.read("travellers").until(200)
    first.commit()
    taken = dict(first.found)
    first.close()
    coordinator = topic.admin.describe_consumer_groups(["travellers"])["travellers"].result(DEADLINE_S).coordinator
    cluster.kill(coordinator.id)
    second = topic.read("travellers").until(len(writing.acked) - len(taken))
    second.close()
    assert second.found == {place: value for place, value in writing.acked.items() if place not in taken}


def test_http_publishes_and_receives_whichever_node_is_asked(cluster: DevCluster) -> None:
    topic = Topic(cluster, "over-http")
    urls = [f"http://{node['http']}" for node in cluster.nodes]
    sent = set()
    for number in range(30):
        value = f"m{number}"
        publish(f"{urls[number % 3]}/v1/topics/{topic.name}/messages", value)
        sent.add(value)
    found: list[str] = []

    def is_done() -> bool:
        for url in urls:
            asked = {"group": "http-workers", "max_messages": 10, "wait": "200ms"}
            answer = post(f"{url}/v1/topics/{topic.name}/receive", asked)
            found.extend(message["value"] for message in (answer or {"messages": []})["messages"])
        return len(found) >= len(sent)

    wait_until(is_done, "all messages")
    assert sorted(found) == sorted(sent)

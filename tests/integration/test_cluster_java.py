"""Kafka's own Java clients in a cluster whose nodes are killed and restarted: producers, transactions, both kinds of
groups, a share group and the admin client go on by themselves, and nothing that they were told is lost or doubled.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.dev_cluster import DevCluster
from tests.integration.process import Late, wait_until
from tests.integration.test_cluster import PARTITIONS, Topic
from tools.java_users import JavaUsers, Told, java_jars
from tools.kafka_jars import NoJars

WRITERS, READERS = ("producer", "transactions", "admin"), ("classic", "consumer", "share", "copier")
MORE = 40
Place = tuple[int, int]


@pytest.fixture(scope="module", autouse=True)
def jars() -> Path:
    """Where they cannot be had, the report says why. What goes wrong with them at hand is a failure."""
    try:
        return java_jars()
    except NoJars as error:
        pytest.skip(f"Kafka's Java clients are not tried: {error}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = DevCluster(tmp_path_factory.mktemp("cluster"), 3, "--restart").start()
    yield running
    running.clean_up()


class Java:
    """Writers and readers of a topic."""

    def __init__(self, cluster: DevCluster, name: str, directory: Path) -> None:
        self.topics = [Topic(cluster, each) for each in (name, f"{name}-transactions", f"{name}-copy")]
        self.cluster, self.name = cluster, name
        self.errors = directory / "java.log"
        self.told: list[Told] = []
        users = (*WRITERS, *READERS)
        self._users = JavaUsers(users, cluster.kafka, name, range(PARTITIONS), self.errors, self.told.append)

    def of(self, user: str, *events: str, topic: str | None = None) -> list[Told]:
        return [
            one for one in list(self.told) if one.user == user and one.event in events and topic in (None, one.topic)
        ]

    def failures(self) -> list[Told]:
        return [one for one in list(self.told) if one.event == "failed"]

    def wait_for_more(self, more: int = MORE) -> None:
        """Each of them was answered again and again, or one has failed."""
        least = {"admin": min(more, 2), "transactions": min(more, MORE // 4)}
        before = self._counts()

        def silent() -> list[str]:
            now = self._counts()
            return [user for user in (*WRITERS, *READERS) if now[user] < before[user] + least.get(user, more)]

        try:
            wait_until(lambda: not silent() or bool(self.failures()), "all users answered again")
        except Late as late:
            raise AssertionError(f"{late}: {silent()} are silent; {self.errors.read_text('utf-8')[-2000:]}") from None
        assert self.failures() == []

    def _counts(self) -> Counter[str]:
        return Counter(one.user for one in list(self.told))

    def wait_in_sync(self) -> None:
        for topic in self.topics:
            topic.wait_in_sync()

    def finish(self) -> None:
        """Writers get their last answers; then all is read."""
        self._users.end_writers()

        def is_done() -> bool:
            return all(self.of(user, "ended") for user in WRITERS) and self.is_read()

        wait_until(lambda: is_done() or bool(self.failures()), "all that was written is read")
        assert self.end() == 0

    def end(self) -> int:
        return self._users.end()

    def acked(self) -> dict[Place, str]:
        return {(one.partition, one.offset): one.value for one in self.of("producer", "sent")}

    def found(self, user: str, topic: str) -> dict[Place, str]:
        found: dict[Place, str] = {}
        for one in self.of(user, "read", topic=topic):
            assert found.setdefault((one.partition, one.offset), one.value) == one.value, one
        return found

    def is_read(self) -> bool:
        """By every reader, all that was acknowledged."""
        acked = self.acked()
        committed = len(self.of("transactions", "committed")) * PARTITIONS
        wanted = {self.name: len(acked), f"{self.name}-transactions": committed, f"{self.name}-copy": len(acked)}
        streams = all(
            len(self.found(user, topic)) >= count for topic, count in wanted.items() for user in ("classic", "consumer")
        )
        return streams and self.found("share", self.name).keys() >= acked.keys()

    def check(self) -> None:
        assert self.failures() == []
        acked = self.acked()
        assert len(acked) == len(self.of("producer", "sent"))
        numbers = [one.value for one in self.of("transactions", "committed")]
        assert len(set(numbers)) == len(numbers) > 0
        whole = sorted(numbers * PARTITIONS)
        for user in ("classic", "consumer"):
            assert self.found(user, self.name) == acked
            assert sorted(self.found(user, f"{self.name}-transactions").values()) == whole
            assert sorted(self.found(user, f"{self.name}-copy").values()) == sorted(acked.values())
        assert self.found("share", self.name) == acked


@pytest.fixture
def java(cluster: DevCluster, tmp_path: Path) -> Iterator[Java]:
    running = Java(cluster, "java", tmp_path)
    yield running
    running.end()


def restarted(java: Java, node_id: int, number: int) -> None:
    """All users go on while it is away, and it comes back."""
    before = java.cluster.pid_of(node_id)
    os.kill(before, number)
    java.wait_for_more()
    wait_until(lambda: java.cluster.pid_of(node_id) != before, f"restart of node {node_id}")
    java.wait_in_sync()
    java.wait_for_more()


@pytest.mark.second_layer
def test_java_goes_on_when_a_leader_is_killed_and_while_nodes_are_restarted_one_after_the_other(java: Java) -> None:
    java.wait_for_more(1)
    java.wait_for_more()
    leader, _ = java.topics[0].placements()[0]
    restarted(java, leader, signal.SIGKILL)
    for node_id in (1, 2, 3):
        restarted(java, node_id, signal.SIGTERM)
    java.finish()
    java.check()

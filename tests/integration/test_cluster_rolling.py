"""A rolling restart of three real nodes under load: clients of Kafka, HTTP, SQS and gRPC notice nothing but retries
that their libraries make themselves, and nothing that they were told is lost.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from grpc import StatusCode

from goqueue.client import Producer
from goqueue.client.errors import ConnectionLost
from goqueue.client.grpc import GrpcClient, GrpcRefused
from tests.integration.dev_cluster import DevCluster
from tests.integration.process import DEADLINE_S, wait_until
from tests.integration.test_cluster import Reading, Topic, Writing, assert_nothing_lost


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = DevCluster(tmp_path_factory.mktemp("cluster"), 3, "--restart").start()
    yield running
    running.clean_up()


class User:
    """Somebody who sends one message after the other, in a thread, until told to stop. An error ends it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_over = threading.Event()
        self.told: list[str] = []
        """What was acknowledged."""
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def start(self) -> "User":
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  told by `stop`
            self.error = error

    def work(self) -> None:
        raise NotImplementedError

    def next_value(self) -> str:
        return f"{self.name}-{len(self.told)}"

    def wait_for_more(self, more: int = 20) -> None:
        begin = len(self.told)
        wait_until(lambda: len(self.told) >= begin + more or self.error is not None, f"{more} more of {self.name}")

    def stop(self) -> None:
        self.is_over.set()
        self._thread.join()
        if self.error is not None:
            raise AssertionError(f"{self.name} was told after {len(self.told)} messages: {self.error!r}")


class OfOurClient(User):
    def __init__(self, cluster: DevCluster, topic: str) -> None:
        super().__init__("client")
        self._servers, self._topic = cluster.kafka, topic

    def work(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        async with Producer(self._servers) as producer:
            while not self.is_over.is_set():
                value = self.next_value()
                await producer.send(self._topic, value.encode(), key=value.encode())
                self.told.append(value)


class OfHttp(User):
    """Goes to the next address when it cannot connect: then nothing was sent. Every other error is one."""

    def __init__(self, cluster: DevCluster, topic: str) -> None:
        super().__init__("http")
        self._addresses = [node["http"] for node in cluster.nodes]
        self._topic = topic

    def work(self) -> None:
        with httpx.Client(timeout=DEADLINE_S) as client:
            while not self.is_over.is_set():
                value = self.next_value()
                body = {"messages": [{"key": value, "value": value}]}
                try:
                    answer = client.post(f"http://{self._addresses[0]}/v1/topics/{self._topic}/messages", json=body)
                except httpx.ConnectError:
                    self._addresses.append(self._addresses.pop(0))
                    continue
                assert answer.status_code == 200, answer.text
                assert not answer.json()["results"][0].get("error"), answer.text
                self.told.append(value)


class OfGrpc(User):
    """Tries again what is UNAVAILABLE, as libraries do that are told so by a retry policy; at the next address, as
    those do that are given several. It may have been done all the same: its messages may be there twice.
    """

    def __init__(self, cluster: DevCluster, topic: str) -> None:
        super().__init__("grpc")
        self._addresses = [node["grpc"] for node in cluster.nodes]
        self._topic = topic

    def work(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        while not self.is_over.is_set():
            async with GrpcClient(self._addresses[0], timeout_s=DEADLINE_S) as client:
                try:
                    while not self.is_over.is_set():
                        value = self.next_value()
                        await client.publish(self._topic, value.encode(), key=value.encode())
                        self.told.append(value)
                except ConnectionLost:
                    pass
                except GrpcRefused as refused:
                    if refused.status is not StatusCode.UNAVAILABLE:
                        raise
            self._addresses.append(self._addresses.pop(0))


class OfSqs(User):
    """boto3 knows one address: that of the first node, which is restarted too."""

    def __init__(self, cluster: DevCluster, topic: str) -> None:
        super().__init__("sqs")
        self.sqs = boto3.client(
            "sqs",
            endpoint_url=f"http://{cluster.nodes[0]['http']}",
            region_name="local",
            aws_access_key_id="x",
            aws_secret_access_key="x",
            config=Config(retries={"mode": "standard", "max_attempts": 12}),
        )
        self.url = self.sqs.create_queue(QueueName=topic)["QueueUrl"]

    def work(self) -> None:
        while not self.is_over.is_set():
            value = self.next_value()
            self.sqs.send_message(QueueUrl=self.url, MessageBody=value)
            self.told.append(value)

    def drain(self) -> set[str]:
        """All that the queue holds."""
        found: set[str] = set()

        def is_done() -> bool:
            answer = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in answer.get("Messages", ()):
                found.add(message["Body"])
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
            return found >= set(self.told)

        wait_until(is_done, "all messages of the queue")
        return found


class Group:
    """A member that reads on while nodes come and go."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            self.reading.take()

    def stop_at(self, is_done: Callable[[], bool]) -> None:
        try:
            wait_until(is_done, "all messages in the group")
        finally:
            self._is_over.set()
            self._thread.join()
            self.reading.close()


def restart(cluster: DevCluster, node_id: int, topics: list[Topic]) -> None:
    before = cluster.pid_of(node_id)
    os.kill(before, signal.SIGTERM)
    wait_until(lambda: cluster.pid_of(node_id) != before, f"restart of node {node_id}")
    for topic in topics:
        topic.wait_in_sync()


def test_a_rolling_restart_shows_clients_nothing_but_retries(cluster: DevCluster) -> None:
    kafka, other = Topic(cluster, "rolling"), Topic(cluster, "rolling-others")
    writing = Writing(kafka)
    group = Group(kafka.read("rolling-group"))
    sqs = OfSqs(cluster, "rolling-queue")
    users: list[User] = [each(cluster, other.name) for each in (OfOurClient, OfHttp, OfGrpc)]
    users.append(sqs)
    for user in users:
        user.start()
    try:
        for node_id in (1, 2, 3):
            for user in users:
                user.wait_for_more()
            writing.wait_for_more(100)
            restart(cluster, node_id, [kafka, other])
        for user in users:
            user.wait_for_more()
    finally:
        writing.stop()
        group.stop_at(lambda: len(group.reading.found) >= len(writing.acked))
        errors: list[Any] = []
        for user in users:
            try:
                user.stop()
            except AssertionError as error:
                errors.append(error)
    assert errors == []
    assert_nothing_lost(kafka, writing)
    assert group.reading.found == writing.acked
    told = {value.encode() for user in users for value in user.told if user is not sqs}
    reading = other.read("rolling-check")

    def has_all() -> bool:
        reading.take()
        return set(reading.found.values()) >= told

    wait_until(has_all, "all messages of others")
    reading.close()
    once = {value.encode() for user in users if isinstance(user, OfOurClient | OfHttp) for value in user.told}
    values = list(reading.found.values())
    assert sorted(value for value in values if value in once) == sorted(once)
    assert sqs.drain() >= set(sqs.told)

"""Real clients over TLS, with and without certificates of their own, while certificates are replaced."""

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import confluent_kafka
import grpc
import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from confluent_kafka.admin import AdminClient
from grpc_health.v1 import health_pb2, health_pb2_grpc
from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]

from goqueue.client import Admin, Consumer, Producer, Security
from goqueue.client.grpc import GrpcClient
from tests.certificates import Authority, Pair
from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.test_kcat import KCAT

SAFE, MUTUAL = 9093, 9094


class Tls:
    """A node with TLS on every API, and mutual TLS beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.node = Node(directory)
        self.host = self.node.endpoint[0]
        self.authority = Authority(directory)
        self.server = self.certificate("server")
        self.alice = self.authority.sign("alice", cn="alice")
        node, files = self.node, f"cert_file={self.server.cert}&key_file={self.server.key}"
        tls, mutual = f"name=safe&protocol=SSL&{files}", f"name=mutual&protocol=SSL&client_auth=require&{files}"
        listeners = [f"kafka://{node.address}", f"http://{self.host}:8080", f"grpc://{node.grpc}"]
        listeners += [f"kafka://{self.host}:{SAFE}?{tls}", f"kafka://{self.host}:{MUTUAL}?{mutual}"]
        listeners += [f"http://{self.host}:{SAFE - 1000}?{tls}", f"http://{self.host}:{MUTUAL - 1000}?{mutual}"]
        listeners += [f"grpc://{self.host}:{SAFE - 2000}?{tls}", f"grpc://{self.host}:{MUTUAL - 2000}?{mutual}"]
        listeners += [f"metrics://{self.host}:9100?{tls}"]
        node.arguments = ("--listeners", ",".join(listeners), "--tls-ca-file", str(self.authority.ca))

    def certificate(self, file: str) -> Pair:
        return self.authority.sign(file, dns=["localhost"], addresses=[self.host])

    @property
    def ca(self) -> str:
        return str(self.authority.ca)

    def address(self, port: int) -> str:
        return f"{self.host}:{port}"

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        return context

    def serial(self, port: int) -> str:
        """Of the certificate that a new connection is shown."""
        with (
            socket.create_connection((self.host, port), DEADLINE_S) as plain,
            self.context().wrap_socket(plain, server_hostname=self.host) as wrapped,
        ):
            shown: Any = wrapped.getpeercert()
            return str(shown["serialNumber"])

    def librdkafka(self, port: int, pair: Pair | None = None) -> dict[str, Any]:
        options = {"bootstrap.servers": self.address(port), "security.protocol": "ssl", "ssl.ca.location": self.ca}
        if pair is not None:
            options |= {"ssl.certificate.location": str(pair.cert), "ssl.key.location": str(pair.key)}
        return options

    def says(self, words: str) -> None:
        wait_until(lambda: words in self.node.log_file.read_text("utf-8"), f"{words!r} in the log")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tls]:
    made = Tls(tmp_path_factory.mktemp("tls"))
    made.node.start()
    user = {"name": "alice", "password": "three apples and a pear", "roles": ["admin"]}
    assert httpx.post(f"{made.node.url}/admin/users", json=user, timeout=DEADLINE_S).status_code == 201
    yield made
    made.node.clean_up()


def produced(options: dict[str, Any], topic: str, values: list[bytes]) -> None:
    producer = confluent_kafka.Producer(options)
    failed: list[Any] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(DEADLINE_S) == 0
    assert failed == []


def consumed(options: dict[str, Any], topic: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer({**options, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = consumer.consume(count, DEADLINE_S)
    consumer.close()
    return sorted(each.value() or b"" for each in found)


@pytest.mark.parametrize("port", [SAFE, MUTUAL])
def test_librdkafka_over_tls_is_told_the_addresses_of_its_own_listener(tls: Tls, port: int) -> None:
    options = tls.librdkafka(port, tls.alice if port == MUTUAL else None)
    (broker,) = AdminClient(options).list_topics(timeout=DEADLINE_S).brokers.values()
    assert f"{broker.host}:{broker.port}" == tls.address(port)
    values = [b"%03d" % number for number in range(100)]
    produced(options, f"librdkafka-{port}", values)
    assert consumed(options, f"librdkafka-{port}", 100) == values


def test_kafka_python_over_mutual_tls(tls: Tls) -> None:
    options: dict[str, Any] = {
        "bootstrap_servers": tls.address(MUTUAL),
        "security_protocol": "SSL",
        "ssl_cafile": tls.ca,
        "ssl_certfile": str(tls.alice.cert),
        "ssl_keyfile": str(tls.alice.key),
    }
    producer = KafkaProducer(**options)
    producer.send("kafka-python", b"three apples").get(DEADLINE_S)
    producer.close()
    consumer = KafkaConsumer("kafka-python", auto_offset_reset="earliest", **options)
    assert next(consumer).value == b"three apples"
    consumer.close()


def test_aiokafka_over_mutual_tls(tls: Tls) -> None:
    options: dict[str, Any] = {
        "bootstrap_servers": tls.address(MUTUAL),
        "security_protocol": "SSL",
        "ssl_context": tls.context(tls.alice),
    }

    async def there_and_back() -> bytes | None:
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait("aiokafka", b"three apples")
        async with AIOKafkaConsumer("aiokafka", auto_offset_reset="earliest", **options) as consumer:
            return (await consumer.getone()).value  # type: ignore[no-any-return]

    assert asyncio.run(asyncio.wait_for(there_and_back(), DEADLINE_S)) == b"three apples"


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed")
def test_kcat_over_tls(tls: Tls) -> None:
    command = [KCAT or "", "-b", tls.address(SAFE), "-X", "security.protocol=ssl", "-X", f"ssl.ca.location={tls.ca}"]
    subprocess.run([*command, "-P", "-t", "kcat"], input=b"three apples\n", timeout=DEADLINE_S, check=True)
    done = subprocess.run(
        [*command, "-C", "-t", "kcat", "-e", "-q"], capture_output=True, timeout=DEADLINE_S, check=True
    )
    assert done.stdout == b"three apples\n"


def test_http_and_its_limits_over_tls(tls: Tls) -> None:
    with httpx.Client(base_url=f"https://{tls.address(SAFE - 1000)}", verify=tls.context(), timeout=DEADLINE_S) as http:
        assert http.post("/topics", json={"name": "over-http"}).status_code == 201
        assert http.get("/topics/over-http").json()["name"] == "over-http"
        assert http.get("/health", headers={"x-large": "x" * 70_000}).status_code == 431
    with httpx.Client(base_url=f"https://{tls.host}:9100", verify=tls.context(), timeout=DEADLINE_S) as metrics:
        assert 'goqueue_broker_tls_certificate_remaining_seconds{listener="kafka/safe"' in metrics.get("/metrics").text
        assert metrics.get("/topics").status_code == 404
    assert "Error" not in tls.node.log_tail


def test_boto3_over_tls(tls: Tls) -> None:
    sqs = boto3.client(
        "sqs",
        endpoint_url=f"https://{tls.address(SAFE - 1000)}",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        verify=tls.ca,
    )
    queue = sqs.create_queue(QueueName="over-tls")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="three apples")
    (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=10)["Messages"]
    assert message["Body"] == "three apples"


def test_grpc_over_tls_and_mutual_tls(tls: Tls) -> None:
    root = tls.authority.ca.read_bytes()
    alice = grpc.ssl_channel_credentials(root, tls.alice.key.read_bytes(), tls.alice.cert.read_bytes())
    for port, credentials in ((SAFE, grpc.ssl_channel_credentials(root)), (MUTUAL, alice)):
        with grpc.secure_channel(tls.address(port - 2000), credentials) as channel:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_our_own_client_over_mutual_tls(tls: Tls) -> None:
    security = Security(tls=True, ca_file=tls.ca, cert_file=tls.alice.cert, key_file=tls.alice.key)

    async def there_and_back() -> tuple[bytes | None, str, list[bytes]]:
        servers = tls.address(MUTUAL)
        async with Producer(servers, security=security) as producer:
            await producer.send("own", b"three apples", partition=0)
        async with Consumer(servers, "own", security=security) as consumer:
            message = await anext(consumer)
        async with Admin(f"https://{tls.address(MUTUAL - 1000)}", security=security) as admin:
            described = await admin.topic("own")
        async with GrpcClient(tls.address(MUTUAL - 2000), security=security) as client:
            await client.publish("own", b"four pears", partition=0)
            found = [each.value async for each in client.consume("own", until_end=True)]
        return message.value, described.name, found

    seen = asyncio.run(asyncio.wait_for(there_and_back(), DEADLINE_S))
    assert seen == (b"three apples", "own", [b"three apples", b"four pears"])


def test_the_command_line_over_mutual_tls(tls: Tls, tmp_path: Path) -> None:
    command = Command(tmp_path)
    server = f"https://{tls.address(MUTUAL - 1000)}"
    files = ("--ca", tls.ca, "--cert", str(tls.alice.cert), "--key", str(tls.alice.key))
    command.run("config", "set-context", "safe", "--server", server, *files)
    assert "over-cli" in command.run("--context", "safe", "topic", "create", "over-cli").out


def test_without_a_certificate_nobody_gets_in_where_one_is_required(tls: Tls) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"https://{tls.address(MUTUAL - 1000)}/health", verify=tls.context(), timeout=DEADLINE_S)
    stranger = Authority(tls.directory, "stranger").sign("mallory", cn="alice")
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"https://{tls.address(MUTUAL - 1000)}/health", verify=tls.context(stranger), timeout=DEADLINE_S)
    tls.says("the client has shown no certificate")
    tls.says("was not signed by an authority that is trusted here")
    url, bob = f"https://{tls.address(MUTUAL - 1000)}/topics", tls.authority.sign("bob", cn="bob")
    assert httpx.get(url, verify=tls.context(tls.alice), timeout=DEADLINE_S).status_code == 200
    assert httpx.post(url, json={"name": "x"}, verify=tls.context(bob), timeout=DEADLINE_S).status_code == 403


def test_who_speaks_the_wrong_protocol_is_told_of_in_the_log(tls: Tls) -> None:
    for port in (SAFE, SAFE - 1000):
        with socket.create_connection((tls.host, port), DEADLINE_S) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while plain.recv(1000):
                pass
    tls.says("HTTP was spoken to a TLS port")
    with socket.create_connection((tls.host, SAFE), DEADLINE_S) as plain:
        plain.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\0\0\0")
        while plain.recv(1000):
            pass
    tls.says("something else than TLS was spoken to a TLS port")
    with pytest.raises(OSError), socket.create_connection(tls.node.endpoint, DEADLINE_S) as plain:
        tls.context().wrap_socket(plain, server_hostname=tls.host)
    tls.says("TLS was spoken to the plain Kafka port")


def test_certificates_are_replaced_under_load_and_no_message_is_lost(tls: Tls) -> None:
    ports, before = (SAFE, SAFE - 1000, SAFE - 2000), tls.serial(SAFE)
    stop, sent = threading.Event(), []

    def keep_producing() -> None:
        number = 0
        while not stop.is_set():
            values = [b"%07d" % (number + each) for each in range(10)]
            produced(tls.librdkafka(SAFE), "replaced", values)  # a connection of its own each time
            sent.extend(values)
            number += 10

    load = threading.Thread(target=keep_producing)
    load.start()
    try:
        good = tls.server.key.read_bytes()
        tls.server.key.write_bytes(tls.alice.key.read_bytes())  # belongs to another certificate
        os.kill(tls.node.pid, signal.SIGHUP)
        tls.says("certificate not replaced: the old one stays")
        assert tls.serial(SAFE) == before
        tls.server.key.write_bytes(good)
        tls.certificate("server")
        os.kill(tls.node.pid, signal.SIGHUP)
        for port in ports:
            wait_until(lambda port=port: tls.serial(port) != before, f"the new certificate at {port}")  # type: ignore[misc]
        had = len(sent)
        wait_until(lambda: len(sent) > had or not load.is_alive(), "more messages")
    finally:
        stop.set()
        load.join()
    assert consumed(tls.librdkafka(SAFE), "replaced", len(sent)) == sorted(sent)

"""Three closed nodes: accounts are everybody's at once, and whoever asks is asked for its own rights on every node."""

import asyncio
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import boto3
import grpc
import httpx
import pytest
from botocore.exceptions import ClientError
from confluent_kafka import Consumer

from goqueue.client import Admin, HttpRefused, Producer
from goqueue.client.grpc import GrpcClient, GrpcRefused
from tests.integration.closed_cluster import NODES, ClosedCluster
from tests.integration.closed_walk import PASSWORD as WALKED
from tests.integration.closed_walk import Walk
from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, wait_until

PARTITIONS = 6
MESSAGES = 60
PASSWORD = "three little äpples"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedCluster]:
    running = ClosedCluster(tmp_path_factory.mktemp("closed"))
    try:
        yield running.start()
    finally:
        running.clean_up()


class Http:
    """Plain requests, with headers as somebody might forge them."""

    def __init__(self, cluster: ClosedCluster) -> None:
        self._cluster = cluster
        self._client = httpx.Client(verify=ssl.create_default_context(cafile=cluster.ca), timeout=DEADLINE_S)

    def close(self) -> None:
        self._client.close()

    def ask(self, number: int, method: str, path: str, auth: Any = None, **said: Any) -> httpx.Response:
        return self._client.request(method, f"{self._cluster.url(number)}{path}", auth=auth, **said)


@pytest.fixture(scope="module")
def http(cluster: ClosedCluster) -> Iterator[Http]:
    """After the first key has made an admin, two users and a topic, each on another node."""
    found = Http(cluster)
    (first,) = [each.first_key for each in cluster.nodes.values() if (each.log_file.parent / "bootstrap.key").exists()]
    shown = {"X-API-Key": first}
    answers = [
        found.ask(3, "POST", "/topics", headers=shown, json={"name": "orders", "num_partitions": PARTITIONS}),
        found.ask(2, "POST", "/admin/users", headers=shown, json={"name": "alice", "password": PASSWORD}),
        found.ask(1, "POST", "/admin/users", headers=shown, json=_user("root", "admin")),
    ]
    assert [each.status_code for each in answers] == [201, 201, 201], [each.text for each in answers]
    for number in NODES:
        wait_until(
            lambda number=number: found.ask(number, "GET", "/topics/orders", ("root", PASSWORD)).status_code == 200,  # type: ignore[misc]
            f"root on node {number}",
        )
        assert found.ask(number, "GET", "/topics", headers=shown).status_code == 401
    yield found
    found.close()


def _user(name: str, *roles: str) -> dict[str, Any]:
    return {"name": name, "password": PASSWORD, "roles": roles}


def _make_rule(http: Http, **rule: str) -> None:
    answer = http.ask(2, "POST", "/admin/acls", ("root", PASSWORD), json={"principal": "User:alice", **rule})
    assert answer.status_code == 201, answer.text


def test_what_alice_may_do_is_asked_on_every_node(cluster: ClosedCluster, http: Http) -> None:
    async def publish() -> None:
        async with Producer(cluster.kafka, security=cluster.security(user="root", password=PASSWORD)) as producer:
            for number in range(MESSAGES):
                await producer.send("orders", b"%d" % number, partition=number % PARTITIONS)

    async def consume(number: int, **shown: Any) -> list[int]:
        """A stream from one node of what all of them lead."""
        address = f"{cluster.hosts[number]}:9000"
        async with GrpcClient(address, security=cluster.security(**shown)) as client:
            return sorted([int(each.value) async for each in client.consume("orders", until_end=True)])

    alice = {"user": "alice", "password": PASSWORD}
    asyncio.run(publish())
    for number in NODES:
        with pytest.raises(GrpcRefused) as refused:
            asyncio.run(consume(number, **alice))
        assert refused.value.status is grpc.StatusCode.PERMISSION_DENIED
        assert asyncio.run(consume(number, user="root", password=PASSWORD)) == list(range(MESSAGES))

    _make_rule(http, resource_type="topic", resource_name="orders", operation="read")
    _make_rule(http, resource_type="group", resource_name="billing", operation="read")
    for number in NODES:
        wait_until(
            lambda number=number: http.ask(number, "GET", "/topics/orders", ("alice", PASSWORD)).status_code == 200,  # type: ignore[misc]
            f"the rules on node {number}",
        )
        assert asyncio.run(consume(number, **alice)) == list(range(MESSAGES))
    assert _read_by_group(cluster) == set(range(MESSAGES))
    for number in NODES:  # wherever their coordinators are
        for group, status in (("billing", 200), ("others", 403)):
            assert http.ask(number, "GET", f"/groups/{group}", ("alice", PASSWORD)).status_code == status
    _make_rule(http, resource_type="group", resource_name="billing", operation="all", effect="deny", host="127.0.0.1")
    for number in NODES:  # which see the address of the client, also where another node passes its request on
        wait_until(
            lambda number=number: http.ask(number, "GET", "/groups/billing", ("alice", PASSWORD)).status_code == 403,  # type: ignore[misc]
            f"the rule about an address on node {number}",
        )


def _read_by_group(cluster: ClosedCluster) -> set[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.kafka,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(cluster.ca),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    found: set[int] = set()

    def is_all() -> bool:
        found.update(int(each.value() or b"") for each in consumer.consume(MESSAGES, 0.2) if each.error() is None)
        return len(found) == MESSAGES

    try:
        wait_until(is_all, "all messages")
    finally:
        consumer.close()
    return found


FORGED = {
    "gq-via": "1",
    "gq-as": "User:root",
    "gq-proof-bin": "AAAA",
    "goqueue.via": "true",
    "goqueue.principal": "User:root",
    "x-forwarded-user": "User:root",
}
"""What nodes say to each other, or once did, as a client might say it."""


def test_nobody_becomes_somebody_else_by_what_nodes_say_to_each_other(cluster: ClosedCluster, http: Http) -> None:
    for number in NODES:
        for path in ("/topics/orders", "/groups/secret", "/admin/users"):
            assert http.ask(number, "GET", path, headers=FORGED).status_code == 401
        for path in ("/groups/secret", "/admin/users", "/transactions"):
            plain = http.ask(number, "GET", path, ("alice", PASSWORD))
            forged = http.ask(number, "GET", path, ("alice", PASSWORD), headers=FORGED)
            assert (forged.status_code, forged.content) == (plain.status_code, plain.content)
        _assert_grpc_refuses(cluster, number)
        with pytest.raises((ssl.SSLError, ConnectionError)):  # a client without a certificate of a node
            _talk_to_peer(cluster, number)


def _assert_grpc_refuses(cluster: ClosedCluster, number: int) -> None:
    from goqueue.wire.grpc import consume_pb2

    credentials = grpc.ssl_channel_credentials(cluster.ca.read_bytes())
    with grpc.secure_channel(f"{cluster.hosts[number]}:9000", credentials) as channel:
        consume: Any = channel.unary_stream("/goqueue.v1.ConsumeService/Consume")
        request = consume_pb2.ConsumeRequest(topic="orders", until_end=True).SerializeToString()
        metadata = tuple((name, b"\0" * 40 if name.endswith("-bin") else value) for name, value in FORGED.items())
        with pytest.raises(grpc.RpcError) as refused:
            list(consume(request, metadata=metadata, timeout=DEADLINE_S))
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def _talk_to_peer(cluster: ClosedCluster, number: int) -> None:
    import socket

    context = ssl.create_default_context(cafile=cluster.ca)
    address = cluster.hosts[number], 9192
    with (
        socket.create_connection(address, DEADLINE_S) as plain,
        context.wrap_socket(plain, server_hostname=f"goqueue-node-{number}") as tls,
    ):
        tls.sendall(b"\0\0\0\4\0\0\0\0")
        if not tls.recv(1):
            raise ConnectionResetError


def test_sqs_is_signed_for_any_node(cluster: ClosedCluster, http: Http) -> None:
    made = http.ask(1, "POST", "/admin/keys", ("root", PASSWORD), json={"name": "shop", "roles": [], "for_sqs": True})
    key_id, secret = made.json()["key"].removeprefix("gqk_").split("_")

    def sqs(number: int) -> Any:
        return boto3.client(
            "sqs",
            endpoint_url=cluster.url(number),
            region_name="eu-west-1",
            aws_access_key_id=key_id,
            aws_secret_access_key=secret,
            verify=str(cluster.ca),
        )

    with pytest.raises(ClientError, match="AccessDenied"):
        sqs(2).create_queue(QueueName="letters")
    for kind in ("topic", "group", "cluster"):
        name = "goqueue" if kind == "cluster" else "*"
        _make_rule(http, principal=f"Key:{key_id}", resource_type=kind, resource_name=name, operation="all")
    wait_until(lambda: _can_make(sqs(3)), "the rules on node 3")
    url = sqs(3).get_queue_url(QueueName="letters")["QueueUrl"]
    path = url.partition(":8080")[2]
    for number in NODES:
        sqs(number).send_message(QueueUrl=f"{cluster.url(number)}{path}", MessageBody=str(number))
        counted = sqs(number).get_queue_attributes(QueueUrl=f"{cluster.url(number)}{path}", AttributeNames=["All"])
        assert counted["Attributes"]["ApproximateNumberOfMessages"] == str(number)


def _can_make(sqs: Any) -> bool:
    try:
        sqs.create_queue(QueueName="letters")
    except ClientError:
        return False
    return True


def test_the_lines_of_the_documentation_do_what_they_say(cluster: ClosedCluster, http: Http, tmp_path: Path) -> None:
    walk = Walk(cluster, tmp_path)
    walk.run(walk.certificates)
    names = walk.run("openssl verify -CAfile ca.pem node-1.pem; openssl x509 -in node-1.pem -noout -ext subjectAltName")
    assert "node-1.pem: OK" in names
    assert "DNS:goqueue-node-1, DNS:mq1.example.org, IP Address:10.0.0.1" in names
    said = set(re.findall(r"--[a-z-]+", walk.serve)) - {"--etcd-ca-file", "--data-dir"}
    assert said == {each for each in cluster.nodes[1].arguments if each.startswith("--")}, "as this cluster was started"
    made = http.ask(1, "POST", "/admin/keys", ("root", PASSWORD), json={"name": "first", "roles": ["admin"]})
    walk.keep("bootstrap.key", made.json()["key"])
    walk.keep_key(walk.run(walk.here(walk.accounts)))
    servers = ",".join(cluster.url(number) for number in NODES)
    walk.run(walk.here(walk.context), GOQUEUE_SERVER=servers)
    make, kcat = walk.here(walk.programs).rstrip().rsplit("\n", 1)
    walk.run(make, GOQUEUE_CONTEXT="prod")
    assert http.ask(3, "GET", "/topics/walked", ("shop", WALKED)).json()["partitions"] == 6
    if which("kcat"):
        assert 'topic "walked" with 6 partitions' in walk.run(kcat)


@pytest.mark.usefixtures("http")
def test_a_context_with_a_user_works_with_all_nodes(cluster: ClosedCluster, tmp_path: Path) -> None:
    goqueue = Command(tmp_path)
    file = tmp_path / "root.txt"
    file.write_text(PASSWORD)
    file.chmod(0o600)
    servers = ",".join(cluster.url(number) for number in NODES)
    where = ("--server", servers, "--ca", str(cluster.ca), "--kafka", f"{cluster.hosts[2]}:9092")
    goqueue.run("config", "set-context", "live", *where, "--user", "root", "--password-file", str(file))
    goqueue.run("topic", "create", "by-context", "-p", "6")
    values = [str(number) for number in range(12)]
    goqueue.run("produce", "by-context", stdin="\n".join(values))
    found = goqueue.json_lines("consume", "by-context", "--from-beginning")
    assert sorted(each["value"] for each in found) == sorted(values)
    assert goqueue.json("cluster", "nodes")
    assert goqueue.json("bench", "produce", "--context", "live", "--messages", "100", "--partitions", "3")["figures"]


def test_who_has_lost_every_key_stops_one_node_and_comes_back(cluster: ClosedCluster, http: Http) -> None:
    node = cluster.nodes[3]
    node.stop()
    Command(node.data_dir.parent).run("admin", "reset", "--data-dir", str(node.data_dir))
    node.start()

    async def users(number: int) -> int:
        async with Admin(cluster.url(number), security=cluster.security(api_key=node.first_key)) as admin:
            return len(await admin.topics())

    for number in NODES:
        wait_until(lambda number=number: _is_in(users, number), f"the first key on node {number}")  # type: ignore[misc]
    assert http.ask(1, "GET", "/admin/users", ("root", PASSWORD)).status_code == 200


def _is_in(ask: Any, number: int) -> bool:
    try:
        return bool(asyncio.run(ask(number)) >= 1)
    except HttpRefused as error:
        assert error.status == 401
        return False

"""Two tenants and the default one on a closed node, with the same names, through real clients: each sees its own."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from goqueue import client
from goqueue.cli.exits import EXIT_DENIED
from goqueue.client.grpc import GrpcClient
from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, Node

TENANTS = ("default", "acme", "beta")
FORBIDDEN, UNAUTHORIZED = 403, 401


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    master = tmp_path / "master.key"
    master.write_text("ab" * 32)
    master.chmod(0o600)
    node = Node(tmp_path, "--master-key-file", str(master), is_closed=True)
    node.start()
    yield node
    node.clean_up()


def ask(node: Node, key: str, method: str, path: str, body: Any = None, tenant: str = "") -> Any:
    headers = {"X-API-Key": key, **({"X-GoQueue-Tenant": tenant} if tenant else {})}
    return httpx.request(method, node.url + path, json=body, headers=headers, timeout=DEADLINE_S)


def keys_of(node: Node) -> dict[str, str]:
    admin = {"name": "admin", "roles": ["admin"], "for_sqs": True}
    keys = {"default": ask(node, node.first_key, "POST", "/admin/keys", admin).json()["key"]}
    for tenant in TENANTS[1:]:
        made = ask(node, keys["default"], "POST", "/admin/tenants", {"id": tenant, "name": tenant})
        assert made.status_code == 201
        keys[tenant] = ask(node, keys["default"], "POST", "/admin/keys", admin, tenant).json()["key"]
    return keys


def kafka(node: Node, key: str) -> dict[str, Any]:
    _, key_id, secret = key.split("_")
    return {
        "bootstrap.servers": node.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": key_id,
        "sasl.password": secret,
    }


def publish(settings: dict[str, Any], tenant: str) -> None:
    admin = AdminClient(settings)
    for topic in admin.create_topics([NewTopic("orders", 1), NewTopic(f"of-{tenant}", 1)]).values():
        topic.result(DEADLINE_S)
    producer = Producer({**settings, "transactional.id": "shop"})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce("orders", f"of {tenant}".encode())
    producer.commit_transaction(DEADLINE_S)


def consumed(settings: dict[str, Any], protocol: str) -> tuple[str | None, bytes | None]:
    """The first message of a group that means its topics by an expression."""
    group = {"group.id": f"readers-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **group, "enable.auto.commit": False})
    consumer.subscribe(["^ord.*"])
    try:
        while True:
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            if message.error() is None:
                consumer.commit(message=message, asynchronous=False)
                return message.topic(), message.value()
    finally:
        consumer.close()


def test_tenants_with_the_same_names_see_their_own(node: Node) -> None:
    keys = keys_of(node)
    for tenant, key in keys.items():
        publish(kafka(node, key), tenant)
        subject = {"schema": json.dumps({"type": "record", "name": "R", "fields": [{"name": tenant, "type": "int"}]})}
        assert ask(node, key, "POST", "/subjects/orders-value/versions", subject).status_code == 200
        queue(node, key).create_queue(QueueName="jobs")
        queue(node, key).send_message(QueueUrl=url(node, key), MessageBody=f"job of {tenant}")
    for tenant, key in keys.items():
        settings = kafka(node, key)
        admin = AdminClient(settings)
        assert sorted(admin.list_topics(timeout=DEADLINE_S).topics) == ["jobs", f"of-{tenant}", "orders"]
        for protocol in ("classic", "consumer"):
            assert consumed(settings, protocol) == ("orders", f"of {tenant}".encode())
        assert ask(node, key, "GET", "/topics").json() == {"topics": ["jobs", f"of-{tenant}", "orders"]}
        groups = ask(node, key, "GET", "/groups").json()["groups"]
        assert groups == ["readers-classic", "readers-consumer", "sqs"]
        lag = ask(node, key, "GET", "/groups/readers-classic/lag").json()
        assert [(each["topic"], each["committed_offset"]) for each in lag["partitions"]] == [("orders", 1)]
        schema = ask(node, key, "GET", "/subjects/orders-value/versions/1").json()
        assert json.loads(schema["schema"])["fields"][0]["name"] == tenant
        (job,) = queue(node, key).receive_message(QueueUrl=url(node, key), WaitTimeSeconds=20)["Messages"]
        assert job["Body"] == f"job of {tenant}"
    assert len({url(node, key).split("/")[3] for key in keys.values()}) == len(TENANTS)


def test_an_admin_acts_for_a_tenant_through_every_api_and_the_cli(node: Node, tmp_path: Path) -> None:
    keys = keys_of(node)
    goqueue = Command(tmp_path, node.url)
    goqueue.environment["GOQUEUE_API_KEY"] = keys["default"]
    goqueue.run("user", "create", "root", "--role", "admin", "--password-file", "-", stdin="a password\n")
    assert goqueue.run("--tenant", "acme", "topic", "create", "bills").out == "made topic bills with 3 partitions\n"
    by_key = client.Security(api_key=keys["default"], tenant="acme")
    by_password = client.Security(user="root", password="a password", tenant="acme")

    async def inside() -> None:
        for number, security in enumerate((by_key, by_password)):
            async with client.Producer(node.address, security=security) as producer:
                await producer.send("bills", f"{number}".encode(), partition=0)
            async with GrpcClient(node.grpc, security=security) as grpc:
                await grpc.publish("bills", b"by grpc", partition=0)

    asyncio.run(inside())
    (topic,) = [each for each in goqueue.json("topic", "list", "--tenant", "acme") if each["name"] == "bills"]
    assert topic["total_messages"] == 4
    assert "bills" not in {each["name"] for each in goqueue.json("topic", "list")}
    assert ask(node, keys["acme"], "GET", "/topics/bills").json()["total_messages"] == 4
    goqueue.environment["GOQUEUE_API_KEY"] = keys["acme"]
    assert "beta" in goqueue.run("topic", "list", "--tenant", "beta", code=EXIT_DENIED).err


def test_a_tenant_is_suspended_and_comes_back_as_it_was(node: Node) -> None:
    keys = keys_of(node)
    root, acme = keys["default"], keys["acme"]
    publish(kafka(node, acme), "acme")
    refused = ask(node, acme, "GET", "/topics", tenant="beta")
    assert (refused.status_code, refused.json()["code"]) == (FORBIDDEN, "CLUSTER_AUTHORIZATION_FAILED")
    assert ask(node, root, "POST", "/admin/tenants/acme/suspend", {"reason": "unpaid"}).status_code == 200
    refused = ask(node, acme, "GET", "/topics/orders")
    assert (refused.status_code, refused.json()["code"]) == (FORBIDDEN, "TENANT_SUSPENDED")
    assert ask(node, keys["beta"], "GET", "/topics").status_code == 200
    assert ask(node, root, "POST", "/admin/tenants/acme/disable").status_code == 200
    assert ask(node, acme, "GET", "/topics").status_code == UNAUTHORIZED
    node.kill()
    node.start()
    assert ask(node, acme, "GET", "/topics").status_code == UNAUTHORIZED
    assert ask(node, root, "POST", "/admin/tenants/acme/activate").status_code == 200
    assert consumed(kafka(node, acme), "classic") == ("orders", b"of acme")


def queue(node: Node, key: str) -> Any:
    _, key_id, secret = key.split("_")
    return boto3.client(
        "sqs",
        endpoint_url=node.url,
        region_name="us-east-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
    )


def url(node: Node, key: str) -> str:
    found: str = queue(node, key).get_queue_url(QueueName="jobs")["QueueUrl"]
    return found

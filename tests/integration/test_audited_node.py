"""A closed node writes down what is done to it, through every API, and tells nobody a secret by it."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import httpx
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from goqueue.model.secret import Secret
from goqueue.node.bootstrap import FirstAdmin
from goqueue.node.node import Node
from goqueue.node.settings import Settings
from goqueue.testing import MemoryDisk
from goqueue.wire.grpc.topic_pb2 import CreateTopicRequest, CreateTopicResponse
from tests.unit.node.test_node import ANY_PORT, QUIET, live, never

KEY = f"gqk_k0123456789abcdef_{'ab' * 32}"
ADMIN = {"x-api-key": KEY}


def by_kafka(server: str) -> None:
    admin = AdminClient(
        {
            "bootstrap.servers": server,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": KEY.split("_")[1],
            "sasl.password": KEY,
        }
    )
    for made in admin.create_topics([NewTopic("by-kafka", 1)]).values():
        made.result(60)


async def by_grpc(server: str) -> None:
    async with grpc.aio.insecure_channel(server) as channel:
        call = channel.unary_unary(
            "/goqueue.v1.TopicService/CreateTopic",
            CreateTopicRequest.SerializeToString,
            CreateTopicResponse.FromString,
        )
        await call(CreateTopicRequest(name="by-grpc"), metadata=tuple(ADMIN.items()))


def test_changes_refusals_and_failed_logins_of_every_api_are_in_the_trail(tmp_path: Path) -> None:
    async def inside() -> list[dict[str, Any]]:
        settings = Settings(data_dir=tmp_path, kafka=ANY_PORT, http=ANY_PORT, grpc=ANY_PORT)
        node = Node(settings, MemoryDisk(), compact=never, first=FirstAdmin(Secret(KEY)))
        opened = await node.open()
        try:
            async with httpx.AsyncClient(base_url=f"http://{opened.http}") as http:
                made = await http.post("/topics", headers=ADMIN, json={"name": "by-http", "num_partitions": 1})
                assert made.status_code == 201, made.text
                user = {"name": "bob", "password": "MARKED-SECRET", "roles": []}
                assert (await http.post("/admin/users", headers=ADMIN, json=user)).status_code == 201
                for _ in range(2):
                    refused = await http.get("/topics/by-http", auth=("bob", "MARKED-SECRET"))
                    assert refused.status_code == 403
                assert (await http.get("/topics", auth=("mallory", "MARKED-SECRET"))).status_code == 401
                await asyncio.to_thread(by_kafka, str(opened.kafka))
                await by_grpc(str(opened.grpc))
                sqs = {"x-amz-target": "AmazonSQS.CreateQueue", "content-type": "application/x-amz-json-1.0", **ADMIN}
                assert (await http.post("/", headers=sqs, json={"QueueName": "by-sqs"})).status_code == 200
                assert (await http.get("/admin/audit", auth=("bob", "MARKED-SECRET"))).status_code == 403
                trail = await http.get("/admin/audit", headers=ADMIN)
                assert trail.status_code == 200, trail.text
                assert "MARKED" not in trail.text
                found: list[dict[str, Any]] = trail.json()["entries"]
                return found
        finally:
            await node.close()

    found = asyncio.run(inside())
    assert all(each["hash_ok"] for each in found)
    admin = f"Key:{KEY.split('_')[1]}"
    changes = [(each["api"], each["resource"], each["outcome"]) for each in found if each["principal"] == admin]
    for api, name in (("http", "by-http"), ("http", "bob"), ("grpc", "by-grpc"), ("sqs", "by-sqs")):
        outcomes = [outcome for through, resource, outcome in changes if through == api and name in resource]
        assert outcomes == ["begun", "done"], (api, name, found)
    assert ("kafka", "by-kafka", "begun") in changes
    others = {(each["principal"], each["operation"], each["outcome"]): each["count"] for each in found}
    assert others["User:bob", "describe", "refused"] == 2
    assert others["mallory", "login", "failed"] == 1
    (user,) = [each for each in found if each["operation"] == "create_user" and each["outcome"] == "done"]
    assert user["fields"] == ["name", "password", "roles"]


def test_a_node_that_is_open_has_no_trail() -> None:
    async def ask(node: Node) -> None:
        assert node.broker.audit is None

    live(Node(QUIET, MemoryDisk(), compact=never), ask)

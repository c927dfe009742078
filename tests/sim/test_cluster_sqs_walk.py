"""All actions of SQS, asked of nodes that have only a part of the queue they are about: as one node alone answers."""

import json
import re
from typing import Any

import pytest

from goqueue.client import Admin
from goqueue.client.exchange import Ask, PlainExchange
from goqueue.client.loop_streams import LoopStreams
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.model.tenancy import TENANT_HEADER
from goqueue.testing.simulated_node import HTTP_PORT
from goqueue.testing.simulation import Simulation
from goqueue.wire.rest.operations.tenants import CREATE_TENANT
from tests.layers import in_layers

DRAWN = {
    *("MessageId", "ReceiptHandle", "SequenceNumber", "TaskHandle", "StartedTimestamp", "CreatedTimestamp"),
    *("LastModifiedTimestamp", "QueueUrl", "QueueUrls", "MD5OfMessageAttributes", "queueUrls"),
}
COUNT = 9
Told = list[tuple[str, Any]]


def comparable(value: Any, name: str = "") -> Any:
    if name in DRAWN:
        return "drawn"
    if isinstance(value, dict):
        return {key: comparable(one, key) for key, one in value.items()}
    return [comparable(one, name) for one in value] if isinstance(value, list) else value


class Asked:
    """A client of several nodes, asked in turn, that keeps what it was told."""

    def __init__(self, sim: Simulation, asked: list[int], tenant: str = "") -> None:
        self.sim = sim
        self._tenant = {TENANT_HEADER: tenant} if tenant else {}
        at = sim.network.at("walker")
        self._exchanges = [PlainExchange(sim.nodes[number].name, HTTP_PORT, 5.0, LoopStreams(at)) for number in asked]
        self._count = 0
        self.told: Told = []

    async def quietly(self, action: str, /, **given: Any) -> Any:
        self._count += 1
        exchange = self._exchanges[self._count % len(self._exchanges)]
        headers = {"x-amz-target": f"AmazonSQS.{action}", "content-type": "application/x-amz-json-1.0"}
        headers |= self._tenant
        answer = await exchange.ask(Ask("POST", "/", headers, json.dumps(given).encode(), 30.0))
        body = json.loads(answer.body)
        return body if answer.status == 200 else {"refused": answer.status, "type": body.get("__type")}

    async def __call__(self, action: str, /, **given: Any) -> Any:
        answer = await self.quietly(action, **given)
        self.tell(action, answer)
        return answer

    def tell(self, action: str, answer: Any) -> None:
        self.told.append((action, comparable(answer)))

    async def receive(self, url: str, count: int) -> list[Any]:
        found: list[Any] = []
        for _ in range(20 * count):
            if len(found) >= count:
                break
            answer = await self.quietly("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            found += answer.get("Messages", [])
        found.sort(key=lambda one: str(one["Body"]))
        self.tell("ReceiveMessage", [one["Body"] for one in found])
        return found

    async def close(self) -> None:
        for each in self._exchanges:
            await each.close()


async def walk(ask: Asked) -> None:
    dead = (await ask("CreateQueue", QueueName="dead"))["QueueUrl"]
    told = await ask.quietly("GetQueueAttributes", QueueUrl=dead, AttributeNames=["QueueArn"])
    arn = told["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
    attributes = {"VisibilityTimeout": "60", "RedrivePolicy": policy}
    url = (await ask("CreateQueue", QueueName="jobs", Attributes=attributes))["QueueUrl"]
    await ask.sim.let_pass("1s")
    await ask("GetQueueUrl", QueueName="jobs")
    await ask("GetQueueUrl", QueueName="none")
    ask.tell("ListQueues", len((await ask.quietly("ListQueues"))["QueueUrls"]))
    await ask("ListDeadLetterSourceQueues", QueueUrl=dead)
    await ask("SetQueueAttributes", QueueUrl=url, Attributes={"VisibilityTimeout": "90"})
    await ask("TagQueue", QueueUrl=url, Tags={"a": "b", "c": "d"})
    await ask.sim.let_pass("1s")
    await ask("UntagQueue", QueueUrl=url, TagKeys=["c"])
    await ask.sim.let_pass("1s")
    await ask("ListQueueTags", QueueUrl=url)
    for action in ("AddPermission", "RemovePermission"):
        await ask(action, QueueUrl=url, Label="x", AWSAccountIds=["1"], Actions=["*"])
    for number in range(COUNT - 2):
        await ask("SendMessage", QueueUrl=url, MessageBody=f"m{number}")
    entries = [{"Id": str(number), "MessageBody": f"m{number}"} for number in (COUNT - 2, COUNT - 1)]
    await ask("SendMessageBatch", QueueUrl=url, Entries=entries)
    counted = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "VisibilityTimeout"]
    await ask("GetQueueAttributes", QueueUrl=url, AttributeNames=counted)
    got = await ask.receive(url, COUNT)
    await ask("GetQueueAttributes", QueueUrl=url, AttributeNames=counted)
    receipts = [one["ReceiptHandle"] for one in got]
    await ask("DeleteMessage", QueueUrl=url, ReceiptHandle=receipts[0])
    await ask("DeleteMessage", QueueUrl=url, ReceiptHandle="nonsense")
    batch = [{"Id": str(number), "ReceiptHandle": receipts[number]} for number in (1, 2)]
    await ask("DeleteMessageBatch", QueueUrl=url, Entries=batch)
    await ask("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=receipts[3], VisibilityTimeout=600)
    batch = [{"Id": str(n), "ReceiptHandle": receipts[n], "VisibilityTimeout": 0} for n in range(4, COUNT)]
    await ask("ChangeMessageVisibilityBatch", QueueUrl=url, Entries=batch)
    for _ in range(3):  # received once, they die
        await ask.quietly("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
    await ask.sim.let_pass("5s")
    await ask("GetQueueAttributes", QueueUrl=dead, AttributeNames=counted[:2])
    task = await ask("StartMessageMoveTask", SourceArn=arn)
    await ask.sim.let_pass("10s")
    await ask("ListMessageMoveTasks", SourceArn=arn)
    await ask("CancelMessageMoveTask", TaskHandle=task["TaskHandle"])
    await ask("GetQueueAttributes", QueueUrl=dead, AttributeNames=counted[:2])
    await ask("PurgeQueue", QueueUrl=url)
    await ask.sim.let_pass("1s")
    await ask("GetQueueAttributes", QueueUrl=url, AttributeNames=counted)
    await ask("DeleteQueue", QueueUrl=url)
    await ask.sim.let_pass("2s")
    await ask("GetQueueUrl", QueueName="jobs")


def walked(asked: list[int], *, nodes: int, tenant: str = "") -> Told:
    async def inside(sim: Simulation) -> Told:
        await sim.let_pass("2s")
        if tenant:
            await furnish(sim, tenant)
        ask = Asked(sim, asked, tenant)
        await walk(ask)
        await ask.close()
        assert sim.loop.exceptions == [], sim.loop.exceptions
        return ask.told

    settings: dict[str, Any] = {"default_replication_factor": 1} if nodes > 1 else {}
    return Simulation(seed=13, nodes=nodes, cluster=nodes > 1, **settings).run(inside, limit="1h")


async def furnish(sim: Simulation, tenant: str) -> None:
    """Make a tenant; `default` has other queues with the names that it will use."""
    admin = Admin(sim.nodes[0].http, **sim.process("admin").ports)
    await admin.call(CREATE_TENANT, id=tenant, name=tenant)
    for topic in ("jobs", "dead"):
        await admin.create_topic(topic, partitions=1)
    await sim.let_pass("1s")
    await admin.close()


@pytest.fixture(scope="module")
def told_alone() -> Told:
    return walked([0], nodes=1)


def test_no_action_is_left_out(told_alone: Told) -> None:
    assert {name for name, _ in told_alone} == ACTIONS.keys()


@pytest.mark.parametrize("asked", in_layers([[0, 1, 2], [0], [1], [2]], first=1), ids=str)
def test_every_action_is_answered_as_by_one_node_alone(told_alone: Told, asked: list[int]) -> None:
    for (name, here), (other, alone) in zip(walked(asked, nodes=3), told_alone, strict=True):
        assert (name, here) == (other, alone)


def test_every_action_of_a_tenant_is_answered_as_by_one_node_alone(told_alone: Told) -> None:
    """Each node leads other partitions of the queues of `default` with the same names."""
    told = walked([0, 1, 2], nodes=3, tenant="acme")
    accounts = [set(re.findall(r":(\d{12}):", json.dumps(each))) for each in (told, told_alone)]
    assert len(accounts[0]) == len(accounts[1]) == 1
    assert accounts[0] != accounts[1]
    assert json.dumps(told).replace(*accounts[0], *accounts[1]) == json.dumps(told_alone)

"""The door without a socket: what it answers when things go wrong behind it, and over time that a test moves."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from goqueue.broker.gate import Gate
from goqueue.doors.sqs.app import SqsApp
from goqueue.doors.sqs.handlers import table
from goqueue.model.audit import Asked
from goqueue.model.partition_limits import PartitionLimits
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop, turn


class Client:
    def __init__(self, b: MemoryBroker, app: SqsApp, http: httpx.AsyncClient) -> None:
        self.b = b
        self.app = app
        self._http = http

    async def ask(self, action: str, *, status: int = 200, **body: Any) -> Any:
        headers = {"X-Amz-Target": f"AmazonSQS.{action}"}
        answer = await self._http.post("/", headers=headers, content=json.dumps(body))
        assert answer.status_code == status, answer.text
        return answer.json() if status == 200 else answer.headers["x-amzn-query-error"]

    async def create(self, name: str = "orders", **attributes: str) -> str:
        return str((await self.ask("CreateQueue", QueueName=name, Attributes=attributes))["QueueUrl"])

    async def bodies(self, url: str, **more: Any) -> list[str]:
        found = await self.ask("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, **more)
        return [each["Body"] for each in found.get("Messages", [])]


@asynccontextmanager
async def door() -> AsyncIterator[Client]:
    async with broker() as b:
        app = SqsApp(Gate(b.broker), account_id="123456789012", region="here")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sqs") as http:
            yield Client(b, app, http)


def served(test: Callable[[Client], Awaitable[None]]) -> Callable[[], None]:
    """A test that gets a client of a door of its own."""

    async def inside() -> None:
        async with door() as client:
            await test(client)

    def run() -> None:
        asyncio.run(inside())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@served
async def test_names_have_the_account_and_the_region(sqs: Client) -> None:
    url = await sqs.create()
    assert url == "http://sqs/123456789012/orders"
    found = await sqs.ask("GetQueueAttributes", QueueUrl=url, AttributeNames=["QueueArn"])
    assert found == {"Attributes": {"QueueArn": "arn:aws:sqs:here:123456789012:orders"}}


class Trail:
    """Instead of the audit trail."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    async def carry_out(self, asked: Asked, work: Callable[[], Awaitable[Any]], _request_id: str) -> Any:
        self.told.append((asked.operation, asked.resource))
        return await work()

    def flush(self) -> None:
        pass


@served
async def test_the_audit_trail_is_told_which_queues_a_change_is_about(sqs: Client) -> None:
    for name in ("orders", "letters"):
        await sqs.create(name)
    arn = "arn:aws:sqs:here:123456789012:"
    policy = json.dumps({"deadLetterTargetArn": f"{arn}letters", "maxReceiveCount": "1"})
    url = "http://sqs/123456789012/orders"
    trail = Trail()
    object.__setattr__(sqs.b.broker, "audit", trail)
    await sqs.ask("SetQueueAttributes", QueueUrl=url, Attributes={"RedrivePolicy": policy})
    task = await sqs.ask("StartMessageMoveTask", SourceArn=f"{arn}letters", DestinationArn=f"{arn}orders")
    await sqs.ask("CancelMessageMoveTask", TaskHandle=task["TaskHandle"], status=400)
    assert trail.told == [
        ("SetQueueAttributes", url),
        ("StartMessageMoveTask", f"{arn}letters {arn}orders"),
        ("CancelMessageMoveTask", task["TaskHandle"]),
    ]


@served
async def test_an_address_that_is_none_is_that_of_no_queue(sqs: Client) -> None:
    for url in ("http://[", "http://[::1/orders", "http://\u2100/orders", "no address", "http://sqs/123456789012/"):
        found = await sqs.ask("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"], status=400)
        assert found == "AWS.SimpleQueueService.NonExistentQueue;Sender"


@served
async def test_a_message_is_gone_after_its_retention_period(sqs: Client) -> None:
    url = await sqs.create(MessageRetentionPeriod="60", VisibilityTimeout="0")
    await sqs.ask("SendMessage", QueueUrl=url, MessageBody="old")
    await sqs.b.advance("50s")
    assert await sqs.bodies(url) == ["old"]
    await sqs.ask("SendMessage", QueueUrl=url, MessageBody="new")
    await sqs.b.advance("10s")
    assert await sqs.bodies(url) == ["new"]


@served
async def test_an_id_counts_for_five_minutes(sqs: Client) -> None:
    url = await sqs.create("orders.fifo", FifoQueue="true")

    async def send() -> str:
        message: dict[str, Any] = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "one"}
        return str((await sqs.ask("SendMessage", QueueUrl=url, **message))["MessageId"])

    first = await send()
    await sqs.b.advance("299999ms")
    assert await send() == first
    await sqs.b.advance("1ms")
    assert await send() != first


@served
async def test_a_full_disk_is_no_fault_of_the_sender(sqs: Client) -> None:
    url = await sqs.create()
    sqs.b.disk.capacity_bytes = 0
    assert await sqs.ask("SendMessage", QueueUrl=url, MessageBody="x" * 1000, status=503) == (
        "ServiceUnavailable;Receiver"
    )
    batch = [{"Id": "a", "MessageBody": "x" * 1000}]
    (failed,) = (await sqs.ask("SendMessageBatch", QueueUrl=url, Entries=batch))["Failed"]
    assert (failed["Id"], failed["Code"], failed["SenderFault"]) == ("a", "ServiceUnavailable", False)


@served
async def test_a_broken_disk_is_told_and_takes_only_its_partition_out_of_service(sqs: Client) -> None:
    url = await sqs.create()
    fault = sqs.b.faults.add("sync", errno.EIO, prefix="logs/orders/")
    assert await sqs.ask("SendMessage", QueueUrl=url, MessageBody="x", status=500) == "InternalFailure;Receiver"
    assert fault.hits


@served
async def test_a_mistake_of_ours_is_no_stack_trace(sqs: Client) -> None:
    async def fail(call: Any, request: Any) -> dict[str, Any]:
        raise RuntimeError("secret")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(table.ACTIONS, "ListQueues", table.ACTIONS["ListQueues"]._replace(handle=fail))
        assert await sqs.ask("ListQueues", status=500) == "InternalFailure;Receiver"


@served
async def test_a_long_poll_is_answered_when_a_delayed_message_is_due(sqs: Client) -> None:
    url = await sqs.create()
    await sqs.ask("SendMessage", QueueUrl=url, MessageBody="later", DelaySeconds=15)
    waiting = asyncio.create_task(sqs.bodies(url, WaitTimeSeconds=20))
    await sqs.b.advance("14s")
    assert not waiting.done()
    await sqs.b.advance("1s")
    assert await waiting == ["later"]


@served
async def test_a_long_poll_ends_with_its_time_or_with_the_door(sqs: Client) -> None:
    url = await sqs.create(ReceiveMessageWaitTimeSeconds="5")
    waiting = asyncio.create_task(sqs.bodies(url))
    await sqs.b.advance("5s")
    assert await waiting == []
    waiting = asyncio.create_task(sqs.bodies(url))
    await sqs.b.advance("1s")
    sqs.app.stop()
    assert await waiting == []
    assert await sqs.bodies(url) == []  # and nobody waits any more


@served
async def test_a_purge_cancels_many_that_wait(sqs: Client) -> None:
    url = await sqs.create()
    await sqs.b.publish_many("orders", [{"value": b"%d" % number, "delay": "1h"} for number in range(1500)])
    await sqs.ask("PurgeQueue", QueueUrl=url)
    assert await sqs.b.scheduled("orders") == []


@served
async def test_labels_that_somebody_else_wrote_do_not_matter(sqs: Client) -> None:
    await sqs.b.create_topic("odd", 1, **{"sqs.attributes": "[", "sqs.tags": '{"a": 1}'})
    await sqs.b.create_topic("odder", 1, **{"sqs.attributes": '{"DelaySeconds": "soon", "RedriveAllowPolicy": "x"}'})
    for name in ("odd", "odder"):
        url = (await sqs.ask("GetQueueUrl", QueueName=name))["QueueUrl"]
        assert (await sqs.ask("GetQueueAttributes", QueueUrl=url, AttributeNames=["DelaySeconds"])) == {
            "Attributes": {"DelaySeconds": "0"}
        }
        assert await sqs.ask("ListQueueTags", QueueUrl=url) == {}
        await sqs.ask("SendMessage", QueueUrl=url, MessageBody="x")
        assert await sqs.bodies(url) == ["x"]


@served
async def test_a_queue_that_the_node_has_no_partitions_for_is_refused(client: Client) -> None:
    await client.create("first")
    topics: Any = client.b.broker.topics
    topics._store._store._coordinator.peek()._limits = PartitionLimits(in_all=5)
    assert (await client.ask("CreateQueue", QueueName="second", status=400)).startswith("InvalidParameterValue")
    assert await client.b.topics() == ["first"]


@in_loop
async def test_whoever_hangs_up_takes_no_message_with_him() -> None:
    """In virtual time: nobody waits for the end of the poll."""
    async with broker(http=True) as b:
        await b.create_topic("orders", partitions=1)
        host, port = b.http.removeprefix("http://").split(":")
        _, client = await asyncio.open_connection(host, int(port))
        body = json.dumps({"QueueUrl": f"{b.http}/000000000000/orders", "WaitTimeSeconds": 20})
        head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
        client.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        while not b.broker.receiver._parked:
            await turn()
        client.close()
        while b.broker.receiver._parked:
            await turn()

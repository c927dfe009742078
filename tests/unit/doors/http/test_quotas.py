"""Quotas over HTTP and SQS: set by an admin, refused with 429 and when to come back, and nothing done meanwhile."""

import json
from itertools import count
from typing import Any

import httpx

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.testing import broker
from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.test_follow import Stream
from tests.unit.testing.loops import in_loop

ME = "ANONYMOUS"


def message(size: int, text: str = "x") -> dict[str, Any]:
    return {"messages": [{"value": text * size}]}


async def publish(client: Client, size: int, **headers: str) -> httpx.Response:
    return await client.http.post("/topics/orders/messages", json=message(size), headers=headers)


@served
async def test_quotas_are_set_shown_and_taken_away(client: Client) -> None:
    made = await client.put("/admin/quotas", user="alice", producer_byte_rate=1024, request_rate=2.5)
    assert made == {
        "user": "alice",
        "client_id": None,
        "producer_byte_rate": 1024,
        "consumer_byte_rate": None,
        "request_rate": 2.5,
        "request_percentage": None,
        "ip": None,
        "connection_creation_rate": None,
        "controller_mutation_rate": None,
    }
    await client.put("/admin/quotas", user="<default>", client_id="app/1", consumer_byte_rate=7)
    await client.put("/admin/quotas", user="alice", request_rate=None)
    listed = await client.get("/admin/quotas")
    assert [(each["user"], each["client_id"], each["request_rate"]) for each in listed["quotas"]] == [
        ("<default>", "app/1", None),
        ("alice", None, None),
    ]
    holds = await client.get("/admin/quotas/effective", user="alice", client_id="app/1")
    assert (holds["producer_byte_rate"], holds["consumer_byte_rate"]) == (1024, 7)
    await client.ask("DELETE", "/admin/quotas", params={"user": "alice"})
    await client.ask("DELETE", "/admin/quotas", params={"user": "alice"}, status=404)
    assert (await client.get("/admin/quotas"))["count"] == 1


@served
async def test_what_makes_no_sense_is_refused(client: Client) -> None:
    for body in ({"request_rate": 1}, {"user": "a", "request_rate": 0}, {"user": "a", "producer_byte_rate": 1.5}):
        await client.put("/admin/quotas", status=400, **body)
    await client.put("/admin/quotas", status=400, user="", request_rate=1)
    await client.put("/admin/quotas", status=400, user="a", connection_creation_rate=1)
    await client.ask("DELETE", "/admin/quotas", status=400)
    assert (await client.get("/admin/quotas"))["count"] == 0


@served
async def test_a_publisher_that_has_used_up_its_quota_is_told_when_to_come_back(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.put("/admin/quotas", user=ME, producer_byte_rate=1000)
    assert (await publish(client, 4000)).status_code == 200
    for _ in range(2):
        refused = await publish(client, 4000)
        assert (refused.status_code, refused.json()["code"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert 3 <= int(refused.headers["retry-after"]) <= 4
        assert refused.headers["x-ratelimit-limit"] == "1000"
    assert len(await client.b.read("orders")) == 1
    assert (await client.http.get("/topics")).status_code == 200, "nothing else is limited"
    await client.b.advance("4s")
    assert (await publish(client, 4000)).status_code == 200
    assert len(await client.b.read("orders")) == 2


@served
async def test_a_reader_in_debt_may_still_acknowledge(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.publish("orders", b"x" * 3000)
    await client.b.publish("orders", b"y")
    await client.put("/admin/quotas", user=ME, consumer_byte_rate=1000)
    receive: dict[str, Any] = {"group": "workers", "max_messages": 1}
    taken = await client.post("/topics/orders/receive", **receive)
    (held,) = taken["messages"]
    await client.post("/topics/orders/receive", status=429, **receive)
    await client.post("/messages/ack", receipt_handle=held["receipt_handle"])
    await client.b.advance("4s")
    (other,) = (await client.post("/topics/orders/receive", **receive))["messages"]
    assert other["value"] == "y"


@served
async def test_requests_are_counted_by_client_and_health_is_not(client: Client) -> None:
    await client.put("/admin/quotas", client_id="noisy", request_rate=2)
    codes = [(await client.http.get("/topics", headers={"X-Client-ID": "noisy"})).status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    assert (await client.http.get("/topics", headers={"X-Client-ID": "calm"})).status_code == 200
    assert (await client.http.get("/health", headers={"X-Client-ID": "noisy"})).status_code == 200
    counts = (await client.http.get("/metrics")).text
    (line,) = (each for each in counts.splitlines() if each.startswith("goqueue_broker_quota_throttles_total{"))
    assert 'quota="request_rate"' in line
    assert line.endswith((" 2", " 2.0"))


@in_loop
async def test_a_stream_is_slowed_down_and_brings_all() -> None:
    async with broker() as b:
        app = HttpApp(Gate(b.broker))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://goqueue") as http:
            await b.create_topic("orders")
            quota = {"user": ME, "consumer_byte_rate": 1000}
            assert (await http.put("/admin/quotas", json=quota)).status_code == 200
        stream = Stream(b, app, "/topics/orders/follow?from=earliest")
        for number in range(5):
            await b.publish("orders", b"%d" % number * 2000)
            await b.advance("10ms")
        assert not all(b"%d" % number * 2000 in stream.sent for number in range(5))
        await b.advance("1m")
        assert all(b"%d" % number * 2000 in stream.sent for number in range(5))
        stream.task.cancel()


@served
async def test_quotas_of_addresses_are_set_shown_and_taken_away(client: Client) -> None:
    made = await client.put("/admin/quotas", ip="10.0.0.7", connection_creation_rate=20)
    assert (made["ip"], made["user"], made["client_id"], made["connection_creation_rate"]) == (
        "10.0.0.7",
        None,
        None,
        20,
    )
    await client.put("/admin/quotas", ip="<default>", connection_creation_rate=5)
    listed = await client.get("/admin/quotas")
    assert {each["ip"]: each["connection_creation_rate"] for each in listed["quotas"]} == {
        "10.0.0.7": 20,
        "<default>": 5,
    }
    for ip, rate in (("10.0.0.7", 20), ("::1", 5)):
        assert (await client.get("/admin/quotas/effective", ip=ip))["connection_creation_rate"] == rate
    for wrong in ({"ip": "localhost"}, {"ip": "10.0.0.7", "user": "a"}, {"ip": "::FFFF:1.2.3.4"}):
        await client.put("/admin/quotas", status=400, connection_creation_rate=1, **wrong)
    await client.put("/admin/quotas", status=400, ip="10.0.0.7", request_rate=1)
    await client.ask("DELETE", "/admin/quotas", params={"ip": "10.0.0.7"})
    assert (await client.get("/admin/quotas/effective", ip="10.0.0.7"))["connection_creation_rate"] == 5


@in_loop
async def test_the_time_of_the_node_is_counted_over_http_and_sqs() -> None:
    async with broker() as b:
        gate = Gate(b.broker)
        app = HttpApp(gate, by_header={TARGET: SqsApp(gate)})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://goqueue") as http:
            made = await http.post("/", headers={"X-Amz-Target": "AmazonSQS.CreateQueue"}, json={"QueueName": "orders"})
            sqs = {"QueueUrl": made.json()["QueueUrl"], "MessageBody": "x"}
            assert (await http.put("/admin/quotas", json={"user": ME, "request_percentage": 10})).status_code == 200
            for path, body, headers, status in (
                ("/topics/orders/messages", message(1), {}, 429),
                ("/", sqs, {"X-Amz-Target": "AmazonSQS.SendMessage"}, 403),
            ):
                usual, gate.now_s = gate.now_s, count(0, 0.3).__next__  # each step takes so long
                assert (await http.post(path, json=body, headers=headers)).status_code == 200
                gate.now_s = usual
                refused = await http.post(path, json=body, headers=headers)
                assert (refused.status_code, "request_percentage" in refused.text) == (status, True)
                await b.advance("1m")
                assert (await http.post(path, json=body, headers=headers)).status_code == 200


@in_loop
async def test_sqs_says_it_in_its_own_words() -> None:
    async with broker() as b:
        gate = Gate(b.broker)
        app = HttpApp(gate, by_header={TARGET: SqsApp(gate)})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://goqueue") as http:

            async def ask(action: str, **body: Any) -> httpx.Response:
                return await http.post("/", headers={"X-Amz-Target": f"AmazonSQS.{action}"}, content=json.dumps(body))

            url = (await ask("CreateQueue", QueueName="orders")).json()["QueueUrl"]
            quota = {"user": ME, "producer_byte_rate": 1000, "consumer_byte_rate": 1000}
            assert (await http.put("/admin/quotas", json=quota)).status_code == 200
            assert (await ask("SendMessage", QueueUrl=url, MessageBody="x" * 3000)).status_code == 200
            refused = await ask("SendMessage", QueueUrl=url, MessageBody="y")
            assert (refused.status_code, refused.json()["__type"]) == (403, "com.amazonaws.sqs#RequestThrottled")
            assert refused.headers["x-amzn-query-error"] == "RequestThrottled;Sender"
            (got,) = (await ask("ReceiveMessage", QueueUrl=url)).json()["Messages"]
            assert (await ask("ReceiveMessage", QueueUrl=url)).status_code == 403
            gone = await ask("DeleteMessage", QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])
            assert gone.status_code == 200, "who owes something may settle"
            await b.advance("4s")
            assert (await ask("SendMessage", QueueUrl=url, MessageBody="y")).status_code == 200

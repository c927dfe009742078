"""A topic followed as server-sent events. httpx would wait for the end of the body, so these speak ASGI themselves."""

import asyncio
import json
from typing import Any

import httpx

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.testing import MemoryBroker, broker
from tests.unit.doors.http.door_client import Client, served


class Stream:
    """One client that follows; it takes what it is sent only while it is `ready`."""

    def __init__(self, b: MemoryBroker, app: HttpApp, path: str, **headers: str) -> None:
        self.b = b
        self.status = 0
        self.sent = b""
        self.sends = 0
        self.ready = asyncio.Event()
        self.ready.set()
        self._gone = asyncio.Event()
        self._is_read = False
        route, _, query = path.partition("?")
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": route,
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.sends += 1
        await self.ready.wait()
        self.sent += message["body"]

    def leave(self) -> None:
        self._gone.set()

    async def events(self) -> list[tuple[str, Any, str]]:
        """Kind, data and id of all that came by now."""
        await self.b.advance(0)
        found = []
        for block in self.sent.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "data" in fields:
                found.append((fields["event"], json.loads(fields["data"]), fields.get("id", "")))
        return found

    async def values(self) -> list[str]:
        return [data["value"] for kind, data, _ in await self.events() if kind == "message"]


def watchers(b: MemoryBroker, topic: str = "orders") -> int:
    image = b.broker.topics.image.topics[topic]
    return sum(len(b.broker.topics.replica(topic, number)._watchers) for number in range(image.partitions))


def follow(client: Client, query: str = "", **headers: str) -> Stream:
    return Stream(client.b, HttpApp(Gate(client.b.broker)), f"/topics/orders/follow{query}", **headers)


@served
async def test_messages_come_as_they_are_published(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    await client.b.publish("orders", b"before", partition=0)
    listeners = len(client.b.broker.topics.on_change)
    stream = follow(client)
    assert await stream.events() == []
    assert stream.status == 200
    await client.b.publish("orders", b"a", key=b"k", partition=0, priority="high")
    await client.b.publish("orders", b"b", partition=1)
    first, second = await stream.events()
    kind, data, event_id = first
    assert (kind, data["value"], data["key"], data["priority"], data["offset"]) == ("message", "a", "k", "high", 1)
    assert (event_id, second[1]["value"], second[2]) == ("0:2,1:0", "b", "0:2,1:1")
    stream.leave()
    await stream.task
    assert watchers(client.b) == 0
    assert len(client.b.broker.topics.on_change) == listeners


@served
async def test_a_client_that_comes_back_goes_on_where_it_was(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    for number in range(6):
        await client.b.publish("orders", b"%d" % number, partition=number % 2)
    stream = follow(client, "?from=earliest")
    seen = await stream.events()
    assert sorted(data["value"] for _, data, _ in seen) == [*"012345"]
    cut, (_, _, event_id) = seen[:3], seen[2]
    stream.leave()
    again = follow(client, "?from=latest", last_event_id=event_id)
    rest = await again.events()
    assert sorted(data["value"] for _, data, _ in [*cut, *rest]) == [*"012345"]
    stream = follow(client, "?last_event_id=0:3,1:2")
    assert await stream.values() == ["5"]


@served
async def test_a_follower_starts_at_an_offset_or_a_time(client: Client) -> None:
    await client.b.create_topic("orders")
    for value in (b"a", b"b", b"c"):
        await client.b.publish("orders", value)
        await client.b.advance("1m")
    assert await follow(client, "?offset=1&partition=0").values() == ["b", "c"]
    assert await follow(client, "?offset=1").values() == ["b", "c"]
    assert await follow(client, "?from_time=-90s").values() == ["c"]
    assert await follow(client, "?from=earliest&contains=b").values() == ["b"]
    assert await follow(client, "?from=latest").values() == []


@served
async def test_filtered_messages_still_count_as_seen(client: Client) -> None:
    await client.b.create_topic("orders")
    stream = follow(client, "?key=b&header=tenant:x")
    for key, tenant in ((b"a", b"x"), (b"b", b"y"), (b"b", b"x"), (b"a", b"x")):
        await client.b.publish("orders", key, key=key, headers={"tenant": tenant})
        await client.b.advance(0)
    ((_, data, event_id),) = await stream.events()
    assert (data["offset"], event_id) == (2, "0:3")
    assert stream.sent.endswith(b"id: 0:4\n\n")


@served
async def test_only_what_is_committed_and_due_is_shown(client: Client) -> None:
    await client.b.create_topic("orders")
    stream = follow(client)
    await client.b.publish("orders", b"later", delay="1h")
    assert await stream.values() == []
    await client.b.advance("1h")
    assert await stream.values() == ["later"]


@served
async def test_silence_is_broken_every_15_seconds(client: Client) -> None:
    await client.b.create_topic("orders")
    stream = follow(client)
    await client.b.advance("14s")
    assert b"still here" not in stream.sent
    for _ in range(3):
        await client.b.advance("15s")
    assert stream.sent.count(b": still here\n\n") == 3
    await client.b.publish("orders", b"x")
    assert await stream.values() == ["x"]


@served
async def test_a_slow_client_costs_no_memory(client: Client) -> None:
    await client.b.create_topic("orders")
    stream = follow(client, "?from=earliest")
    await client.b.advance(0)
    stream.ready.clear()
    before = stream.sends
    for _ in range(20):
        await client.b.publish_many("orders", [b"x" * 10_000] * 20)
        await client.b.advance("1m")
    assert stream.sends == before + 1
    stream.ready.set()
    assert await stream.values() == ["x" * 10_000] * 400


@served
async def test_what_retention_takes_before_it_is_read_is_told(client: Client) -> None:
    await client.b.create_topic("orders")
    stream = follow(client)
    await client.b.advance(0)
    stream.ready.clear()
    for _ in range(3):
        await client.b.publish("orders", b"x")
        await client.b.advance(0)
    client.b.broker.topics.replica("orders", 0).delete_before(3)
    stream.ready.set()
    await client.b.publish("orders", b"y")
    assert [(kind, data.get("value"), data.get("to")) for kind, data, _ in await stream.events()] == [
        ("message", "x", None),
        ("skipped", None, 3),
        ("message", "y", None),
    ]


@served
async def test_new_partitions_are_followed_too(client: Client) -> None:
    await client.b.create_topic("orders")
    stream = follow(client)
    await client.post("/admin/topics/orders/partitions", count=2)
    await client.b.publish("orders", b"a", partition=1)
    await client.b.publish("orders", b"b", partition=0)
    assert sorted(await stream.values()) == ["a", "b"]


@served
async def test_a_deleted_topic_ends_its_streams(client: Client) -> None:
    await client.b.create_topic("orders")
    stream = follow(client)
    await client.b.advance(0)
    await client.b.delete_topic("orders")
    await client.b.create_topic("orders")
    ((kind, data, _),) = await stream.events()
    assert kind == "end"
    assert "orders" in data["reason"]
    await stream.task


@served
async def test_what_cannot_be_followed(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    await client.get("/topics/none/follow", status=404)
    for query, status in (
        ({"partition": 7}, 404),
        ({"partition": 0, "offset": 99}, 400),
        ({"offset": 0}, 400),
        ({"from": "noon"}, 400),
        ({"from_time": "noon"}, 400),
        ({"from": "latest", "from_time": "-1h"}, 400),
        ({"last_event_id": "x"}, 400),
        ({"lane": "x"}, 400),
    ):
        await client.get("/topics/orders/follow", **query, status=status)
    assert watchers(client.b) == 0


def test_a_node_that_stops_says_goodbye() -> None:
    async def inside() -> None:
        async with broker(http=True, clock="real") as b, httpx.AsyncClient(base_url=b.http) as http:
            await b.create_topic("orders")
            async with http.stream("GET", "/topics/orders/follow?from=earliest") as reply:
                assert reply.headers["content-type"] == "text/event-stream"
                lines = reply.aiter_lines()
                assert await anext(lines) == "retry: 1000"
                await b.publish("orders", b"x")
                while not (line := await anext(lines)).startswith("data: "):
                    pass
                assert json.loads(line.removeprefix("data: "))["value"] == "x"
                async with asyncio.timeout(1):  # at once, not when the time to drain is over
                    await b.close()
                    rest = [line async for line in lines]
                assert 'data: {"reason":"the node stops"}' in rest

    asyncio.run(inside())

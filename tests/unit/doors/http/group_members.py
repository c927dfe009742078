"""Members of groups that speak HTTP, and a topic to share."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from tests.unit.doors.http.door_client import Client

GROUP = "/groups/g"


class Member:
    """One client in the group `g`: it remembers what it was told, as a client would."""

    def __init__(self, client: Client, joined: dict[str, Any]) -> None:
        self.client = client
        self.id: str = joined["member_id"]
        self.generation: int = joined["generation"]
        self.assigned: list[str] = joined["assigned_partitions"]

    @property
    def who(self) -> dict[str, Any]:
        return {"member_id": self.id, "generation": self.generation}

    async def beat(self) -> dict[str, Any]:
        reply: dict[str, Any] = await self.client.post(f"{GROUP}/heartbeat", **self.who)
        self.generation, self.assigned = reply["generation"], reply["assigned_partitions"]
        return reply

    async def poll(self, wait: str = "0s", **more: Any) -> dict[str, Any]:
        reply: dict[str, Any] = await self.client.get(f"{GROUP}/poll", timeout=wait, **self.who, **more)
        self.generation = reply["generation"]
        return reply

    async def values(self, **more: Any) -> list[str]:
        return [each["value"] for each in (await self.poll(**more))["messages"]]

    async def leave(self) -> None:
        assert await self.client.post(f"{GROUP}/leave", member_id=self.id) == {"status": "left", "left": True}


async def join(client: Client, *topics: str, name: str = "app", way: str = "join", **more: Any) -> Member:
    return Member(
        client, await client.post(f"{GROUP}/{way}", client_id=name, topics=list(topics or ["orders"]), **more)
    )


async def settle(*members: Member) -> None:
    """All hear what they have now, and those that waited for others too."""
    for _ in range(2):
        for member in members:
            await member.beat()


async def topic(client: Client, partitions: int = 1, name: str = "orders", **options_given: str) -> None:
    options = {option.replace("_", "."): value for option, value in options_given.items()}
    await client.post("/topics", name=name, num_partitions=partitions, options=options, status=201)


async def publish(client: Client, *values: str, name: str = "orders", **more: Any) -> None:
    reply = await client.post(f"/topics/{name}/messages", messages=[{"value": value, **more} for value in values])
    assert [each.get("error") for each in reply["results"]] == [None] * len(values)


async def numbered(client: Client, per_partition: int, partitions: int) -> set[str]:
    """Publish "0.0", "0.1" ... into each partition."""
    for number in range(partitions):
        await publish(client, *(f"{number}.{each}" for each in range(per_partition)), partition=number)
    return {f"{number}.{each}" for number in range(partitions) for each in range(per_partition)}


async def ack(client: Client, message: dict[str, Any], *, status: int = 200) -> Any:
    return await client.post("/messages/ack", receipt_handle=message["receipt_handle"], status=status)


@asynccontextmanager
async def restarted(client: Client) -> AsyncIterator[Client]:
    """The same node after a restart, with a new door."""
    await client.b.restart()
    app = HttpApp(Gate(client.b.broker))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://goqueue") as http:
        yield Client(client.b, http)


async def started(client: Client, request: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    """A request that waits."""
    task = asyncio.ensure_future(request)
    await client.b.advance(0)
    assert not task.done()
    return task

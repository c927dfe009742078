"""A group over HTTP is read as a queue, or it has members and offsets: its name says which until it is deleted."""

from typing import Any

from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.group_members import GROUP, ack, join, publish, restarted, topic

OTHER_KIND = "INCONSISTENT_GROUP_PROTOCOL"
DAY = "24h"


async def receive(client: Client, group: str = "g", *, status: int = 200) -> Any:
    return await client.post("/topics/orders/receive", group=group, max_messages=1, status=status)


@served
async def test_a_queue_group_has_no_members_and_no_offsets(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b")
    (message,) = (await receive(client))["messages"]
    await ack(client, message)
    commit: dict[str, Any] = {"offsets": {"orders": {"0": 2}}}
    assert (await client.post(f"{GROUP}/offsets", **commit, status=409))["code"] == OTHER_KIND
    joined = await client.post(f"{GROUP}/join", client_id="app", topics=["orders"], status=409)
    assert joined["code"] == OTHER_KIND
    assert [each["value"] for each in (await receive(client))["messages"]] == ["b"]
    assert (await client.get(GROUP))["type"] == "share"


@served
async def test_nobody_reads_as_a_queue_with_the_name_of_a_group_that_commits_offsets(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b")
    await client.post(f"{GROUP}/offsets", offsets={"orders": {"0": 1}})
    assert (await receive(client, status=409))["code"] == OTHER_KIND
    replay: dict[str, Any] = {"topic": "orders", "from": "earliest"}
    assert (await client.post(f"{GROUP}/replay", **replay, status=409))["code"] == OTHER_KIND
    leases = await client.post(f"{GROUP}/leases", topics=["orders"], max_messages=1, status=409)
    assert leases["code"] == OTHER_KIND
    await receive(client, "queue")
    await client.post("/groups/queue/fork", name="g", status=409)
    assert (await client.get(GROUP))["type"] == "classic"
    await client.ask("DELETE", GROUP)
    assert [each["value"] for each in (await receive(client))["messages"]] == ["a"]


@served
async def test_members_go_on_where_they_were_long_after_their_offsets_are_forgotten(client: Client) -> None:
    await topic(client, retention_ms="-1")
    await publish(client, "a", "b")
    member = await join(client)
    (message,) = (await member.poll(max_messages=1))["messages"]
    await ack(client, message)
    await member.leave()
    for _ in range(10):
        await client.b.advance(DAY)
    async with restarted(client) as later:
        assert (await receive(later, status=409))["code"] == OTHER_KIND
        again = await join(later)
        assert await again.values() == ["b"]

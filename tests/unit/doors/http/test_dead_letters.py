"""Dead letters over HTTP."""

import asyncio
from typing import Any

from tests.unit.doors.http.door_client import Client, served


async def with_dead(client: Client, *values: str, partitions: int = 1, **more: Any) -> None:
    """A topic whose group has rejected all of these."""
    await client.b.create_topic("orders", partitions=partitions)
    for number, value in enumerate(values):
        await client.b.publish("orders", value.encode(), key=value.encode(), partition=number % partitions, **more)
    await reject_all(client)


async def reject_all(client: Client) -> None:
    while found := await client.b.receive("orders", group="packers"):
        for message in found:
            await message.reject("no such customer")
    await client.b.advance("1ms")


async def listed(client: Client, **query: Any) -> list[str]:
    return [each["value"] for each in (await client.get("/topics/orders/dlq", **query))["messages"]]


@served
async def test_a_dead_letter_says_what_became_of_its_message(client: Client) -> None:
    await with_dead(client, "a", headers={"tenant": b"x"}, priority="high")
    found = await client.get("/topics/orders/dlq/0/0")
    assert found == {
        "dlq_topic": "orders.dlq",
        "partition": 0,
        "offset": 0,
        "original_topic": "orders",
        "original_partition": 0,
        "original_offset": 0,
        "original_timestamp": "2026-01-01T00:00:00Z",
        "group": "packers",
        "reason": "rejected",
        "error": "no such customer",
        "attempts": 1,
        "first_delivered_at": "2026-01-01T00:00:00Z",
        "died_at": "2026-01-01T00:00:00Z",
        "redrives": 0,
        "key": "a",
        "value": "a",
        "priority": "high",
        "headers": {"tenant": "x", "gq-priority": "high"},
    }
    assert await client.get("/topics/orders/dlq") == {
        "topic": "orders",
        "dlq_topic": "orders.dlq",
        "messages": [found],
        "count": 1,
        "next": None,
    }


@served
async def test_dead_letters_come_in_pages_and_through_filters(client: Client) -> None:
    await with_dead(client, *"abcdefg", partitions=2)
    values, cursor = [], None
    for _ in range(10):
        page = await client.get("/topics/orders/dlq", limit=2, **({"cursor": cursor} if cursor else {}))
        assert page["count"] <= 2
        values += [each["value"] for each in page["messages"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert values == [*"aceg", *"bdf"]
    assert await listed(client, key="d") == ["d"]
    assert await listed(client, contains="f", reason="rejected") == ["f"]
    assert await listed(client, reason="expired") == []
    assert await listed(client, header="gq-dlq-offset:0") == ["a", "b"]
    assert await listed(client, **{"from": "+1h"}) == []
    assert sorted(await listed(client, **{"from": "-1h", "lane": "2,high"})) == [*"abcdefg"]


@served
async def test_a_redrive_sends_them_back_once(client: Client) -> None:
    await with_dead(client, *"abc")
    report = await client.post("/topics/orders/dlq/redrive", dry_run=True)
    assert (report["redriven"], report["state"], report["dry_run"]) == (3, "done", True)
    await client.get("/topics/orders/dlq/redrive", status=404)
    report = await client.post("/topics/orders/dlq/redrive", filter={"key": "b"})
    assert (report["redriven"], report["filtered_out"], report["state"]) == (1, 2, "done")
    assert await listed(client) == ["a", "c"]
    assert await client.get("/topics/orders/dlq/redrive") == report
    assert [each.value for each in await client.b.receive("orders", group="packers")] == [b"b"]
    await client.restart()
    assert (await client.post("/topics/orders/dlq/redrive"))["redriven"] == 2


@served
async def test_a_redrive_takes_only_the_places_it_is_given(client: Client) -> None:
    await with_dead(client, *"abc")
    places = [f"{each['partition']}/{each['offset']}" for each in (await client.get("/topics/orders/dlq"))["messages"]]
    report = await client.post("/topics/orders/dlq/redrive", places=[places[0], places[2]])
    assert (report["redriven"], report["filtered_out"]) == (2, 1)
    assert await listed(client) == ["b"]
    await client.post("/topics/orders/dlq/redrive", places=["here"], status=400)


@served
async def test_a_redrive_may_go_elsewhere_and_leaves_what_comes_back_again_and_again(client: Client) -> None:
    await with_dead(client, "a")
    await client.b.create_topic("repair")
    await client.post("/topics/orders/dlq/redrive")
    await reject_all(client)
    report = await client.post("/topics/orders/dlq/redrive", redrives_max=1)
    assert (report["redriven"], report["looping"]) == (0, 1)
    assert (await client.get("/topics/orders/dlq"))["messages"][0]["redrives"] == 1
    await client.post("/topics/orders/dlq/redrive", to="repair")
    assert [each.value for each in await client.b.read("repair")] == [b"a"]
    await client.post("/topics/orders/dlq/redrive", to="none", status=404)


@served
async def test_a_long_redrive_goes_on_after_its_answer_and_can_be_stopped(client: Client) -> None:
    await with_dead(client, *"abcdefgh")
    asked = asyncio.create_task(client.post("/topics/orders/dlq/redrive", rate=1, wait="2s", status=202))
    await client.b.advance("2s")
    report = await asked
    assert (report["state"], report["ended_at"], report["redriven"] >= 2) == ("running", None, True)
    refusal = await client.post("/topics/orders/dlq/redrive", status=409)
    assert refusal["code"] == "REDRIVE_UNDER_WAY"
    await client.b.advance("2s")
    stopping = await client.delete("/topics/orders/dlq/redrive")
    assert stopping["state"] == "stopping"
    await client.b.advance("10s")
    report = await client.get("/topics/orders/dlq/redrive")
    assert report["state"] == "stopped"
    assert len(await listed(client)) == 8 - report["redriven"] > 0
    report = await client.post("/topics/orders/dlq/redrive")
    assert report["state"] == "done"
    assert sorted(each.value or b"" for each in await client.b.receive("orders", group="packers")) == [
        letter.encode() for letter in "abcdefgh"
    ]


@served
async def test_one_is_discarded_and_the_rest_purged(client: Client) -> None:
    await with_dead(client, *"abc")
    await client.delete("/topics/orders/dlq/0/1")
    assert await listed(client) == ["a", "c"]
    await client.delete("/topics/orders/dlq/0/1", status=404)
    await client.get("/topics/orders/dlq/0/1", status=404)
    assert await client.delete("/topics/orders/dlq") == {"topic": "orders", "purged": 3}
    assert await listed(client) == []
    assert await client.delete("/topics/orders/dlq") == {"topic": "orders", "purged": 0}


@served
async def test_what_cannot_be_asked_of_dead_letters(client: Client) -> None:
    await client.b.create_topic("orders")
    assert await listed(client) == []
    assert (await client.post("/topics/orders/dlq/redrive"))["redriven"] == 0
    for path in ("/topics/none/dlq", "/topics/orders/dlq/0/0", "/topics/orders/dlq/7/0"):
        await client.get(path, status=404)
    for query in ({"lane": "urgent"}, {"from": "noon"}, {"cursor": "x"}, {"limit": 0}, {"header": "tenant"}):
        await client.get("/topics/orders/dlq", **query, status=400)
    wrong: list[dict[str, Any]] = [
        {"filter": {"lane": "urgent"}},
        {"filter": {"kee": "x"}},
        {"filter": {"from": "-1h", "to": "-2h"}},
        {"rate": -1},
        {"redrives_max": 0},
        {"wait": "1h"},
        {"wait": "soon"},
    ]
    for body in wrong:
        await client.post("/topics/orders/dlq/redrive", **body, status=400)
    await client.post("/topics/none/dlq/redrive", status=404)
    await client.delete("/topics/none/dlq", status=404)
    await client.delete("/topics/none/dlq/redrive", status=404)

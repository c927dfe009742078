"""What waits for its time, over HTTP."""

from typing import Any

from tests.unit.doors.http.door_client import Client, served


async def one_partition(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)


async def delay(client: Client, *delays: str) -> list[int]:
    messages = [{"value": each, "key": "k", "delay": each} for each in delays]
    results = (await client.post("/topics/orders/messages", messages=messages))["results"]
    return [result["offset"] for result in results]


@served
async def test_what_waits_is_listed_by_its_time(client: Client) -> None:
    await one_partition(client)
    later, sooner, last = await delay(client, "2h", "90s", "3h")
    found = await client.get("/topics/orders/delayed")
    assert [each["offset"] for each in found["messages"]] == [sooner, later, last]
    assert found["messages"][0] == {
        "topic": "orders",
        "partition": 0,
        "offset": sooner,
        "deliver_at": "2026-01-01T00:01:30Z",
        "time_remaining": "1m30s",
        "state": "pending",
    }
    await client.b.advance("1m500ms")
    found = await client.get("/topics/orders/delayed", limit=1, skip=1)
    assert [each["offset"] for each in found["messages"]] == [later]
    assert (found["count"], found["total"], found["limit"], found["skip"]) == (1, 3, 1, 1)
    assert (await client.get("/topics/orders/delayed"))["messages"][0]["time_remaining"] == "29.5s"


@served
async def test_one_that_waits_is_shown_with_its_content(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=2, status=201)
    sent = {"value": "x", "delay": "1h", "partition": 1, "priority": "high"}
    (result,) = (await client.post("/topics/orders/messages", messages=[sent]))["results"]
    found = await client.get(f"/topics/orders/delayed/1/{result['offset']}")
    assert (found["value"], found["priority"], found["published_at"]) == ("x", "high", "2026-01-01T00:00:00Z")
    assert await client.get(f"/topics/orders/delayed/{result['offset']}") == found
    assert await client.get(f"/topics/orders/delayed/{result['offset']}", partition=1) == found
    await client.get(f"/topics/orders/delayed/{result['offset']}", partition=0, status=404)


@served
async def test_a_cancelled_message_never_comes(client: Client) -> None:
    await one_partition(client)
    first, second = await delay(client, "1m", "2m")
    cancelled = await client.delete(f"/topics/orders/delayed/0/{first}")
    assert cancelled == {"cancelled": True, "canceled": True, "topic": "orders", "partition": 0, "offset": first}
    assert (await client.delete(f"/topics/orders/delayed/0/{first}", status=404))["code"] == "NOT_PENDING"
    await client.b.advance("1h")
    assert [each.value for each in await client.b.read("orders")] == [b"2m"]
    await client.delete(f"/topics/orders/delayed/0/{second}", status=404)


@served
async def test_a_message_is_put_off_or_brought_forward(client: Client) -> None:
    await one_partition(client)
    first, second = await delay(client, "1h", "2h")
    moved = await client.patch(f"/topics/orders/delayed/0/{first}", delay="3h")
    assert (moved["deliver_at"], moved["time_remaining"], moved["value"]) == ("2026-01-01T03:00:00Z", "3h", "1h")
    await client.patch(f"/topics/orders/delayed/0/{second}", deliverAt="2026-01-01T00:00:10Z", delay=None)
    await client.b.advance("10s")
    assert [each.value for each in await client.b.read("orders")] == [b"2h"]
    await client.b.advance("3h")
    assert [each.value for each in await client.b.read("orders")] == [b"2h", b"1h"]


@served
async def test_what_cannot_be_done_with_a_delayed_message(client: Client) -> None:
    await one_partition(client)
    (offset,) = await delay(client, "1h")
    place = f"/topics/orders/delayed/0/{offset}"
    wrong: list[dict[str, Any]] = [{}, {"delay": "1h", "deliver_at": "now"}, {"delay": "soon"}, {"deliver_at": "noon"}]
    for body in wrong:
        await client.patch(place, **body, status=400)
    await client.patch("/topics/orders/delayed/0/77", delay="1h", status=404)
    await client.patch("/topics/none/delayed/0/77", delay="1h", status=404)
    await client.get("/topics/none/delayed", status=404)
    await client.get("/topics/orders/delayed/x", status=400)
    await client.get("/topics/orders/delayed/-1", status=400)
    await client.get("/topics/orders/delayed", limit=0, status=400)
    await client.get("/topics/orders/delayed", skip=-1, status=400)
    assert (await client.get(place))["deliver_at"] == "2026-01-01T01:00:00Z"


@served
async def test_delays_are_counted(client: Client) -> None:
    await one_partition(client)
    first, *_ = await delay(client, "1h", "3h", "5h")
    await client.delete(f"/topics/orders/delayed/0/{first}")
    await client.b.advance("3h")
    found = await client.get("/delay/stats")
    assert (found["total_scheduled"], found["total_pending"], found["pending_count"]) == (3, 1, 1)
    assert (found["total_delivered"], found["delivered_count"]) == (1, 1)
    assert (found["total_canceled"], found["total_cancelled"], found["cancelled_count"]) == (1, 1, 1)
    assert (found["avg_delay"], found["next_delivery_at"]) == ("3h", "2026-01-01T05:00:00Z")
    assert found["by_topic"] == {"orders": 1}
    assert found["timer_wheel"]["current_active"] == 1


@served
async def test_a_message_comes_again_and_again(client: Client) -> None:
    await one_partition(client)
    body = {"topic": "orders", "cron": "0 7 * * *", "timezone": "Europe/Berlin", "value": "report", "priority": "low"}
    made = await client.ask("PUT", "/schedules/daily", body)
    assert (made["next_run"], made["last_run"], made["value"]) == ("2026-01-01T06:00:00Z", None, "report")
    await client.b.advance("2 days")
    first, second = await client.b.read("orders")
    assert (first.value, first.priority, second.value) == (b"report", "low", b"report")
    await client.restart()
    found = await client.get("/schedules/daily")
    assert found == made | {"next_run": "2026-01-03T06:00:00Z", "last_run": "2026-01-02T06:00:00Z"}
    assert await client.delete("/schedules/daily") == {"deleted": True, "name": "daily"}
    await client.b.advance("2 days")
    assert len(await client.b.read("orders")) == 2


@served
async def test_schedules_are_listed_in_pages_and_replaced(client: Client) -> None:
    await one_partition(client)
    for name in "cab":
        await client.ask("PUT", f"/schedules/{name}", {"topic": "orders", "cron": "0 * * * *", "value": name})
    found = await client.get("/schedules", limit=2)
    assert ([each["name"] for each in found["schedules"]], found["total"]) == (["a", "b"], 3)
    found = await client.get("/schedules", skip=2)
    assert [each["name"] for each in found["schedules"]] == ["c"]
    await client.ask("PUT", "/schedules/a", {"topic": "orders", "cron": "0 0 * * *", "value": "other"})
    assert (await client.get("/schedules/a"))["value"] == "other"
    assert (await client.get("/schedules"))["total"] == 3


@served
async def test_schedules_that_cannot_be(client: Client) -> None:
    await one_partition(client)
    good = {"topic": "orders", "cron": "0 7 * * *", "value": "x"}
    for change in ({"cron": "7"}, {"timezone": "Nowhere/Town"}, {"cron": "0 0 30 2 *"}, {"value_base64": "eA=="}):
        refusal = await client.ask("PUT", "/schedules/bad", good | change, status=400)
        assert refusal["error"]
    await client.ask("PUT", "/schedules/bad", good | {"topic": "none"}, status=404)
    await client.ask("PUT", f"/schedules/{'x' * 256}", good, status=400)
    await client.get("/schedules/bad", status=404)
    await client.delete("/schedules/bad", status=404)

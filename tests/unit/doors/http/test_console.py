"""What the console is told: one reading for all who ask, as changes, and settling by place."""

import asyncio
import gzip
from typing import Any

from goqueue.doors.http.console_files import POLICY, sources
from goqueue.model.console import Console
from tests.unit.doors.http.door_client import Client, door, served


async def reading(client: Client, since: int = 0) -> dict[str, object]:
    query: dict[str, Any] = {"since": f"1:{since}"} if since else {}
    told = await client.get("/console/reading", **query)
    (node,) = told["nodes"].values()
    found: dict[str, object] = node
    return found


@served
async def test_a_reading_has_topics_and_groups_and_then_what_has_changed(client: Client) -> None:
    await client.b.create_topic("orders", partitions=1)
    await client.b.create_topic("quiet", partitions=1)
    for _ in range(3):
        await client.b.publish("orders", b"x")
    await client.b.receive("orders", "packers", max_messages=2)
    whole = await reading(client)
    assert whole["whole"] is True
    assert sorted(whole["topics"]) == ["orders", "quiet"]  # type: ignore[call-overload]
    orders = whole["topics"]["orders"]  # type: ignore[index]
    assert (orders["partitions"], orders["messages"], orders["published"], orders["delivered"]) == (1, 3, 3, 2)
    row = whole["groups"]["packers"]["topics"]["orders"]  # type: ignore[index]
    assert (row["ready"], row["in_flight"], row["lag"], row["served"]) == (1, 2, 3, 2)
    cursor = int(str(whole["cursor"]))
    await client.b.publish("orders", b"x")
    assert (await reading(client, cursor))["topics"] == {}, "within a second it is the same reading"
    await client.b.advance("1s")
    changed = await reading(client, cursor)
    assert (changed["whole"], sorted(changed["topics"])) == (False, ["orders"])  # type: ignore[call-overload]
    assert changed["topics"]["orders"]["messages"] == 4  # type: ignore[index]
    await client.ask("DELETE", "/topics/orders")
    await client.b.advance("1s")
    gone = await reading(client, int(str(changed["cursor"])))
    assert gone["gone_topics"] == ["orders"]
    assert (await reading(client, 7))["whole"] is True, "a cursor from elsewhere gets everything"
    await client.get("/console/reading", since="1:", status=400)


@served
async def test_many_who_look_cost_one_reading(client: Client) -> None:
    await client.b.create_topic("orders")
    first = await reading(client)
    for _ in range(50):
        assert (await reading(client))["cursor"] == first["cursor"]


@served
async def test_dead_letters_are_counted_until_somebody_deals_with_them(client: Client) -> None:
    await client.b.create_topic("orders", partitions=1)
    for _ in range(3):
        await client.b.publish("orders", b"x")
    for message in await client.b.receive("orders", "packers", max_messages=3):
        await message.reject("no such fruit")
    await client.b.advance("1s")
    assert (await reading(client))["topics"]["orders.dlq"]["dead"] == 3  # type: ignore[index]
    await client.ask("DELETE", "/topics/orders/dlq/0/1")
    await client.b.advance("1s")
    assert (await reading(client))["topics"]["orders.dlq"]["dead"] == 2  # type: ignore[index]


@served
async def test_an_operator_settles_by_place(client: Client) -> None:
    await client.b.create_topic("orders", partitions=1)
    for _ in range(3):
        await client.b.publish("orders", b"x")
    place: dict[str, Any] = {"topic": "orders", "partition": 0}
    settle = "/groups/packers/settle"
    (held,) = await client.b.receive("orders", "packers", consumer="hung", max_messages=1)
    for action in ({"action": "release"}, {"action": "extend", "timeout": "10m"}):
        await client.post(settle, **place, offset=1, **action, status=409)
    await client.post(settle, **place, offset=0, action="extend", status=400)
    await client.post(settle, **place, offset=0, action="extend", timeout="10m")
    await client.b.advance("5m")
    assert await client.b.receive("orders", "packers", max_messages=1, lease="1m") != [held], "it is held still"
    await client.post(settle, **place, offset=1, action="release")
    await client.post(settle, **place, offset=0, action="release")
    (again,) = await client.b.receive("orders", "packers", consumer="next", max_messages=1)
    assert (again.offset, again.attempt) == (0, 2)
    await client.post("/messages/ack", receipt_handle=held.receipt, status=410)
    await client.post(settle, **place, offset=0, action="ack")
    await client.post(settle, **place, offset=0, action="ack", status=409)
    await client.post(settle, **place, offset=1, action="ack")
    left = await client.b.receive("orders", "packers", max_messages=10)
    assert [each.offset for each in left] == [2]
    await client.post(settle, **place, offset=2, action="reject", reason="poison")
    await client.b.advance("1s")
    (letter,) = (await client.get("/topics/orders/dlq"))["messages"]
    assert letter["error"] == "poison"
    await client.post(settle, **place, offset=0, action="eat", status=400)
    for unknown in ({"topic": "nowhere"}, {"partition": 7}, {"offset": 3}):
        await client.post(settle, **{**place, "offset": 0, "action": "ack", **unknown}, status=404)
    await client.post("/groups/nobody/settle", **place, offset=0, action="ack", status=404)
    await client.b.publish("orders", b"the next")
    (last,) = await client.b.receive("orders", "packers", max_messages=10)
    assert last.offset == 3


@served
async def test_a_schedule_runs_now_and_its_times_stay(client: Client) -> None:
    await client.b.create_topic("jobs", partitions=2)
    wanted: dict[str, Any] = {"topic": "jobs", "cron": "0 7 * * *", "value": "report", "key": "k", "priority": "high"}
    made = await client.put("/schedules/nightly", **wanted)
    ran = await client.post("/schedules/nightly/run")
    place = f"/topics/jobs/partitions/{ran['partition']}/messages"
    (message,) = (await client.get(place, offset=ran["offset"]))["messages"]
    assert (message["value"], message["key"], message["priority"]) == ("report", "k", "high")
    after = await client.get("/schedules/nightly")
    assert (after["next_run"], after["last_run"]) == (made["next_run"], None)
    paused = await client.post("/schedules/nightly/pause")
    assert (paused["paused"], paused["next_run"], "value" in paused) == (True, None, False)
    assert (await client.get("/schedules"))["schedules"][0]["paused"] is True
    assert (await client.post("/schedules/nightly/run"))["topic"] == "jobs", "by hand it runs all the same"
    assert (await client.post("/schedules/nightly/resume"))["next_run"] == made["next_run"]
    for what in ("run", "pause", "resume"):
        await client.post(f"/schedules/weekly/{what}", status=404)


@served
async def test_a_group_is_paused_and_why_says_so(client: Client) -> None:
    await client.b.create_topic("orders", partitions=1)
    await client.b.publish("orders", b"x")
    await client.ask("PATCH", "/groups/packers/options", json={"options": {"delivery": "paused"}})
    assert await client.b.receive("orders", "packers") == []
    told = await client.get("/topics/orders/partitions/0/messages/0/why")
    assert told["state"] == "paused"
    assert "the group packers is paused" in told["answer"]
    await client.b.advance("1s")
    assert (await reading(client))["groups"]["packers"]["paused"] is True  # type: ignore[index]
    await client.ask("PATCH", "/groups/packers/options", json={"options": {"delivery": "stopped"}}, status=400)
    await client.ask("PATCH", "/groups/packers/options", json={"options": {"delivery": None}})
    assert [each.value for each in await client.b.receive("orders", "packers")] == [b"x"]
    await client.b.advance("1s")
    assert (await reading(client))["groups"]["packers"]["paused"] is False  # type: ignore[index]


@served
async def test_files_are_served_packed_with_a_tag_and_a_policy(client: Client) -> None:
    for name, content in sources().items():
        reply = await client.http.get(f"/console/{name}")
        assert (reply.status_code, reply.content) == (200, content)
        assert reply.headers["content-security-policy"] == POLICY
        assert reply.headers["content-encoding"] == "gzip"
        plain = await client.http.get(f"/console/{name}", headers={"accept-encoding": "identity"})
        assert (plain.content, "content-encoding" in plain.headers) == (content, False)
        known = await client.http.get(f"/console/{name}", headers={"if-none-match": reply.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")
    assert "unsafe" not in POLICY
    assert (await client.http.get("/console/")).content == sources()["index.html"]
    led = await client.http.get("/v1/console")
    assert (led.status_code, led.headers["location"]) == (308, "console/")
    assert (await client.http.get("/console/nothing.js")).status_code == 404
    assert (await client.http.get("/console/../app.py")).status_code == 404
    assert (await client.http.post("/console/", json={})).status_code == 405


def test_no_module_makes_markup_of_text_or_names_another_host() -> None:
    for name, content in sources().items():
        text = content.decode()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, f"{name} has {word}"
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), f"{name} names an address"


def test_all_modules_together_stay_small() -> None:
    """Ten screens and all actions; a browser fetches them packed, and once."""
    modules = [content for name, content in sources().items() if name.endswith(".js")]
    assert sum(map(len, modules)) <= 111_000
    assert sum(len(gzip.compress(each)) for each in modules) <= 42_500


def test_a_console_that_is_off_is_not_there() -> None:
    async def inside() -> None:
        async with door(console=Console.OFF) as client:
            assert (await client.http.get("/console/")).status_code == 404
            assert (await client.http.get("/", headers={"accept": "text/html"})).headers["location"] == "docs"

    asyncio.run(inside())


def test_where_it_is_read_only_no_page_of_the_node_changes_anything() -> None:
    async def inside() -> None:
        async with door(console=Console.READ_ONLY) as client:
            page = {"sec-fetch-site": "same-origin"}
            refused = await client.http.post("/topics", json={"name": "a"}, headers=page)
            assert (refused.status_code, refused.json()["code"]) == (403, "CONSOLE_READ_ONLY")
            assert (await client.http.get("/topics", headers=page)).status_code == 200
            assert (await client.http.post("/topics", json={"name": "a"})).status_code == 201, (
                "programs are not concerned"
            )

    asyncio.run(inside())

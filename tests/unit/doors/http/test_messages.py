"""Publishing and reading over HTTP."""

from dataclasses import replace
from typing import Any

import httpx

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.model.lanes import Lane
from goqueue.records.build import build_batch
from goqueue.records.native import Headers
from tests.unit.doors.http.door_client import Client, served

NORMAL = {"priority": "normal", "delayed": False, "durability": "disk"}


async def publish(client: Client, *messages: dict[str, Any], topic: str = "orders") -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = (await client.post(f"/topics/{topic}/messages", messages=list(messages)))["results"]
    return results


async def one_partition(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)


@served
async def test_what_is_published_can_be_read(client: Client) -> None:
    await one_partition(client)
    sent = {"key": "k", "value": "three \u00e4pples", "headers": {"a": "1", "b": None}, "priority": "high"}
    assert await publish(client, sent, {"value": "x"}) == [
        {"partition": 0, "offset": 0, "priority": "high", "delayed": False, "durability": "disk"},
        {"partition": 0, "offset": 1, **NORMAL},
    ]
    found = await client.get("/topics/orders/partitions/0/messages")
    first, second = found["messages"]
    assert (first["key"], first["value"], first["priority"]) == ("k", "three \u00e4pples", "high")
    assert first["headers"] == {"a": "1", "b": None, "gq-priority": "high"}
    assert (second["offset"], second["value"], second["key"], found["next_offset"]) == (1, "x", None, 2)
    assert first["timestamp"] == "2026-01-01T00:00:00Z"


@served
async def test_a_lane_that_only_the_batch_names_is_the_priority_of_its_messages(client: Client) -> None:
    await one_partition(client)
    given: list[Headers] = [[], [("gq-priority", b"LOW"), ("a", b"1")]]
    for lane in (Lane.CRITICAL, None):
        batch = build_batch([(1000, None, b"x", headers) for headers in given], lane=lane)
        client.b.broker.publisher.publish("orders", 0, memoryview(batch))
    await client.b.advance("1s")
    found = (await client.get("/topics/orders/partitions/0/messages"))["messages"]
    assert [each["priority"] for each in found] == ["critical", "critical", "normal", "low"]
    assert found[1]["headers"] == {"a": "1", "gq-priority": "critical"}
    assert found[3]["headers"] == {"a": "1", "gq-priority": "LOW"}
    received = await client.post("/topics/orders/receive", group="g", max_messages=4)
    by_offset = {each["offset"]: each["priority"] for each in received["messages"]}
    assert by_offset == {each["offset"]: each["priority"] for each in found}


@served
async def test_the_last_of_two_priorities_counts_as_it_does_in_a_queue(client: Client) -> None:
    await one_partition(client)
    twice = [{"name": "gq-priority", "value": value} for value in ("low", "High")]
    await publish(client, {"value": "x", "header_list": twice})
    (found,) = (await client.get("/topics/orders/partitions/0/messages"))["messages"]
    assert found["priority"] == "high"


@served
async def test_any_timestamp_that_is_read_can_be_published_again(client: Client) -> None:
    await one_partition(client)
    times = [-1, -86_400_000, 0, 253_402_300_799_999, 253_402_300_800_000, 2**63 - 1, -(2**63)]
    for each in times:
        (sent,) = await publish(client, {"value": "x", "timestamp": each})
        assert "error" not in sent
    written = [each["timestamp"] for each in (await client.get("/topics/orders/partitions/0/messages"))["messages"]]
    assert written[:3] == ["-1", "-86400000", "1970-01-01T00:00:00Z"]
    await publish(client, *({"value": "again", "timestamp": each} for each in written))
    found = (await client.get("/topics/orders/partitions/0/messages"))["messages"]
    assert [each["timestamp"] for each in found] == written * 2
    for wrong in (2**63, "-5m of what", "99999999999999999999"):
        (refused,) = await publish(client, {"value": "x", "timestamp": wrong})
        assert refused["error"]


@served
async def test_bytes_that_are_no_text_travel_in_base64(client: Client) -> None:
    await one_partition(client)
    await publish(client, {"value_base64": "/wA=", "key_base64": "a2V5"})
    (found,) = (await client.get("/topics/orders/partitions/0/messages"))["messages"]
    assert (found["value"], found["value_base64"], found["key"]) == (None, "/wA=", "key")
    assert "key_base64" not in found


@served
async def test_one_bad_message_does_not_harm_the_others(client: Client) -> None:
    await one_partition(client)
    bad: list[dict[str, Any]] = [
        {"value": "x", "priority": "urgent"},
        {"value": "x", "partition": 7},
        {"value": "x", "delay": "-5s"},
        {"value": "x", "deliverAt": "tomorrow"},
        {"value": "x", "value_base64": "eA=="},
        {"value_base64": "%%%"},
        {"value": "x" * 2_000_000},
    ]
    good = [{"value": str(number)} for number in range(len(bad))]
    results = await publish(client, *[each for pair in zip(bad, good) for each in pair])
    assert [result["offset"] for result in results[0::2]] == [-1] * len(bad)
    assert all(result["error"] for result in results[0::2])
    assert [result["offset"] for result in results[1::2]] == list(range(len(bad)))
    found = await client.get("/topics/orders/partitions/0/messages")
    assert [each["value"] for each in found["messages"]] == [each["value"] for each in good]


@served
async def test_a_delayed_message_comes_when_it_is_due(client: Client) -> None:
    await one_partition(client)
    (sent,) = await publish(client, {"value": "later", "delay": "10m", "deliver_at": "2026-01-01T09:00:00Z"})
    assert (sent["delayed"], sent["deliver_at"]) == (True, "2026-01-01T00:10:00Z")
    assert (await client.get("/topics/orders/partitions/0/messages"))["messages"] == []
    await client.b.advance("10m")
    (found,) = (await client.get("/topics/orders/partitions/0/messages"))["messages"]
    assert found["value"] == "later"
    (sent,) = await publish(client, {"value": "past", "deliverAt": "2020-01-01T00:00:00Z", "delay": None})
    assert sent["delayed"] is False


@served
async def test_reading_goes_on_where_it_ended(client: Client) -> None:
    await one_partition(client)
    await publish(client, *({"value": str(number)} for number in range(25)))
    values: list[str] = []
    offset = 0
    for limit in (10, 10, 10):
        found = await client.get("/topics/orders/partitions/0/messages", offset=offset, limit=limit)
        values += [each["value"] for each in found["messages"]]
        offset = found["next_offset"]
    assert (values, offset) == ([str(number) for number in range(25)], 25)


@served
async def test_reading_starts_at_a_time(client: Client) -> None:
    await one_partition(client)
    await publish(client, {"value": "old"})
    await client.b.advance("1h")
    await publish(client, {"value": "new"})
    found = await client.get("/topics/orders/partitions/0/messages", from_time="-10m")
    assert [each["value"] for each in found["messages"]] == ["new"]


@served
async def test_what_cannot_be_read_says_so(client: Client) -> None:
    await one_partition(client)
    read = "/topics/orders/partitions/0/messages"
    assert (await client.get(read, offset=1, status=400))["code"] == "OFFSET_OUT_OF_RANGE"
    await client.get("/topics/orders/partitions/7/messages", status=404)
    await client.get("/topics/orders/partitions/x/messages", status=400)
    await client.get(read, offset=-1, status=400)
    await client.get(read, limit=1001, status=400)
    await client.get(read, from_time="noon", status=400)


@served
async def test_a_body_over_the_limit_is_a_413(client: Client) -> None:
    await one_partition(client)
    assert (await client.post("/topics", name="x" * 1_100_000, status=413))["code"] == "BODY_TOO_LARGE"
    huge = {"value": "x" * 17_000_000}
    assert (await client.post("/topics/orders/messages", messages=[huge], status=413))["code"] == "BODY_TOO_LARGE"


@served
async def test_no_messages_and_no_topic(client: Client) -> None:
    await one_partition(client)
    await client.post("/topics/orders/messages", messages=[], status=400)
    await client.post("/topics/no%20ne/messages", messages=[{"value": "x"}], status=400)
    await client.post("/topics/orders/messages", messages=[{"value": "x", "dealy": "5m"}], status=400)


@served
async def test_what_has_an_id_is_published_once(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, options={"dedup.ms": 300_000}, status=201)
    first, again = await publish(client, {"value": "a", "dedup_id": "7"}, {"value": "a", "dedup_id": "7"})
    (later,) = await publish(client, {"value": "a", "dedup_id": "7"})
    assert first["offset"] == again["offset"] == later["offset"]
    assert len((await client.get("/topics/orders/partitions/0/messages"))["messages"]) == 1


@served
async def test_an_answer_says_which_durability_was_reached(client: Client) -> None:
    for durability in ("disk", "os"):
        await client.b.create_topic(durability, durability=durability)
        one, later, wrong = await publish(
            client, {"value": "x"}, {"value": "x", "delay": "1h"}, {"value": "x", "partition": 9}, topic=durability
        )
        assert (one["durability"], later["durability"]) == (durability, durability)
        assert "durability" not in wrong


@served
async def test_a_changed_durability_is_told_from_then_on(client: Client) -> None:
    await one_partition(client)
    await client.patch("/topics/orders", options={"durability": "os"})
    (sent,) = await publish(client, {"value": "x"})
    assert sent["durability"] == "os"


@served
async def test_publishing_makes_a_topic_that_is_not_there(client: Client) -> None:
    (sent,) = await publish(client, {"value": "x", "partition": 0}, topic="new")
    assert (sent["partition"], sent["offset"]) == (0, 0)
    assert (await client.get("/topics/new/partitions/0/messages"))["messages"][0]["value"] == "x"
    assert (await client.get("/topics/new"))["partitions"] == client.b.broker.default_partitions


@served
async def test_publishing_makes_no_topic_where_the_settings_forbid_it(client: Client) -> None:
    client.http._transport = httpx.ASGITransport(HttpApp(Gate(replace(client.b.broker, creates_topics=False))))
    refused = await client.post("/topics/new/messages", messages=[{"value": "x"}], status=404)
    assert refused["code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert await client.get("/topics") == {"topics": []}


@served
async def test_the_older_name_of_deliver_at_is_still_read(client: Client) -> None:
    await one_partition(client)
    results = await publish(
        client, *({"value": "x", name: "2026-01-01T00:10:00Z"} for name in ("deliver_at", "deliverAt"))
    )
    assert [each["deliver_at"] for each in results] == ["2026-01-01T00:10:00Z"] * 2

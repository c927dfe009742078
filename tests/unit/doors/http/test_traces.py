"""Journeys over HTTP: what happened to a message, and where it is now, in words."""

import json
from typing import Any

import pytest

from goqueue.broker.broker import Broker
from goqueue.records.replays import ReplayRequest, Where
from goqueue.testing import MemoryBroker
from tests.unit.doors.http.door_client import Client, served

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADERS = {"traceparent": f"00-{TRACE}-{SPAN}-01".encode()}


async def why(client: Client, offset: int, topic: str = "orders", **more: Any) -> Any:
    return await client.get(f"/topics/{topic}/partitions/0/messages/{offset}/why", **more)


async def group_of(client: Client, offset: int, group: str = "workers") -> Any:
    (found,) = [each for each in (await why(client, offset))["groups"] if each["group"] == group]
    return found


async def acked(client: Client) -> None:
    """One message, through and through."""
    await client.b.create_topic("orders")
    await client.b.publish("orders", b"v", key=b"k", headers=HEADERS)
    await client.b.advance("1s")
    (message,) = await client.b.receive("orders", consumer="w3")
    await client.b.advance("2s")
    await message.ack()


# -- traces


@served
async def test_a_trace_has_its_spans_and_its_events(client: Client) -> None:
    await acked(client)
    found = await client.get(f"/traces/{TRACE}")
    assert {name: found[name] for name in ("trace_id", "topic", "partition", "offset", "status", "duration_ms")} == {
        "trace_id": TRACE,
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "status": "completed",
        "duration_ms": 3000,
    }
    received, persisted, leased, done = found["spans"]
    assert [each["event_type"] for each in found["spans"]] == [
        "publish.received",
        "publish.persisted",
        "consume.leased",
        "consume.acked",
    ]
    assert received["parent_span_id"] == SPAN
    assert persisted["parent_span_id"] == leased["parent_span_id"] == received["span_id"]
    assert done["parent_span_id"] == leased["span_id"]
    assert (leased["consumer_group"], leased["consumer_id"]) == ("workers", "w3")
    assert leased["duration_ns"] == 2_000_000_000
    assert [each["event_type"] for each in found["events"]] == [each["event_type"] for each in found["spans"]]
    assert found["events"][2]["details"] == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "consumer_group": "workers",
        "consumer_id": "w3",
    }


@served
async def test_recent_traces_come_the_latest_first(client: Client) -> None:
    await client.b.create_topic("orders")
    for _ in range(5):
        await client.b.publish("orders", b"v")
    found = await client.get("/traces", limit=3)
    assert [each["offset"] for each in found["traces"]] == [4, 3, 2]
    assert found["total"] == 5
    one = found["traces"][0]
    assert (one["status"], one["span_count"], one["duration_ms"]) == ("pending", 2, 0)
    assert (await client.get(f"/traces/{one['trace_id']}"))["offset"] == 4
    for limit in (0, 1001, "x"):
        await client.get("/traces", limit=limit, status=400)


@served
async def test_traces_are_searched(client: Client) -> None:
    await client.b.create_topic("orders", 2)
    await client.b.create_topic("bills")
    for number in range(4):
        await client.b.publish("orders", b"v", key=b"k%d" % number, partition=number % 2)
    await client.b.publish("bills", b"v")
    middle = client.b.now_ms + 500
    await client.b.advance("1s")
    (bad,) = await client.b.receive("orders", max_messages=1, partition=0)
    await bad.reject("cannot parse")

    async def found(**query: Any) -> list[tuple[str, int, int]]:
        reply = await client.ask("GET", "/traces/search", params=query)
        assert reply["total"] == len(reply["traces"])
        assert reply["query"] == {"partition": -1, "limit": 100} | query
        return sorted((each["topic"], each["partition"], each["offset"]) for each in reply["traces"])

    orders = [("orders", 0, 0), ("orders", 0, 1), ("orders", 1, 0), ("orders", 1, 1)]
    assert await found(topic="orders") == orders
    assert await found(topic="orders", partition=1) == orders[2:]
    assert await found(topic="bills") == [("bills", 0, 0)]
    assert await found(topic="orders", consumer_group="workers") == [("orders", 0, 0)]
    assert await found(topic="orders", status="error") == [("orders", 0, 0)]
    assert await found(topic="orders", status="pending") == orders[1:]
    assert await found(topic="orders", status="completed") == []
    assert await found(topic="orders", start=str(middle)) == [("orders", 0, 0)]
    assert await found(topic="orders", end=str(middle)) == orders
    assert await found(topic="orders", key="k3") == [("orders", 1, 1)]
    assert await found(topic="orders", key="nobody") == []


@served
async def test_all_journeys_of_a_partition_are_listed_in_pages(client: Client) -> None:
    await client.b.create_topic("orders", 2)
    for number in range(7):
        await client.b.publish("orders", b"v", partition=0, delay="1s" if number == 2 else None)
    await client.b.publish("orders", b"v", partition=1)
    await client.b.advance("2s")
    messages = await client.b.receive("orders", max_messages=10, partition=0)
    await messages[0].reject("no")

    async def pages(**query: Any) -> list[list[tuple[int, str]]]:
        found: list[list[tuple[int, str]]] = []
        cursor: str | None = "0"
        while cursor is not None:
            asked = {"topic": "orders", "partition": 0, "cursor": cursor, "limit": 3, "spans": "true", **query}
            reply = await client.ask("GET", "/traces/search", params=asked)
            found.append([(each["offset"], each["spans"][-1]["event_type"]) for each in reply["traces"]])
            cursor = reply["next"]
        return found

    leased = "consume.leased"
    delayed = (2, leased)  # once, with its second place, under its first
    rejected = (0, "dead_letter.written")
    assert await pages() == [
        [rejected, (1, leased), (3, leased)],
        [(4, leased), (5, leased), (6, leased)],
        [delayed],
    ]
    assert await pages(consumer_group="workers", limit=1000) == [
        [rejected, *((offset, leased) for offset in (1, 3, 4, 5, 6)), delayed]
    ]
    assert await pages(status="error") == [[rejected], [], []]
    assert await pages(consumer_group="nobody") == [[]]
    assert await pages(topic="nowhere") == [[]]
    assert (await client.get("/traces/search"))["next"] is None


@served
async def test_filters_that_cannot_be_are_refused(client: Client) -> None:
    for query in (
        {"status": "done"},
        {"partition": "x"},
        {"partition": -2},
        {"start": "yesterdayish"},
        {"end": "31/12"},
        {"limit": 0},
        {"key": "k"},
        {"topic": "a b"},
        {"topic": "orders", "cursor": "0"},
        {"partition": 0, "cursor": "0"},
        {"topic": "orders", "partition": 0, "key": "k", "cursor": "0"},
        {"topic": "orders", "partition": 0, "cursor": "-1"},
    ):
        assert (await client.ask("GET", "/traces/search", status=400, params=query))["error"]
    await client.get("/traces/search", topic="nowhere", key="k", status=404)


@served
async def test_a_trace_that_is_none(client: Client) -> None:
    await client.get("/traces/xyz", status=400)
    await client.get(f"/traces/{'F' * 32}", status=400)
    assert (await client.get(f"/traces/{'f' * 32}", status=404))["code"] == "UNKNOWN_TRACE"


@served
async def test_stats_say_what_is_remembered(client: Client) -> None:
    await acked(client)
    stats = await client.get("/traces/stats")
    assert stats == {
        "enabled": True,
        "sampling_rate": 1.0,
        "spans_in_buffer": 4,
        "buffer_capacity": 100_000,
        "traces_indexed": 1,
        "exporters_enabled": [],
        "traces_total": 1,
        "notes_total": 4,
        "notes_stored": 0,
        "notes_not_stored": 0,
        "records_not_indexed": 0,
        "spans_exported": 0,
        "spans_failed": 0,
        "spans_dropped": 0,
        "steps": {"publish.received": 1, "publish.persisted": 1, "consume.leased": 1, "consume.acked": 1},
    }


@served
async def test_http_publishes_are_traced_too(client: Client) -> None:
    await client.b.create_topic("orders")
    for _ in range(3):
        await client.post("/topics/orders/messages", messages=[{"value": "v"}])
    assert (await client.get("/traces/stats"))["traces_total"] == 3


# -- where is my message?


@served
async def test_a_message_that_nobody_reads(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.publish("orders", b"v", key=b"k")
    found = await why(client, 0)
    assert found["answer"] == "published, and no group has read this topic yet"
    assert (found["state"], found["key"], found["groups"]) == ("published", "k", [])
    assert [each["event_type"] for each in found["events"]] == ["publish.received", "publish.persisted"]


@served
async def test_a_message_on_its_way_through_a_group(client: Client) -> None:
    await client.b.create_topic("orders", lease_ms=30_000, retry_backoff_ms=10_000, attempts_max=2)
    for _ in range(3):
        await client.b.publish("orders", b"v")
    (first,) = await client.b.receive("orders", max_messages=1, consumer="w3")
    await client.b.advance("18s")
    found = await group_of(client, 0)
    assert found["answer"] == "leased by w3 for 12 s more, attempt 1"
    assert (found["state"], found["consumer"], found["attempts"]) == ("leased", "w3", 1)
    assert found["until"] == "2026-01-01T00:00:30Z"
    assert (await group_of(client, 2))[
        "answer"
    ] == "ready in lane normal behind 1 of the same lane; no consumer is asking"
    await first.nack()
    found = await group_of(client, 0)
    assert found["answer"] == "attempt 1 failed: waiting until 2026-01-01T00:00:28Z (in 10 s) for the next"
    await client.b.advance("10s")
    again = (await client.b.receive("orders"))[0]
    assert again.offset == 0
    await again.reject("cannot parse")
    found = await group_of(client, 0)
    assert found["state"] == "dead-lettered"
    assert found["answer"] == (
        "dead-lettered at 2026-01-01T00:00:28Z because rejected: cannot parse; it is orders.dlq/0/0 now"
    )
    assert (await why(client, 0))["answer"] == f"workers: {found['answer']}"


@served
async def test_a_settled_message_says_when_and_by_whom(client: Client) -> None:
    await acked(client)
    found = await why(client, 0)
    assert found["groups"][0]["answer"] == "settled: acked at 2026-01-01T00:00:03Z by w3"
    assert (found["trace_id"], found["traceparent"]) == (TRACE, HEADERS["traceparent"].decode())


@served
async def test_lanes_and_keys_that_go_first(client: Client) -> None:
    await client.b.create_topic("orders", lease_order="key")
    for key, priority in ((b"a", "high"), (b"b", "low"), (b"b", "low"), (b"c", "low")):
        await client.b.publish("orders", b"v", key=key, priority=priority)
    await client.b.receive("orders", "others", max_messages=1)
    found = await group_of(client, 3, "others")
    assert found["answer"].startswith("ready in lane low behind 1 of the same lane")
    found = await group_of(client, 2, "others")
    assert found["answer"] == "held behind offset 1 of the same key"
    assert (found["state"], found["behind_offset"]) == ("held", 1)


@served
async def test_urgent_lanes_are_named(client: Client) -> None:
    await client.b.create_topic("orders")
    for priority in ("normal", "critical", "low", "high"):
        await client.b.publish("orders", b"v", priority=priority)
    (got,) = await client.b.receive("orders", max_messages=1)
    assert got.priority == "critical"
    assert (await group_of(client, 2))["answer"] == (
        "ready in lane low, sharing with 1 in lane high and 1 in lane normal; no consumer is asking"
    )


@served
async def test_an_expired_message(client: Client) -> None:
    await client.b.create_topic("orders", message_ttl_ms=5000, expired_messages="drop")
    await client.b.receive("orders")
    await client.b.publish("orders", b"v")
    await client.b.receive("orders", "others", max_messages=0)
    assert "expires at 2026-01-01T00:00:05Z (in 5 s)" in (await group_of(client, 0))["answer"]
    await client.b.advance("6s")
    assert (await group_of(client, 0))["answer"].startswith("expired at 2026-01-01T00:00:05")


@served
async def test_a_message_that_waits_for_its_time(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.publish("orders", b"v", at="2026-01-01T14:05:00Z")
    await client.b.publish("orders", b"v", delay="1h")
    found = await why(client, 0)
    assert (found["state"], found["answer"]) == (
        "scheduled",
        "not due yet: waiting until 2026-01-01T14:05:00Z (in 14 h 5 min)",
    )
    await client.b.cancel("orders", 0, 1)
    assert (await why(client, 1))["answer"] == "cancelled at 2026-01-01T00:00:00Z, before it was due"
    await client.b.advance("15h")
    found = await why(client, 0)
    assert (found["first_offset"], found["offset"], found["state"]) == (0, 2, "published")
    assert found == await why(client, 2)
    trace = await client.get(f"/traces/{found['trace_id']}")
    told = {each["event_type"]: each["details"].get("detail") for each in trace["events"]}
    assert told["delay.scheduled"] == "due at 2026-01-01T14:05:00Z"
    assert told["delay.due"] == "published as offset 2"
    assert {each["event_type"]: each.get("attributes") for each in trace["spans"]} == {
        name: detail and {"detail": detail} for name, detail in told.items()
    }


@served
async def test_a_replayed_message(client: Client) -> None:
    await acked(client)
    request = ReplayRequest("workers", "orders", Where("earliest"), Where("latest"))
    await client.b.ask(lambda done: client.b.broker.replays.replay(request, done))
    assert "to be delivered again by a replay" in (await group_of(client, 0))["answer"]
    (again,) = await client.b.receive("orders", consumer="w4")
    assert (await group_of(client, 0))["consumer"] == "w4"
    await again.ack()
    assert (await group_of(client, 0))["answer"] == "settled: acked at 2026-01-01T00:00:03Z by w4"


@served
async def test_a_message_that_is_gone_or_not_there_yet(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.publish("orders", b"v")
    await client.b.publish("orders", b"v")
    client.b.broker.topics.replica("orders", 0).delete_before(1)
    assert (await why(client, 0))["state"] == "removed"
    refusal = await why(client, 2, status=400)
    assert refusal["error"] == "there is no offset 2 yet; the next is 2"
    await why(client, 0, "nowhere", status=404)
    await client.get("/topics/orders/partitions/7/messages/0/why", status=404)


@served
async def test_a_message_is_found_by_its_key(client: Client) -> None:
    await client.b.create_topic("orders", 3)
    for number in range(4):
        await client.b.publish("orders", b"%d" % number, key=b"order-%d" % (number % 2))
        await client.b.advance("1s")
    found = await client.get("/topics/orders/why", key="order-1")
    assert (found["key"], found["timestamp"]) == ("order-1", "2026-01-01T00:00:03Z")
    assert (await client.get("/topics/orders/why", key="order-9", status=404))["code"] == "UNKNOWN_KEY"
    await client.get("/topics/orders/why", status=400)
    await client.get("/topics/nowhere/why", key="k", status=404)


def commit(b: MemoryBroker, group: str, offset: int) -> Any:
    from goqueue.machines.groups import commands

    broker: Broker = b.broker
    topic = broker.topics.image.topics["orders"]
    offsets = (commands.OffsetToCommit("orders", 0, offset, topic_id=topic.id),)
    return b.ask(lambda done: broker.groups.submit(commands.ResetOffsets(group, offsets), done))


@served
async def test_stream_groups_say_how_far_they_are(client: Client) -> None:
    await client.b.create_topic("orders")
    for _ in range(5):
        await client.b.publish("orders", b"v")
    await commit(client.b, "readers", 2)
    found = await group_of(client, 1, "readers")
    assert (found["kind"], found["state"], found["committed_offset"]) == ("stream", "read", 2)
    found = await group_of(client, 4, "readers")
    assert found["answer"] == "not committed: 2 before it, the group is at 2; nobody reads this partition now"
    assert (found["state"], found["ahead"]) == ("not read", 2)


@pytest.mark.parametrize("path", ["/traces", "/traces/{id}", "/traces/search", "/traces/stats"])
def test_the_routes_are_in_the_document(path: str) -> None:
    from goqueue.doors.http.openapi import document
    from goqueue.doors.http.routes.table import ROUTES

    assert "get" in json.loads(json.dumps(document(ROUTES, "1")))["paths"][path]

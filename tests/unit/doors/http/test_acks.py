"""Settling over HTTP: ack, nack, reject, hold longer; and what the numbers say about it."""

from typing import Any

from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.group_members import ack, publish, restarted, topic

RECEIVE = "/topics/orders/receive"


async def receive(client: Client, **more: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = (await client.post(RECEIVE, group="g", **more))["messages"]
    return messages


async def settle(client: Client, how: str, message: dict[str, Any], *, status: int = 200, **more: Any) -> Any:
    return await client.post(f"/messages/{how}", receipt_handle=message["receipt_handle"], status=status, **more)


@served
async def test_an_acknowledged_message_never_comes_back(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b", "c")
    first, second, _ = await receive(client)
    told = {"success": True, "acknowledged": True, "group": "g", "topic": "orders", "partition": 0}
    assert await ack(client, second) == told | {
        "offset": 1,
        "committed_offset": 0,
        "offset_advanced": False,
        "in_flight_count": 2,
    }
    assert await ack(client, first) == told | {
        "offset": 0,
        "committed_offset": 2,
        "offset_advanced": True,
        "in_flight_count": 1,
    }
    await client.b.advance("30s")
    assert [each["value"] for each in await receive(client)] == ["c"]


@served
async def test_who_settles_may_say_its_name(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b", "c", "d", "e")
    one, two, three, four, five = await receive(client)
    assert (await settle(client, "ack", one, consumer_id="worker-1"))["acknowledged"] is True
    await settle(client, "nack", two, consumer_id="worker-1", delay="1h")
    await settle(client, "reject", three, consumer_id="worker-1")
    await settle(client, "visibility", four, consumer_id="worker-1", timeout="60s")
    single = [{"receipt_handle": five["receipt_handle"], "consumer_id": "worker-1"}]
    assert (await client.post("/messages/ack/batch", messages=single, consumer_id="worker-1"))["succeeded"] == 1
    await settle(client, "ack", four, consumer="worker-1", status=400)


@served
async def test_each_wrong_receipt_has_its_own_answer(client: Client) -> None:
    """A receipt that was used says so, and is no longer unknown."""
    await topic(client)
    await publish(client, "a", "b", "c")
    done, expired, held = await receive(client, lease="10s")
    await ack(client, done)
    await client.b.advance("10s")
    again = {each["offset"]: each for each in await receive(client)}
    assert sorted(again) == [1, 2]
    await topic(client, name="gone")
    await publish(client, "x", name="gone")
    (lost,) = (await client.post("/topics/gone/receive", group="g"))["messages"]
    await client.delete("/topics/gone")
    more: dict[str, dict[str, Any]] = {"ack": {}, "nack": {}, "reject": {}, "visibility": {"timeout": "60s"}}
    for how, fields in more.items():
        answers = {
            (await settle(client, how, message, status=status, **fields))["code"]
            for message, status in ((done, 409), (expired, 410), (held, 410), (lost, 404))
        }
        assert answers == {"ALREADY_SETTLED", "LEASE_EXPIRED", "UNKNOWN_RECEIPT"}
        for text in ("x", "orders:0:0:1:0123456789abcdef", held["receipt_handle"][:-1] + "_", "\u00e4" * 80):
            refused = await client.post(f"/messages/{how}", receipt_handle=text, status=400, **fields)
            assert refused["code"] == "MALFORMED_RECEIPT"
        await client.post(f"/messages/{how}", status=400, **fields)
    assert (await client.get("/lag"))["groups"][0]["partitions"][0]["settled_offset"] == 1


@served
async def test_a_nacked_message_comes_when_it_was_promised(client: Client) -> None:
    await topic(client)
    await publish(client, "a")
    (message,) = await receive(client)
    told = await settle(client, "nack", message, delay="2m", reason="busy")
    assert told == {
        "success": True,
        "requeued": True,
        "action": "requeued",
        "group": "g",
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "delivery_count": 1,
        "next_visible_at": "2026-01-01T00:02:00Z",
    }
    await client.b.advance("119s")
    assert await receive(client) == []
    await client.b.advance("1s")
    (message,) = await receive(client)
    assert message["delivery_count"] == 2
    told = await settle(client, "nack", message, delay=None)
    assert told["next_visible_at"] == "2026-01-01T00:02:02Z", "twice as long as after the first attempt"
    await client.b.advance("2s")
    (message,) = await receive(client)
    told = await settle(client, "nack", message, delay="0s")
    assert told["next_visible_at"] == "2026-01-01T00:02:02Z"
    assert [each["delivery_count"] for each in await receive(client)] == [4]


@served
async def test_the_last_attempt_ends_as_a_dead_letter(client: Client) -> None:
    await topic(client, attempts_max="2")
    await publish(client, "poison")
    (message,) = await receive(client)
    assert (await settle(client, "nack", message, delay=0))["requeued"] is True
    (message,) = await receive(client)
    told = await settle(client, "nack", message, reason="no such customer")
    assert (told["requeued"], told["action"], told["delivery_count"]) == (False, "dlq", 2)
    assert (told["dlq_topic"], told["next_visible_at"]) == ("orders.dlq", None)
    await client.b.advance("10m")
    assert await receive(client) == []
    (letter,) = await client.b.dead_letters("orders")
    assert (letter.value, letter.reason, letter.error) == (b"poison", "attempts", "no such customer")


@served
async def test_a_nacked_message_whose_time_is_over_is_dropped_where_the_topic_says_so(client: Client) -> None:
    await topic(client, expired_messages="drop")
    await publish(client, "a", ttl="10s")
    (message,) = await receive(client)
    await client.b.advance("15s")
    told = await settle(client, "nack", message, delay="1s")
    assert (told["requeued"], told["action"], told["next_visible_at"]) == (False, "expired", None)
    assert "dlq_topic" not in told
    assert await client.b.dead_letters("orders") == []


@served
async def test_a_rejected_message_is_a_dead_letter_at_once(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b")
    first, second = await receive(client)
    assert await settle(client, "reject", first, reason="unreadable") == {
        "success": True,
        "rejected": True,
        "action": "rejected",
        "group": "g",
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "dlq_topic": "orders.dlq",
        "reason": "unreadable",
    }
    assert (await settle(client, "reject", second))["reason"] == ""
    await client.b.advance("1m")
    assert await receive(client) == []
    assert [each.error for each in await client.b.dead_letters("orders")] == ["unreadable", ""]
    assert (await client.get("/groups/g/offsets"))["offsets"] == {"orders": {"0": 2}}, "reject settles the offset"


@served
async def test_a_message_is_held_longer(client: Client) -> None:
    await topic(client)
    await publish(client, "a")
    (message,) = await receive(client)
    told = await settle(client, "visibility", message, timeout="60s")
    assert (told["success"], told["new_deadline"], told["extended_by"]) == (True, "2026-01-01T00:01:00Z", "60s")
    await client.b.advance("59s")
    assert await receive(client) == []
    told = await settle(client, "visibility", message, extension_seconds=90, timeout=None)
    assert told["new_deadline"] == "2026-01-01T00:02:29Z"
    await client.b.advance("90s")
    assert len(await receive(client)) == 1
    wrong: list[dict[str, Any]] = [
        {},
        {"timeout": "60s", "extension_seconds": 60},
        {"timeout": "0s"},
        {"timeout": "13h"},
        {"timeout": "soon"},
        {"extension_seconds": 0},
        {"extension_seconds": "60"},
    ]
    for fields in wrong:
        await settle(client, "visibility", message, status=400, **fields)
    await settle(client, "nack", message, status=400, delay="400 days")
    await settle(client, "nack", message, status=400, delay="-1s")


@served
async def test_a_late_acknowledgement_counts_while_nobody_else_has_the_message(client: Client) -> None:
    await topic(client)
    await publish(client, "a")
    (message,) = await receive(client)
    await client.b.advance("45s")
    await ack(client, message)
    assert await receive(client) == []


@served
async def test_receipts_of_before_a_restart_still_count(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b", "c")
    first, second, third = await receive(client)
    await ack(client, first)
    async with restarted(client) as again:
        assert (await ack(again, first, status=409))["code"] == "ALREADY_SETTLED"
        await ack(again, second)
        assert [each["value"] for each in await receive(again)] == ["c"]
        assert (await ack(again, third, status=410))["code"] == "LEASE_EXPIRED"


@served
async def test_many_are_settled_at_once_each_with_its_own_result(client: Client) -> None:
    await topic(client)
    await publish(client, *"abcdef")
    messages = await receive(client)
    receipts = [each["receipt_handle"] for each in messages]
    await ack(client, messages[0])
    batch = "/messages/ack/batch"
    reply = await client.post(
        batch,
        messages=[
            {"receipt_handle": receipts[0]},
            {"receipt_handle": receipts[1], "action": "ack"},
            {"receipt_handle": receipts[2], "action": "nack", "delay": "10s", "reason": "later"},
            {"receipt_handle": receipts[3], "action": "reject", "reason": "never"},
            {"receipt_handle": receipts[4], "action": "extend", "timeout": "5m"},
            {"receipt_handle": receipts[4], "action": "extend"},
            {"receipt_handle": receipts[4], "action": "nack", "delay": "soon"},
            {"receipt_handle": "x", "action": "ack"},
        ],
        receipt_handles=[receipts[5]],
    )
    assert [(each["status"], each.get("code")) for each in reply["results"]] == [
        (409, "ALREADY_SETTLED"),
        (200, None),
        (200, None),
        (200, None),
        (200, None),
        (400, "INVALID_REQUEST"),
        (400, "INVALID_TIME"),
        (400, "MALFORMED_RECEIPT"),
        (200, None),
    ]
    assert [each["success"] for each in reply["results"]] == [each["status"] == 200 for each in reply["results"]]
    assert (reply["succeeded"], reply["failed"]) == (5, 4)
    await client.b.advance("10s")
    assert [each["value"] for each in await receive(client)] == ["c"]
    await client.b.advance("5m")
    assert sorted(each["value"] for each in await receive(client)) == ["c", "e"]
    await client.post(batch, status=400)
    await client.post(batch, messages=[], status=400)
    await client.post(batch, messages=[{"receipt_handle": "x", "action": "eat"}], status=400)
    await client.post(batch, receipt_handles=["x"] * 1001, status=400)


@served
async def test_the_numbers_say_what_happened(client: Client) -> None:
    await topic(client, attempts_max="2")
    zero = await client.get("/reliability/stats")
    assert {zero[name] for name in zero if name.endswith("_total")} == {0}
    await publish(client, *"abcdef")
    acked, nacked, rejected, extended, lapsed, _ = await receive(client, lease="10s")
    await ack(client, acked)
    await settle(client, "nack", nacked, delay="1h")
    await settle(client, "reject", rejected)
    await settle(client, "visibility", extended, timeout="1h")
    await client.b.advance("10s")
    again = await receive(client, lease="1h", max_messages=1)
    assert again[0]["offset"] == lapsed["offset"]
    assert (await settle(client, "nack", again[0]))["action"] == "dlq"
    await client.b.advance("1s")
    found = await client.get("/reliability/stats")
    assert found == {
        "ack_manager": {
            "total_acks": 1,
            "total_nacks": 2,
            "total_rejects": 1,
            "total_expired": 2,
            "total_retries": 3,
            "total_dlq": 2,
            "current_queued": 1,
        },
        "visibility_tracker": {
            "total_tracked": 7,
            "current_in_flight": 1,
            "total_expired": 2,
            "total_acked": 1,
            "total_extended": 1,
        },
        "dlq": {
            "total_routed": 2,
            "routes_by_reason": {"rejected": 1, "attempts": 1},
            "routes_by_topic": {"orders": 2},
            "create_errors": 0,
            "publish_errors": 0,
        },
        "acks_total": 1,
        "nacks_total": 2,
        "rejects_total": 1,
        "expired_total": 2,
        "retries_total": 3,
        "dlq_total": 2,
        "extensions_total": 1,
        "deliveries_total": 7,
        "in_flight": 1,
    }

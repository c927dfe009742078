"""Offsets over HTTP: committed, looked at, set back; and how far groups are behind."""

from typing import Any

from goqueue.machines.groups import commands
from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.group_members import (
    GROUP,
    Member,
    ack,
    join,
    numbered,
    publish,
    restarted,
    settle,
    topic,
)

OFFSETS = f"{GROUP}/offsets"


async def committed(client: Client, **query: Any) -> Any:
    found = await client.get(OFFSETS, **query)
    assert found["offsets"] == found["topics"]
    return found["offsets"]


@served
async def test_a_commit_settles_what_was_polled(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b", "c")
    member = await join(client, session_timeout="10m")
    reply = await member.poll(limit=2)
    done = await client.post(OFFSETS, **member.who, offsets=reply["next_offset"])
    assert done == {"status": "committed", "committed": True, "group": "g", "offsets": {"orders": {"0": 2}}}
    assert await committed(client) == {"orders": {"0": 2}}
    assert (await client.get(OFFSETS))["updated_at"] == "2026-01-01T00:00:00Z"
    await client.b.advance("5m")
    assert await member.values() == ["c"]
    assert (await ack(client, reply["messages"][0], status=409))["code"] == "ALREADY_SETTLED"


@served
async def test_offsets_come_as_a_map_or_as_a_list(client: Client) -> None:
    await topic(client, 2)
    await numbered(client, 3, 2)
    member = await join(client)
    listed = [{"topic": "orders", "partition": number, "offset": number + 1} for number in (0, 1)]
    await client.post(OFFSETS, member_id=member.id, offsets=listed)
    assert await committed(client) == {"orders": {"0": 1, "1": 2}}
    await client.post(OFFSETS, member_id=member.id, generation=None, offsets={"orders": {"1": 3}})
    assert await committed(client) == {"orders": {"0": 1, "1": 3}}
    await topic(client, name="other")
    assert await committed(client, topic="other") == {}
    assert await committed(client, topic="orders") == {"orders": {"0": 1, "1": 3}}
    assert (await client.get("/groups/none/offsets"))["offsets"] == {}


@served
async def test_a_commit_beyond_the_end_is_taken_and_members_begin_like_new_ones(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b")
    member = await join(client)
    await client.post(OFFSETS, **member.who, offsets={"orders": {"0": 9}})
    assert await committed(client) == {"orders": {"0": 9}}
    await publish(client, "c", "d")
    assert await member.values() == ["a", "b", "c", "d"], "to skip what is still to come would lose it"


@served
async def test_a_commit_that_is_wrong_moves_nothing(client: Client) -> None:
    await topic(client, 2)
    await numbered(client, 3, 2)
    member = await join(client)
    wrong: list[tuple[int, dict[str, Any]]] = [
        (409, {**member.who, "generation": 7, "offsets": {"orders": {"0": 1}}}),
        (400, {**member.who, "offsets": {"orders": {"0": -1}}}),
        (400, {**member.who, "offsets": {"orders": {"x": 1}}}),
        (400, {**member.who, "offsets": {}}),
        (400, {**member.who, "offsets": {"orders": {}}}),
        (400, {**member.who, "offsets": []}),
        (404, {**member.who, "offsets": {"none": {"0": 0}}}),
        (403, {**member.who, "offsets": {"orders": {"0": 1, "7": 1}}}),
        (404, {"member_id": "nobody", "offsets": {"orders": {"0": 1}}}),
        (404, {"offsets": {"orders": {"0": 1}}}),
    ]
    for status, body in wrong:
        await client.post(OFFSETS, status=status, **body)
    assert await committed(client) == {}
    other = await join(client)
    await settle(member, other)
    foreign = other.assigned[0].removeprefix("orders-")
    refused = await client.post(OFFSETS, **member.who, offsets={"orders": {foreign: 1}}, status=403)
    assert refused["code"] == "NOT_ASSIGNED"
    own = member.assigned[0].removeprefix("orders-")
    old = await client.post(OFFSETS, member_id=member.id, generation=1, offsets={"orders": {own: 1}}, status=409)
    assert old["code"] == "STALE_MEMBER_EPOCH"
    assert await committed(client) == {}


@served
async def test_acknowledged_one_by_one_is_committed_with_the_next_poll(client: Client) -> None:
    """Whoever of the group reads the partition next, perhaps as a Kafka consumer, goes on from there."""
    await topic(client)
    await publish(client, "a", "b", "c")
    member = await join(client)
    first, second, third = (await member.poll())["messages"]
    await ack(client, second)
    assert await committed(client) == {"orders": {"0": 0}}
    await ack(client, first)
    assert await committed(client) == {"orders": {"0": 2}}, "told from what is settled"
    await member.poll()
    reply: Any = await client.b.ask(lambda done: client.b.broker.groups.submit(commands.FetchOffsets("g", None), done))
    assert [each.offset for each in reply.offsets] == [2], "and stored, for those who only know offsets"
    await ack(client, third)
    await member.leave()
    reply = await client.b.ask(lambda done: client.b.broker.groups.submit(commands.FetchOffsets("g", None), done))
    assert [each.offset for each in reply.offsets] == [3]


@served
async def test_what_another_kind_of_member_committed_is_not_delivered(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b", "c", "d")
    await client.patch(f"{GROUP}/options", options={"start": "latest"})
    await client.post(OFFSETS, offsets={"orders": {"0": 2}})
    member = await join(client)
    assert await member.values(limit=1) == ["c"]
    await member.leave()
    await client.post(OFFSETS, offsets={"orders": {"0": 3}})
    member = await join(client)
    assert await member.values() == ["d"]


@served
async def test_offsets_and_receipts_survive_a_restart(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b", "c", "d")
    member = await join(client)
    messages = (await member.poll())["messages"]
    await ack(client, messages[2])
    await client.post(OFFSETS, **member.who, offsets={"orders": {"0": 1}})
    async with restarted(client) as again:
        assert await committed(again) == {"orders": {"0": 1}}
        await ack(again, messages[1])
        member.client = again
        assert await member.values() == ["d"]


# -- reset


@served
async def test_a_group_without_members_is_set_back(client: Client) -> None:
    await topic(client, 2)
    await numbered(client, 3, 2)
    member = await join(client)
    for message in (await member.poll())["messages"]:
        await ack(client, message)
    reset = f"{OFFSETS}/reset"
    assert (await client.post(reset, topic="orders", strategy="earliest", status=409))["code"] == "NON_EMPTY_GROUP"
    await member.leave()
    moved = [{"partition": number, "before": 3, "after": 0} for number in (0, 1)]
    seen = await client.post(reset, topic="orders", strategy="earliest", dry_run=True)
    assert seen == {"group": "g", "topic": "orders", "dry_run": True, "results": moved}
    assert await committed(client) == {"orders": {"0": 3, "1": 3}}
    assert (await client.post(reset, topic="orders", strategy="earliest"))["results"] == moved
    assert (await client.post(reset, topic="orders", partition=1, offset=2))["results"] == [
        {"partition": 1, "before": 0, "after": 2}
    ]
    member = await join(client)
    assert sorted(await member.values()) == ["0.0", "0.1", "0.2", "1.2"]


@served
async def test_members_are_turned_out_where_that_is_asked_for(client: Client) -> None:
    await topic(client)
    await publish(client, "old")
    await client.b.advance("1h")
    await publish(client, "new")
    member = await join(client)
    assert await member.values() == ["old", "new"]
    reset = await client.post(f"{OFFSETS}/reset", topic="orders", timestamp="-10m", live=True)
    assert reset["results"][0]["after"] == 1
    await client.get(f"{GROUP}/poll", **member.who, status=404)
    again = await join(client)
    assert await again.values() == ["new"]


@served
async def test_a_queue_is_set_back_under_its_readers(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b")
    receive = "/topics/orders/receive"
    for message in (await client.post(receive, group="g"))["messages"]:
        await ack(client, message)
    moved = await client.post(f"{OFFSETS}/reset", topic="orders", strategy="offset", offset=1)
    assert moved["results"] == [{"partition": 0, "before": 2, "after": 1}]
    assert [each["value"] for each in (await client.post(receive, group="g"))["messages"]] == ["b"]
    assert (await client.get(GROUP))["type"] == "share", "it got no offsets that it never had"


@served
async def test_a_reset_says_what_is_wrong(client: Client) -> None:
    await topic(client)
    reset = f"{OFFSETS}/reset"
    await client.post(reset, topic="none", strategy="earliest", status=404)
    await client.post(reset, topic="orders", partition=7, strategy="earliest", status=404)
    wrong: list[dict[str, Any]] = [
        {},
        {"strategy": "yesterday"},
        {"strategy": "timestamp"},
        {"strategy": "earliest", "offset": 0},
        {"offset": 0, "timestamp": "now"},
        {"offset": 1},
        {"timestamp": "noon"},
    ]
    for body in wrong:
        await client.post(reset, topic="orders", status=400, **body)


# -- lag


def lanes(**some: int) -> dict[str, int]:
    return {"critical": 0, "high": 0, "normal": 0, "low": 0, "background": 0} | some


@served
async def test_lag_of_a_member_that_reads_as_a_queue(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b", "c", "d")
    await publish(client, "e", priority="high")
    member = await join(client, session_timeout="10m")
    first, second, third, *_ = sorted((await member.poll(limit=4))["messages"], key=lambda each: str(each["offset"]))
    assert first["offset"] == 0
    await ack(client, first)
    await client.post("/messages/nack", receipt_handle=second["receipt_handle"], delay="1m")
    await client.b.advance("5s")
    found = await client.get(f"{GROUP}/lag")
    assert found == {
        "group": "g",
        "type": "consumer",
        "state": "Stable",
        "total_lag": 4,
        "partitions": [
            {
                "topic": "orders",
                "partition": 0,
                "committed_offset": None,
                "settled_offset": 1,
                "end_offset": 5,
                "lag": 4,
                "owner": {"member_id": member.id, "client_id": "app", "host": ""},
                "queue": {
                    "ready": lanes(normal=1),
                    "leased": lanes(normal=1, high=1),
                    "waiting": 1,
                    "dying": 0,
                    "replaying": 0,
                    "beyond": 0,
                    "oldest_age_ms": 5000,
                },
            }
        ],
    }
    await client.post(OFFSETS, **member.who, offsets={"orders": {"0": 5}})
    found = await client.get(f"{GROUP}/lag")
    (one,) = found["partitions"]
    assert (found["total_lag"], one["committed_offset"], one["settled_offset"]) == (0, 5, 5)
    assert (one["queue"]["leased"], one["queue"]["waiting"], one["queue"]["oldest_age_ms"]) == (lanes(), 0, None)
    assert third["offset"] in (2, 4)


@served
async def test_lag_of_all_groups(client: Client) -> None:
    assert await client.get("/lag") == {"groups": [], "total_lag": 0, "next": None}
    await topic(client, 2)
    await numbered(client, 3, 2)
    await client.post("/groups/stream/offsets", offsets={"orders": {"0": 1}})
    (message,) = (await client.post("/topics/orders/receive", group="queue", partition=1, max_messages=1))["messages"]
    await ack(client, message)
    found = await client.get("/lag")
    assert [(each["group"], each["type"], each["total_lag"]) for each in found["groups"]] == [
        ("queue", "share", 2),
        ("stream", "classic", 2),
    ]
    assert found["total_lag"] == 4
    (stream,) = found["groups"][1]["partitions"]
    assert "queue" not in stream
    assert stream["owner"] is None
    member = Member(client, await client.post("/groups/m/join", client_id="app", topics=["orders"]))
    lag = await client.get("/groups/m/lag")
    assert [each["owner"]["member_id"] for each in lag["partitions"]] == [member.id] * 2
    assert lag["total_lag"] == 6


@served
async def test_more_offsets_than_are_taken_at_once_are_refused_in_either_form(client: Client) -> None:
    many = {str(number): 0 for number in range(10_001)}
    refused = await client.post("/groups/g/offsets", offsets={"orders": many}, status=400)
    assert "at most 10000" in refused["error"]

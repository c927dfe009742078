"""Leases as wholes, over HTTP: taken without content, held longer, finished, listed."""

from typing import Any

from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.group_members import publish, topic

TAKE = "/groups/g/leases"


async def take(client: Client, **more: Any) -> list[dict[str, Any]]:
    taken: list[dict[str, Any]] = (await client.post(TAKE, topics=["orders"], **more))["leases"]
    return taken


async def finish(client: Client, *leases: dict[str, Any]) -> list[int]:
    said = [{"receipt": each["receipt"], "runs": each["runs"]} for each in leases]
    counts: list[int] = (await client.post("/leases/finish", leases=said))["messages"]
    return counts


async def settle(client: Client, how: str, lease: dict[str, Any], offset: int, **more: Any) -> None:
    await client.post(f"/messages/{how}", receipt_handle=f"{lease['receipt']}.{offset}", **more)


async def values_left(client: Client) -> list[str]:
    reply = await client.post("/topics/orders/receive", group="g", max_messages=100)
    return sorted(each["value"] for each in reply["messages"])


@served
async def test_what_is_settled_by_itself_stays_so_when_the_rest_is_finished(client: Client) -> None:
    await topic(client, retry_backoff_ms="1000")
    await publish(client, *"abcdef")
    (lease,) = await take(client)
    assert (lease["topic"], lease["partition"], lease["runs"]) == ("orders", 0, [[0, 5, 1]])
    await settle(client, "ack", lease, 0)
    await settle(client, "nack", lease, 1, delay="10s")
    await settle(client, "reject", lease, 4, reason="no such fruit")
    assert await finish(client, lease) == [3]
    assert await finish(client, lease) == [0]
    assert await values_left(client) == []
    await client.b.advance("10s")
    assert await values_left(client) == ["b"]
    (letter,) = (await client.get("/topics/orders/dlq"))["messages"]
    assert (letter["value"], letter["error"]) == ("e", "no such fruit")


@served
async def test_urgent_messages_come_first_and_no_more_than_were_asked_for(client: Client) -> None:
    await topic(client, partitions=2)
    for number in range(2):
        await publish(client, *(f"{number}{each}" for each in range(20)), partition=number)
        await publish(client, f"{number}!", partition=number, priority="critical")
    taken = (await client.post(TAKE, topics=["orders", "orders"], max_messages=25))["messages"]
    assert taken == 25
    held = (await client.get("/leases"))["leases"]
    assert sum(each["messages"] for each in held) == 25
    assert 20 in {each["last_offset"] for each in held}


@served
async def test_a_lease_is_held_longer_as_far_as_it_is_still_held(client: Client) -> None:
    await topic(client)
    await publish(client, *"abcd")
    (lease,) = await take(client, lease="10s", consumer="anna")
    await settle(client, "ack", lease, 2)
    assert await client.post("/leases/extend", receipts=[lease["receipt"]], timeout="1m") == {"messages": [3]}
    await client.b.advance("59s")
    assert await values_left(client) == []
    await client.b.advance("1s")
    assert await values_left(client) == ["a", "b", "d"]
    assert await client.post("/leases/extend", receipts=[lease["receipt"]], timeout="1m") == {"messages": [0]}
    assert await finish(client, lease) == [0]


@served
async def test_a_restart_of_the_node_loses_neither_what_was_done_nor_what_was_given_back(client: Client) -> None:
    await topic(client)
    await publish(client, *"abcde")
    (lease,) = await take(client)
    await settle(client, "nack", lease, 1, delay="10s")
    await settle(client, "nack", lease, 3, delay=0)
    await client.restart()
    reply = await client.post("/topics/orders/receive", group="g", max_messages=1)
    assert [each["value"] for each in reply["messages"]] == ["a"]
    assert await finish(client, lease) == [2]  # c and e: a is somebody else's now, b and d were given back
    await client.b.advance("10s")
    assert await values_left(client) == ["b", "d"]


@served
async def test_pages_go_on_behind_a_group_with_a_slash_in_its_name(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b")
    for group in ("a/b", "a/b/c", "a/b\nc"):  # Kafka takes them
        await client.b.receive("orders", group=group, max_messages=1)
    page = await client.get("/leases", limit=1)
    found = [each["group"] for each in page["leases"]]
    for _ in range(2):
        page = await client.get("/leases", limit=1, cursor=page["next"])
        found += [each["group"] for each in page["leases"]]
    assert (found, page["next"]) == (["a/b", "a/b\nc", "a/b/c"], None)


@served
async def test_what_is_held_is_listed_in_pages(client: Client) -> None:
    await topic(client, partitions=2)
    for number in range(2):
        await publish(client, *"abcd", partition=number)
    one, other = sorted(await take(client, consumer="anna", lease="1m"), key=lambda each: each["partition"])
    await settle(client, "ack", one, 1)
    assert await finish(client, other) == [4]
    await client.post("/topics/orders/receive", group="other", max_messages=1, partition=1, consumer="ben")
    first = await client.get("/leases", limit=2)
    rest = await client.get("/leases", limit=2, cursor=first["next"])
    assert rest["next"] is None
    shown = [
        (each["group"], each["partition"], each["first_offset"], each["last_offset"], each["consumer"])
        for each in first["leases"] + rest["leases"]
    ]
    assert shown == [("g", 0, 0, 0, "anna"), ("g", 0, 2, 3, "anna"), ("other", 1, 0, 0, "ben")]
    only = (await client.get("/leases", group="other"))["leases"]
    assert [(each["messages"], each["delivery_count"]) for each in only] == [(1, 1)]
    assert (await client.get("/leases", topic="nothing"))["leases"] == []


@served
async def test_receipts_of_leases_cannot_be_made_up(client: Client) -> None:
    await topic(client)
    await publish(client, *"ab")
    (lease,) = await take(client)
    for wrong in (f"{lease['receipt']}.2", f"{lease['receipt']}.00", f"{lease['receipt']}.x", lease["receipt"]):
        await client.post("/messages/ack", receipt_handle=wrong, status=400)
    await client.post("/leases/finish", leases=[{"receipt": f"{lease['receipt']}.0"}], status=400)
    await client.post("/leases/finish", leases=[{"receipt": lease["receipt"], "runs": [[1, 0, 1]]}], status=400)
    await client.post(TAKE, topics=["nothing"], status=404)

"""Receives that wait while whoever asked loses the right to read: they end soon, and lease nothing."""

import asyncio
from typing import Any

import pytest

from goqueue.doors.sqs.queue import GROUP
from goqueue.machines.deliveries.commands import Place
from tests.unit.doors.http.session_door import Door, in_door

MINE, THEIRS = "orders", "payroll"
SQS = {"x-amz-target": "AmazonSQS.ReceiveMessage"}
RECEIVE = {"QueueUrl": f"http://localhost/000000000000/{MINE}", "WaitTimeSeconds": 20}


async def furnish(door: Door) -> dict[str, str]:
    """Alice may read two topics. The ids of the rules, by what they are about."""
    for topic in (MINE, THEIRS):
        await door.as_admin("POST", "/topics", name=topic, num_partitions=1)
    await door.as_admin("PATCH", "/admin/users/alice", roles=[])
    rules = {}
    for kind, name in (("group", GROUP), ("topic", MINE), ("topic", THEIRS)):
        body = {"principal": "User:alice", "operation": "read", "effect": "allow"}
        body |= {"resource_type": kind, "resource_name": name}
        reply = await door.ask("POST", "/admin/acls", {"x-api-key": door.key}, body)
        rules[name] = reply.json()["id"]
    await door.log_in()
    return rules


async def parked(door: Door, path: str, body: Any, **headers: str) -> "asyncio.Future[Any]":
    if not headers:
        headers = {
            "origin": "https://mq.example.org",
            "x-goqueue-csrf": (await door.get("/session")).json()["csrf_token"],
        }
    asked = asyncio.ensure_future(door._ask("POST", path, headers, body))
    await door.settle()
    assert door.b.broker.receiver.is_asked(Place(GROUP, MINE, 0))
    assert not asked.done()
    return asked


async def leased(door: Door, *topics: str) -> "asyncio.Future[Any]":
    return await parked(door, f"/groups/{GROUP}/leases", {"topics": topics, "wait": "60s"})


@in_door
async def test_it_ends_when_the_right_is_taken_away_and_leases_nothing(door: Door) -> None:
    rules = await furnish(door)
    asked = await leased(door, MINE)
    await door.as_admin("POST", "/admin/users", name="bob", password="secret")
    assert not asked.done(), "the rights are as before"
    await door.as_admin("DELETE", f"/admin/acls/{rules[MINE]}")
    await door.settle()
    assert asked.done()
    assert (asked.result().status_code, asked.result().json()["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
    assert not door.b.broker.receiver.is_asked(Place(GROUP, MINE, 0))


@in_door
async def test_what_it_leases_where_it_may_not_read_any_more_is_given_back(door: Door) -> None:
    rules = await furnish(door)
    asked = await leased(door, MINE, THEIRS)
    await door.as_admin("DELETE", f"/admin/acls/{rules[THEIRS]}")
    await door.settle()
    assert not asked.done(), "the other topic may be read"
    await door.b.publish(THEIRS, b"x")
    await door.settle()
    assert asked.done()
    assert asked.result().status_code == 403
    (message,) = await door.b.receive(THEIRS, group=GROUP)
    assert (message.value, message.attempt) == (b"x", 1)


@in_door
async def test_the_right_on_the_group_counts_too(door: Door) -> None:
    rules = await furnish(door)
    asked = await parked(door, f"/topics/{MINE}/receive", {"group": GROUP, "wait": "60s"})
    await door.as_admin("DELETE", f"/admin/acls/{rules[GROUP]}")
    await door.settle()
    assert asked.done()
    assert (asked.result().status_code, asked.result().json()["code"]) == (403, "GROUP_AUTHORIZATION_FAILED")


@in_door
async def test_a_stream_meets_every_change_of_the_rights(door: Door) -> None:
    rules = await furnish(door)
    following = door.follow(f"/topics/{MINE}/follow")
    await door.settle()
    await door.as_admin("POST", "/admin/users", name="bob", password="secret")
    await door.b.publish(MINE, b"while allowed")
    await door.settle()
    assert not following.done()
    await door.as_admin("DELETE", f"/admin/acls/{rules[MINE]}")
    await door.b.publish(MINE, b"too late")
    await door.settle()
    assert following.done()
    told = following.result()
    assert (b"while allowed" in told, b"too late" in told) == (True, False)


@pytest.mark.parametrize("path", ["/", f"/topics/{MINE}/receive"])
def test_it_ends_with_the_key_that_it_was_asked_with(path: str) -> None:
    @in_door
    async def scenario(door: Door) -> None:
        await furnish(door)
        body: Any = {"name": "reader", "roles": ["consumer"]}
        made = (await door.ask("POST", "/admin/keys", {"x-api-key": door.key}, body)).json()
        door.cookies.clear()
        body, headers = {"group": GROUP, "wait": "60s"}, {"x-api-key": made["key"]}
        if path == "/":
            body, headers = RECEIVE, headers | SQS
        asked = await parked(door, path, body, **headers)
        await door.as_admin("DELETE", f"/admin/keys/{made['id']}")
        await door.settle()
        assert asked.done()
        assert asked.result().status_code == (403 if path == "/" else 401)
        await door.b.publish(MINE, b"x")
        (message,) = await door.b.receive(MINE, group=GROUP)
        assert (message.value, message.attempt) == (b"x", 1)

    scenario()

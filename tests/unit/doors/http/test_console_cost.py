"""What a watching page of the console costs a node: it asks once a second, and there are many. A reading is written as
JSON once for all who are shown the same, and a page more costs as much as a bare request."""

import asyncio
import gzip
import json
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from goqueue.broker.view.scope import Scope
from goqueue.doors.http.routes import console
from goqueue.model.credentials import NotAuthenticated
from goqueue.model.grants import Grants
from goqueue.testing import broker
from tests.steps import Steps
from tests.unit.doors.http.bare import Asked, Bare
from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.session_door import Door, in_door

PAGES = 50
READING = "/console/reading"


class Cost(NamedTuple):
    """In lines of Python."""

    more: float
    """Of a page beside the first."""
    bare: int
    """Of a request that asks for nothing."""
    answers: int
    """How many were made, of all pages."""


async def cost(topics: int) -> Cost:
    async with broker() as b:
        for number in range(topics):
            await b.create_topic(f"topic-{number}", partitions=2)
            await b.publish(f"topic-{number}", b"x")
            await b.receive(f"topic-{number}", "packers")
        door = Bare(b)
        bodies: list[bytes] = []

        async def ask(path: str) -> int:
            with Steps() as steps:
                answered = await door.ask(Asked("GET", path), on_piece=bodies.append)
            assert answered.status == 200
            return steps.count

        told = await door.ask(Asked("GET", READING))
        page = f"{READING}?since=1:{told.json['nodes']['1']['cursor']}"
        for number in range(topics):
            await b.publish(f"topic-{number}", b"y")
        await b.advance("1s")
        await ask(page)
        assert bodies.pop().count(b'"published":2') == topics
        bodies.clear()
        more = [await ask(page) for _ in range(PAGES - 1)]
        made = {id(each) for each in bodies if each}
        return Cost(sum(more) / len(more), await ask("/livez"), len(made))


@pytest.mark.parametrize("topics", [1, 100])
def test_a_page_more_costs_as_much_as_a_bare_request_and_little_more(topics: int) -> None:
    found = asyncio.run(cost(topics))
    assert found.more <= found.bare + 95, found
    assert found.answers == 1, "it is the same object that is sent to all"


@served
async def test_an_answer_that_is_large_is_packed_once_for_those_who_take_it_so(client: Client) -> None:
    for number in range(200):
        await client.b.create_topic(f"topic-{number}")
    plain = await client.http.get(READING, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    packed = await client.http.get(READING, headers={"accept-encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip"
    assert {each.headers["vary"] for each in (plain, packed)} == {"accept-encoding"}
    assert packed.content == plain.content, "httpx unpacks it"
    assert int(packed.headers["content-length"]) * 8 < len(plain.content)
    small = await client.http.get(READING, params={"since": f"1:{plain.json()['nodes']['1']['cursor']}"})
    assert "content-encoding" not in small.headers


def test_a_second_of_a_thousand_busy_topics_is_less_than_ten_kilobytes() -> None:
    """As a page that watches them is told."""

    async def inside() -> None:
        async with broker() as b:
            for number in range(1000):
                await b.create_topic(f"shop-{number}-orders", partitions=1)
            door = Bare(b)
            told = await door.ask(Asked("GET", READING))
            for number in range(1000):
                await b.publish(f"shop-{number}-orders", b"x")
            await b.advance("1s")
            page = Asked("GET", f"{READING}?since=1:{told.json['nodes']['1']['cursor']}")
            packed = await door.ask(page, headers=((b"accept-encoding", b"gzip"),))
            assert len(json.loads(gzip.decompress(packed.body))["nodes"]["1"]["topics"]) == 1000
            assert len(packed.body) <= 10_000

    asyncio.run(inside())


async def told(door: Door, key: str) -> dict[str, Any]:
    reply = await door.ask("GET", READING, {"x-api-key": key})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["nodes"]["1"]
    return found


@in_door
async def test_who_may_see_the_same_is_told_from_one_answer_and_others_are_not(door: Door) -> None:
    made: list[object] = []
    keys = []
    for roles in (["viewer"], ["operator"], ["consumer:orders-*"], ["consumer:orders-*"], ["producer:bills-*"]):
        reply = await door.ask("POST", "/admin/keys", {"x-api-key": door.key}, {"name": "a", "roles": roles})
        keys.append(reply.json()["key"])
    for topic in ("orders-1", "bills-1"):
        await door.as_admin("POST", "/topics", name=topic)
    write = console.encode

    def noted(reply: object) -> bytes:
        made.append(reply)
        return write(reply)

    with patch.object(console, "encode", noted):
        seen = [sorted((await told(door, key))["topics"]) for key in (door.key, *keys)]
    assert seen == [["bills-1", "orders-1"]] * 3 + [["orders-1"]] * 2 + [["bills-1"]]
    assert len(made) == 3
    checks = ["checks" in await told(door, key) for key in (door.key, *keys)]
    assert checks == [True] * 3 + [False] * 3, "what is wrong may be in any topic"


@in_door
async def test_a_right_that_is_taken_away_is_missed_at_once(door: Door) -> None:
    """Also within the second in which a reading is given to all."""
    await door.as_admin("POST", "/topics", name="orders")
    await door.as_admin("POST", "/admin/users", name="bob", password="secret", roles=["viewer"])
    await door.log_in("bob")
    assert list((await door.get(READING)).json()["nodes"]["1"]["topics"]) == ["orders"]
    rule = {"principal": "User:bob", "resource_type": "topic", "resource_name": "orders", "operation": "describe"}
    await door.as_admin("POST", "/admin/acls", **rule, effect="deny")
    assert (await door.get(READING)).json()["nodes"]["1"]["topics"] == {}


def test_looking_with_few_rights_is_noted_by_no_audit_trail_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page asks for what it may see, every second, and for nothing that it may not."""
    refused: list[object] = []

    def note(*asked: object) -> NotAuthenticated:
        refused.append(asked)
        return NotAuthenticated("no")

    monkeypatch.setattr(Scope, "_refusal", note)

    async def inside() -> None:
        async with broker() as b:
            await b.create_topic("orders-1")
            told = await Bare(b, Grants("User:bob", "", ("consumer:orders-*",), ())).ask(Asked("GET", READING))
            assert (told.status, "checks" in told.json["nodes"]["1"], refused) == (200, False, [])

    asyncio.run(inside())


@in_door
async def test_a_page_of_a_suspended_tenant_is_told_so(door: Door) -> None:
    await door.as_admin("POST", "/admin/tenants", id="acme", name="acme")
    said = {"x-api-key": door.key, "x-goqueue-tenant": "acme"}
    assert (await door.ask("GET", READING, said)).status_code == 200
    await door.as_admin("POST", "/admin/tenants/acme/suspend", reason="unpaid")
    refused = await door.ask("GET", READING, said)
    assert refused.status_code == 403
    assert "the tenant 'acme' is suspended: unpaid" in refused.json()["error"]

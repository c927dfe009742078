"""No answer rests on what a loss of power could take back: whoever is told of something finds it there afterwards."""

import asyncio
import errno
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.routes.table import ROUTES
from goqueue.model.ledgers import LedgerKind
from tests.unit.doors.http.door_client import Client, door

STRING, INT = ({"schema": f'{{"type":"{kind}"}}'} for kind in ("string", "int"))
TOPICS_AND_NODE = {
    "/",
    "/admin/acls",
    "/admin/audit",
    "/admin/keys",
    "/admin/quotas",
    "/admin/quotas/effective",
    "/admin/tenants",
    "/admin/tenants/{tenant}",
    "/admin/tenants/{tenant}/quotas",
    "/admin/tenants/{tenant}/usage",
    "/admin/users",
    "/cluster",
    "/cluster/events",
    "/cluster/health",
    "/cluster/nodes",
    "/cluster/partitions",
    "/cluster/partitions/{topic}/{partition}",
    "/docs",
    "/health",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi.json",
    "/postman.json",
    "/readyz",
    "/session",
    "/session/callback",
    "/session/oidc",
    "/stats",
    "/topics",
    "/topics/{topic}",
    "/topics/{topic}/partitions",
    "/topics/{topic}/partitions/{partition}/messages",
    "/traces/steps",
    "/version",
}
"""What is read from topics, users, keys, rules and quotas, whose changes are seen when they are durable, from logs
below the high watermark, or from the process itself."""
READINGS = {"/console/reading"}
"""These wait themselves, once for all who are given the same reading."""


def asked(client: Client, method: str, path: str, json: Any = None) -> "asyncio.Task[httpx.Response]":
    return asyncio.create_task(client.http.request(method, path, json=json))


async def let_happen(client: Client) -> None:
    """All that can without a sync."""
    await client.b.advance("1s")


SCHEMA_QUESTIONS = (
    ("GET", "/schemas/ids/1", None),
    ("GET", "/subjects", None),
    ("GET", "/subjects/orders/versions/latest", None),
    ("POST", "/subjects/orders", STRING),
    ("POST", "/subjects/orders/versions", STRING),
    ("POST", "/subjects/orders/versions", INT),
    ("POST", "/compatibility/subjects/orders/versions/latest", STRING),
)


def test_no_schema_is_told_of_before_it_is_durable() -> None:
    async def inside() -> None:
        async with door() as client:
            client.b.slow_disk("1h")
            registered = asked(client, "POST", "/subjects/orders/versions", STRING)
            await let_happen(client)
            others = [asked(client, *each) for each in SCHEMA_QUESTIONS]
            await let_happen(client)
            assert not [each for each in (registered, *others) if each.done()]
            await client.b.advance("3h")
            assert registered.result().json() == {"id": 1, "version": 1}
            assert [each.result().status_code for each in others] == [200] * 5 + [409, 200]

    asyncio.run(inside())


def test_after_a_loss_of_power_nobody_was_told_of_an_id_that_is_another_schema_now() -> None:
    async def inside() -> None:
        async with door() as client:
            client.b.slow_disk("1h")
            told = [asked(client, "POST", "/subjects/orders/versions", STRING)]
            await let_happen(client)
            told += [asked(client, *each) for each in SCHEMA_QUESTIONS]
            await let_happen(client)
            await client.b.crash("power")
            assert not [each for each in told if each.done() and each.result().status_code < 400]
            for each in told:
                each.cancel()
            client.b._sync_ms = 0
            await client.b.restart()
            client.http._transport = httpx.ASGITransport(HttpApp(Gate(client.b.broker)))
            assert await client.post("/subjects/orders/versions", schema=INT["schema"]) == {"id": 1, "version": 1}
            assert (await client.get("/schemas/ids/1"))["schema"] == INT["schema"]

    asyncio.run(inside())


CHANGES = {
    "a delayed message": (
        ("POST", "/topics/orders/messages", {"messages": [{"value": "x", "delay": "1d"}]}),
        ("/topics/orders/delayed", "/delay/stats", "/topics/orders/delayed/0/0"),
    ),
    "a queue group": (
        ("POST", "/topics/orders/receive", {"group": "workers"}),
        ("/groups", "/groups/workers", "/groups/workers/lag", "/console/reading"),
    ),
    "a transactional producer": (
        ("POST", "/producers/init", {"transactional_id": "pay"}),
        ("/transactions", "/transactions/stats"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_no_state_is_told_of_before_it_is_durable(name: str) -> None:
    change, questions = CHANGES[name]

    async def inside() -> None:
        async with door() as client:
            await client.post("/topics", name="orders", num_partitions=1, status=201)
            await client.post("/producers/init")  # the first waits for a block of producer ids
            client.b.slow_disk("1h")
            changed = asked(client, *change)
            await let_happen(client)
            answers = [asked(client, "GET", path) for path in questions]
            await let_happen(client)
            assert not [each for each in (changed, *answers) if each.done()]
            await client.b.advance("3h")
            assert {each.result().status_code for each in (changed, *answers)} <= {200, 201}

    asyncio.run(inside())


ACCOUNTS: dict[str, tuple[str, dict[str, Any]]] = {
    "users": ("/admin/users", {"name": "anna", "password": "pencil"}),
    "keys": ("/admin/keys", {"name": "ci", "roles": ["metrics"]}),
    "acls": (
        "/admin/acls",
        {"principal": "User:anna", "resource_type": "topic", "resource_name": "orders", "operation": "read"},
    ),
}


@pytest.mark.parametrize("name", ACCOUNTS)
def test_no_account_and_no_rule_is_seen_before_it_is_durable(name: str) -> None:
    path, body = ACCOUNTS[name]

    async def inside() -> None:
        async with door() as client:
            client.b.slow_disk("1h")
            made = asked(client, "POST", path, body)
            await let_happen(client)
            assert not made.done()
            assert (await client.get(path))[name] == []
            await client.b.advance("3h")
            assert made.result().status_code == 201
            assert (await client.get(path))["count"] == 1

    asyncio.run(inside())


def test_a_state_that_could_not_be_stored_is_not_told_of() -> None:
    async def inside() -> None:
        async with door() as client:
            fault = client.b.faults.add("sync", errno.EIO, prefix="logs/@schemas")
            with capture_logs():
                await client.ask("POST", "/subjects/orders/versions", STRING, status=503)
                assert fault.hits
                for method, path, body in SCHEMA_QUESTIONS:
                    await client.ask(method, path, body, status=503)
            assert (await client.get("/groups"))["groups"] == [], "others are none the worse for it"

    asyncio.run(inside())


def test_every_question_says_what_its_answer_is_read_from() -> None:
    asked = [each for each in ROUTES if each.operation.method == "GET" and not each.operation.waits]
    assert {each.operation.path for each in asked if not each.rests_on} == TOPICS_AND_NODE | READINGS
    assert {each.rests_on for each in ROUTES if each.operation.tag == "Schemas"} == {(LedgerKind.SCHEMAS,)}

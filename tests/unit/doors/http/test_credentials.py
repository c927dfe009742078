"""A closed HTTP door: who is let in by which header, and what others are told."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.testing import broker
from tests.unit.doors.http.door_client import Client


@asynccontextmanager
async def closed_door() -> AsyncIterator[tuple[Client, str]]:
    """And the key of an admin."""
    async with broker(clock="real") as b:
        node = b.broker
        gate = Gate(node, logins=Logins(node.accounts, node.clock, node.dice, b"secret"), is_closed=True)
        made = await done_of(lambda done: node.accounts.create_key("root", ("admin",), 0, {}, done))
        app = HttpApp(gate, by_header={TARGET: SqsApp(gate)})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://goqueue") as http:
            yield Client(b, http), made.text.reveal()


async def done_of(submit: Callable[[Callable[[Any], None]], object]) -> Any:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    submit(done.set_result)
    return await done


def closed(test: Callable[[Client, str], Awaitable[None]]) -> Callable[[], None]:
    async def inside() -> None:
        async with closed_door() as (client, key):
            await test(client, key)

    def run() -> None:
        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


def basic(text: str) -> dict[str, str]:
    return {"authorization": f"Basic {b64encode(text.encode()).decode()}"}


@closed
async def test_a_key_is_taken_in_three_headers(client: Client, key: str) -> None:
    _, key_id, secret = key.split("_")
    for headers in ({"authorization": f"Bearer {key}"}, {"x-api-key": key}, basic(f"{key_id}:{secret}")):
        assert (await client.http.get("/topics", headers=headers)).status_code == 200


@closed
async def test_whoever_shows_nothing_or_something_wrong_is_told_how_to_come_in(client: Client, key: str) -> None:
    wrong = f"{key[:-1]}{'0' if key[-1] != '0' else '1'}"
    for headers in ({}, {"x-api-key": wrong}, {"x-api-key": "x"}, {"authorization": "Basic x"}, basic("root:x")):
        reply = await client.http.get("/topics", headers=headers)
        assert (reply.status_code, reply.json()["code"]) == (401, "NOT_AUTHENTICATED")
        assert reply.headers.get_list("www-authenticate") == ['Bearer realm="goqueue"']
    reply = await client.http.get("/subjects")
    assert [each.split()[0] for each in reply.headers.get_list("www-authenticate")] == ["Bearer", "Basic"]


@closed
async def test_a_key_in_a_url_is_refused_even_if_it_is_right(client: Client, key: str) -> None:
    reply = await client.http.get(f"/topics?api_key={key}")
    assert (reply.status_code, reply.json()["code"]) == (400, "API_KEY_IN_URL")


@closed
async def test_health_is_open_and_metrics_are_not(client: Client, key: str) -> None:
    for path in ("/health", "/healthz", "/livez", "/version"):
        assert (await client.http.get(path)).status_code == 200
    assert (await client.http.get("/metrics")).status_code == 401
    made = await client.ask(
        "POST", "/admin/keys", {"name": "prometheus", "roles": ["metrics"]}, status=201, headers={"x-api-key": key}
    )
    scraper = {"authorization": f"Bearer {made['key']}"}
    assert (await client.http.get("/metrics", headers=scraper)).status_code == 200
    assert (await client.http.get("/topics", headers=scraper)).json() == {"topics": []}
    assert (await client.http.get("/admin/keys", headers=scraper)).status_code == 200


@closed
async def test_users_and_keys_over_http(client: Client, key: str) -> None:
    client.http.headers["x-api-key"] = key
    user = await client.post("/admin/users", status=201, name="alice", password="secret", roles=["producer"])
    assert (user["principal"], user["roles"]) == ("User:alice", ["producer"])
    await client.post("/admin/users", status=409, name="alice", password="other")
    await client.post("/admin/users", status=400, name="bob", password="x", roles=["king"])
    assert [each["name"] for each in (await client.get("/admin/users"))["users"]] == ["alice"]
    assert (await client.patch("/admin/users/alice", roles=["consumer"]))["roles"] == ["consumer"]
    await client.patch("/admin/users/bob", status=404, roles=["consumer"])
    made = await client.post("/admin/keys", status=201, name="app", roles=["readonly"], expires_in="1h")
    assert (made["roles"], made["key"].startswith(made["prefix"])) == (["viewer"], True)
    listed = await client.get("/admin/keys")
    assert listed["count"] == 2
    assert not any("key" in each for each in listed["keys"])
    rotated = await client.post(f"/admin/keys/{made['id']}/rotate", overlap="0s")
    assert rotated["secrets"] == 1
    for shown, status in ((made["key"], 401), (rotated["key"], 200)):
        assert (await client.http.get("/topics", headers={"x-api-key": shown})).status_code == status
    await client.delete(f"/admin/keys/{made['id']}")
    await client.delete(f"/admin/keys/{made['id']}", status=404)
    await client.delete("/admin/users/alice")
    await client.delete("/admin/users/alice", status=404)


@closed
async def test_nobody_but_an_admin_manages_accounts(client: Client, key: str) -> None:
    made = []
    for role in ("operator", "producer", "consumer", "viewer", "metrics"):
        body = {"name": role, "roles": [role]}
        made.append(await client.ask("POST", "/admin/keys", body, status=201, headers={"x-api-key": key}))
    for each in made:
        headers = {"x-api-key": each["key"]}
        for method, path, said in (
            ("POST", "/admin/keys", {"name": "x", "roles": ["admin"]}),
            ("POST", f"/admin/keys/{each['id']}/rotate", {}),
            ("POST", "/admin/users", {"name": "x", "password": "x", "roles": ["admin"]}),
            ("DELETE", f"/admin/keys/{each['id']}", None),
        ):
            await client.ask(method, path, said, status=403, headers=headers)


@closed
async def test_sqs_is_closed_too_and_says_so_in_its_own_words(client: Client, key: str) -> None:
    headers = {"x-amz-target": "AmazonSQS.ListQueues", "content-type": "application/x-amz-json-1.0"}
    reply = await client.http.post("/", headers=headers, content=b"{}")
    assert (reply.status_code, reply.json()["__type"].partition("#")[2]) == (403, "MissingAuthenticationToken")
    credential = "AWS4-HMAC-SHA256 Credential=x/20260101/goqueue/sqs/aws4_request"
    signed = {**headers, "authorization": credential}
    reply = await client.http.post("/", headers=signed, content=b"{}")
    assert (reply.status_code, reply.json()["__type"].partition("#")[2]) == (400, "IncompleteSignature")
    signed["authorization"] += ", SignedHeaders=host;x-amz-date;x-amz-target, Signature=00"
    reply = await client.http.post("/", headers=signed, content=b"{}")
    assert (reply.status_code, reply.json()["__type"].partition("#")[2]) == (403, "InvalidClientTokenId")
    reply = await client.http.post("/", headers={**headers, "x-api-key": key}, content=b"{}")
    assert reply.status_code == 200


@closed
async def test_who_may_not_act_for_a_tenant_is_told_so_over_sqs_too(client: Client, key: str) -> None:
    wanted = {"name": "app", "roles": ["operator"]}
    made = await client.ask("POST", "/admin/keys", wanted, status=201, headers={"x-api-key": key})
    headers = {"x-amz-target": "AmazonSQS.ListQueues", "content-type": "application/x-amz-json-1.0"}

    async def told(path: str, **shown: str) -> tuple[int, str]:
        reply = await client.http.post(path, headers={**headers, **shown}, content=b"{}")
        return reply.status_code, reply.json()["__type"].partition("#")[2]

    acting = {"x-goqueue-tenant": "acme"}
    assert await told("/", **{"x-api-key": made["key"], **acting}) == (403, "AccessDeniedException")
    assert await told("/", **{"x-api-key": key, **acting}) == (404, "ResourceNotFoundException")
    assert await told("/?api_key=x", **{"x-api-key": key}) == (400, "InvalidParameterValueException")


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_a_role_opens_what_it_is_for_and_nothing_else(role: str) -> None:
    async def inside() -> None:
        async with closed_door() as (client, key):
            await client.b.create_topic("orders")
            made = await client.ask(
                "POST", "/admin/keys", {"name": "x", "roles": [role]}, status=201, headers={"x-api-key": key}
            )
            headers = {"x-api-key": made["key"]}
            publish = await client.http.post(
                "/topics/orders/messages", headers=headers, json={"messages": [{"value": "x"}]}
            )
            receive = await client.http.post("/topics/orders/receive", headers=headers, json={"group": "workers"})
            delete = await client.http.delete("/topics/orders", headers=headers)
            unknown = await client.http.delete("/topics/nowhere", headers=headers)
            told = (publish.status_code, receive.status_code, delete.status_code, unknown.status_code)
            assert told == ((200, 403, 403, 403) if role == "producer" else (403, 200, 403, 403))

    asyncio.run(inside())

"""A web page of somebody else can reach a node on localhost. What it can send must not be taken."""

import asyncio
from typing import Any

import httpx
import pytest

from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.browsers import Visitors
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.testing import broker
from tests.unit.doors.http.door_client import Client, door, served

LOOPBACK = "http://127.0.0.1:8080"
OWN, FOREIGN = "http://goqueue", "http://evil.example"
MESSAGE = {"messages": [{"value": "three apples"}]}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

# -- the content type

NOT_JSON = [
    "text/plain",
    "text/plain; charset=utf-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "json",
]


@pytest.mark.parametrize("kind", [*NOT_JSON, "text/json", "application/jsonp", ""])
def test_a_body_that_a_form_could_send_is_refused(kind: str) -> None:
    @served
    async def test(client: Client) -> None:
        headers = {"content-type": kind} if kind else {}
        reply = await client.http.post("/topics", content=b'{"name": "orders"}', headers=headers)
        assert (reply.status_code, reply.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
        assert "--json" in reply.json()["error"]
        assert await client.get("/topics") == {"topics": []}

    test()


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON;charset=UTF-8", "application/vnd.schemaregistry.v1+json"]
)
def test_json_under_all_its_names_is_taken(kind: str) -> None:
    @served
    async def test(client: Client) -> None:
        reply = await client.http.post("/topics", content=b'{"name": "orders"}', headers={"content-type": kind})
        assert reply.is_success, reply.text

    test()


@served
async def test_without_a_body_no_content_type_is_needed(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    reply = await client.http.post("/topics/orders/dlq/redrive")
    assert reply.status_code != 415
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert (await client.http.post("/topics/orders/dlq/redrive", headers=form)).status_code == 415


# -- the origin


def told(**headers: str) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


OTHERS = {
    "another site": told(origin=FOREIGN),
    "another site, as newer browsers say it": told(origin=FOREIGN, sec_fetch_site="cross-site"),
    "another port of this machine": told(origin=f"{OWN}:3000", sec_fetch_site="same-site"),
    "another port, as older browsers say it": told(origin=f"{OWN}:3000"),
    "a file or a sandboxed frame": told(origin="null"),
    "an image": told(sec_fetch_site="cross-site", sec_fetch_mode="no-cors", sec_fetch_dest="image"),
    "a frame": told(sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="iframe"),
}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS.keys())
def test_a_page_of_another_origin_can_do_nothing(headers: dict[str, str]) -> None:
    @served
    async def test(client: Client) -> None:
        await client.post("/topics", name="orders", num_partitions=1, status=201)
        requests: list[tuple[str, str, Any]] = [
            ("GET", "/topics", None),
            ("POST", "/topics", {"name": "theirs"}),
            ("POST", "/topics/orders/messages", MESSAGE),
            ("DELETE", "/topics/orders", None),
            ("OPTIONS", "/topics/orders", None),
            ("GET", "/docs", None),
        ]
        for method, path, body in requests:
            reply = await client.http.request(method, path, json=body, headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (403, "FOREIGN_ORIGIN"), (method, path)
            assert [name for name in reply.headers if name.startswith("access-control")] == []
        assert await client.get("/topics") == {"topics": ["orders"]}
        assert (await client.get("/topics/orders/partitions/0/messages"))["messages"] == []

    test()


OURS = {
    "no browser": {},
    "our own page": told(origin=OWN),
    "our own page, as newer browsers say it": told(origin=OWN, sec_fetch_site="same-origin"),
    "our own page behind a proxy": told(origin="https://queue.example.com", sec_fetch_site="same-origin"),
    "the address bar": told(sec_fetch_site="none", sec_fetch_mode="navigate", sec_fetch_dest="document"),
}


@pytest.mark.parametrize("headers", OURS.values(), ids=OURS.keys())
def test_our_own_page_and_programs_may_ask(headers: dict[str, str]) -> None:
    @served
    async def test(client: Client) -> None:
        await client.ask("POST", "/topics", {"name": "orders"}, headers=headers, status=201)
        assert await client.ask("GET", "/topics", headers=headers) == {"topics": ["orders"]}

    test()


@served
async def test_a_link_on_another_page_shows_something_and_takes_nothing(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    for path in ("/docs", "/topics", "/topics/orders"):
        assert (await client.http.get(path, headers=LINK)).status_code == 200
    for path in ("/groups/billing/poll?member_id=a", "/topics/orders/follow"):
        reply = await client.http.get(path, headers=LINK)
        assert (reply.status_code, reply.json()["code"]) == (403, "FOREIGN_ORIGIN")
    assert (await client.http.delete("/topics/orders", headers=LINK)).status_code == 403


def test_an_origin_that_is_named_may_ask_and_no_other() -> None:
    async def inside() -> None:
        async with door(visitors=Visitors(origins=["https://console.example.com"])) as client:
            named = {"origin": "https://console.example.com", "sec-fetch-site": "cross-site"}
            preflight = {"access-control-request-method": "DELETE", "access-control-request-headers": "content-type"}
            reply = await client.http.options("/topics/a", headers={**named, **preflight})
            assert (reply.status_code, reply.headers["access-control-max-age"]) == (200, "300")
            reply = await client.http.post("/topics", json={"name": "orders"}, headers=named)
            assert reply.status_code == 201
            assert reply.headers["access-control-allow-origin"] == "https://console.example.com"
            assert reply.headers["vary"] == "Origin"
            for other in ("http://console.example.com", "https://console.example.com.evil.example", "null"):
                reply = await client.http.options("/topics/a", headers={**preflight, "origin": other})
                assert reply.status_code == 403
                assert "access-control-allow-origin" not in reply.headers

    asyncio.run(inside())


# -- the host


async def statuses(visitors: Visitors, address: str, hosts: list[str]) -> dict[str, int]:
    """By the header Host, of requests that arrive at an address."""
    found = {}
    async with broker() as b:
        app = HttpApp(Gate(b.broker), visitors=visitors)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{address}") as http:
            for host in hosts:
                replies = [await http.get("/topics", headers={"host": host}) for _ in range(2)]
                (found[host],) = {reply.status_code for reply in replies}  # what was found right is not looked at again
                assert found[host] == 200 or replies[0].json()["code"] == "UNKNOWN_HOST"
    return found


def test_on_a_loopback_address_only_names_of_this_node_are_answered() -> None:
    ours = [
        "localhost",
        "localhost:8080",
        "LocalHost.:9999",
        "127.0.0.1:8080",
        "127.9.9.9",
        "[::1]:8080",
        "queue:80",
        "",
    ]
    foreign = [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "a@b",
    ]
    foreign += ["evil.example@localhost.evil.example", "[::2]", "[", "localhost evil.example"]
    found = asyncio.run(statuses(Visitors(["Queue"]), "127.0.0.1:8080", [*ours, *foreign]))
    assert found == dict.fromkeys(ours, 200) | dict.fromkeys(foreign, 421)


def test_on_other_addresses_any_name_is_answered_until_some_are_named() -> None:
    hosts = ["queue.example.com", "goqueue", "10.0.0.1", "192.168.0.7"]
    assert asyncio.run(statuses(Visitors(), "10.0.0.1:8080", hosts)) == dict.fromkeys(hosts, 200)
    named = Visitors(["queue.example.com"], everywhere=True)
    found = asyncio.run(statuses(named, "10.0.0.1:8080", hosts))
    assert found == {"queue.example.com": 200, "goqueue": 421, "10.0.0.1": 200, "192.168.0.7": 200}


def test_any_host_can_be_allowed() -> None:
    found = asyncio.run(statuses(Visitors(["*"], everywhere=True), "127.0.0.1:8080", ["evil.example"]))
    assert found == {"evil.example": 200}


# -- SQS, on the same listener


def test_a_page_of_another_origin_cannot_use_sqs() -> None:
    async def inside() -> None:
        async with broker() as b:
            app = HttpApp(Gate(b.broker), by_header={TARGET: SqsApp(Gate(b.broker))})
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=LOOPBACK) as http:
                aws = {"x-amz-target": "AmazonSQS.CreateQueue", "content-type": "application/x-amz-json-1.0"}
                for wrong in ({"origin": FOREIGN}, {"host": "evil.example"}, {"sec-fetch-site": "cross-site"}):
                    reply = await http.post("/", content=b'{"QueueName": "orders"}', headers={**aws, **wrong})
                    assert reply.status_code in (403, 421)
                assert await b.topics() == []
                reply = await http.post("/", content=b'{"QueueName": "orders"}', headers=aws)
                assert reply.status_code == 200
                assert await b.topics() == ["orders"]

    asyncio.run(inside())


# -- pages


@served
async def test_the_page_lets_nothing_run_that_is_not_its_own(client: Client) -> None:
    reply = await client.http.get("/docs")
    policy = dict(each.split(" ", 1) for each in reply.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["script-src"].startswith("'sha256-")
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["x-frame-options"] == "DENY"

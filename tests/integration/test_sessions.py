"""Sessions on real nodes: what pages of others try with the session of a real browser, and what a cluster makes of one
that another node has begun.
"""

import json
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.integration import browser
from tests.integration.closed_cluster import NODES, ClosedCluster
from tests.integration.devtools import chromium
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.test_browser import needs_chromium

PASSWORD = "correct horse"
USER = {"name": "alice", "password": PASSWORD, "roles": ["admin"]}
LOG_IN = {"user": "alice", "password": PASSWORD}

CALL = """
const call = async (method, path, body, more) => { const reply = await fetch(path, { method,
  headers: { "content-type": "application/json", ...more }, body: body && JSON.stringify(body) });
  return { status: reply.status, body: await reply.json() }; };
"""
BEGIN = """
const told = await call("POST", "/session", LOGIN);
globalThis.csrf = { "x-goqueue-csrf": told.body.csrf_token };
globalThis.stream = new EventSource("/topics/orders/follow?from=earliest");
globalThis.over = new Promise((done) => { stream.addEventListener("end", () => done("end"));
  stream.onerror = () => { if (stream.readyState === 2) done("closed"); }; });
const first = await new Promise((done) => { stream.addEventListener("message", (event) => done(event.data)); });
return { login: told.status, cookie: document.cookie, me: (await call("GET", "/session")).body.principal,
  without: (await call("POST", "/topics", { name: "without" })).status,
  made: (await call("POST", "/topics", { name: "made" }, csrf)).status, first: JSON.parse(first).value };
""".replace("LOGIN", json.dumps(LOG_IN))
ATTACK = """
const node = NODE, outcome = async (work) => { try { return await work(); } catch (error) { return "refused"; } };
const ask = (method, path, more) => outcome(async () => (await fetch(node + path,
  { method, credentials: "include", ...more })).status);
const frame = Object.assign(document.createElement("iframe"), { name: "target" });
const form = document.createElement("form");
Object.assign(form, { method: "post", action: node + "/topics", enctype: "text/plain", target: "target" });
form.append(Object.assign(document.createElement("input"), { name: '{"name": "formed", "a": "', value: '"}' }));
document.body.append(frame, form);
const loaded = new Promise((done) => { frame.onload = done; });
form.submit();
await loaded;
const framed = Object.assign(document.createElement("iframe"), { src: node + "/docs" });
const shown = new Promise((done) => { framed.onload = done; });
document.body.append(framed);
await shown;
return {
  read: await ask("GET", "/session"), topics: await ask("GET", "/topics"),
  remove: await ask("DELETE", "/topics/orders"),
  simple: await outcome(async () => (await fetch(node + "/topics", { method: "POST", mode: "no-cors",
    credentials: "include", headers: { "content-type": "text/plain" }, body: '{"name": "simple"}' })).type),
  logout: await ask("DELETE", "/session"),
  follow: await new Promise((done) => { const events = new EventSource(node + "/topics/orders/follow?from=earliest",
    { withCredentials: true }); events.onopen = () => done("open"); events.onerror = () => done("refused"); }),
};
"""

FRAME = """
const framed = Object.assign(document.createElement("iframe"), { src: "/docs" });
const shown = new Promise((done) => { framed.onload = done; });
document.body.append(framed);
await shown;
return framed.contentDocument === null;
"""
"""Whether it is kept from showing the page: of a page of its own it could read the document."""


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, is_closed=True)
    try:
        node.start()
        with httpx.Client(base_url=node.url, timeout=DEADLINE_S, headers={"x-api-key": node.first_key}) as http:
            http.post("/topics", json={"name": "orders"}).raise_for_status()
            http.post("/topics/orders/messages", json={"messages": [{"value": "first"}]}).raise_for_status()
            http.post("/admin/users", json=USER).raise_for_status()
        yield node
    finally:
        node.clean_up()


@needs_chromium
def test_a_page_of_the_node_has_its_session_and_pages_of_others_gain_nothing_by_it(
    closed: Node, tmp_path: Path
) -> None:
    host, _, port = closed.url.removeprefix("http://").partition(":")
    rules = f"--host-resolver-rules=MAP rebound.example {host}"
    with browser.site() as site, chromium(tmp_path / "profile", rules) as running:
        own = running.open(f"{closed.url}/docs")
        begun = own.run(CALL + BEGIN)
        assert begun == {
            "login": 200,
            "cookie": "",  # pages cannot read it
            "me": "User:alice",
            "without": 403,
            "made": 201,
            "first": "first",
        }
        evil = running.open(site.origin)
        told = evil.run(ATTACK.replace("NODE", json.dumps(closed.url)))
        assert told == dict.fromkeys(("read", "topics", "remove", "simple", "logout", "follow"), "refused")
        assert own.run(FRAME) is True, "not even its own pages may frame it"
        rebound = running.open(f"http://rebound.example:{port}/docs")
        assert "UNKNOWN_HOST" in rebound.run("return document.body.innerText")
        still = own.run(CALL + "return (await call('GET', '/topics')).body.topics")
        assert still == ["made", "orders"]
        assert own.run(CALL + "return (await call('DELETE', '/session', undefined, csrf)).status") == 200
        assert own.run("return await over") in ("end", "closed")
        assert own.run(CALL + "return (await call('GET', '/session')).status") == 401


SEND = """
const inside = (name) => document.getElementById(name).querySelector(".inside");
const sent = async (name, body) => { document.getElementById(name).open = true;
  while (!inside(name)?.querySelector("button")) await new Promise((done) => setTimeout(done, 10));
  inside(name).querySelector("textarea").value = JSON.stringify(body);
  inside(name).querySelector("button").click();
  const answer = inside(name).querySelector("pre");
  while (!/^[0-9]+ .* ms/.test(answer.textContent)) await new Promise((done) => setTimeout(done, 10));
  return answer.textContent.slice(0, 3); };
while (!document.getElementById("create_topic")) await new Promise((done) => setTimeout(done, 10));
return [await sent("create_topic", { name: "early" }), await sent("log_in", LOGIN),
  await sent("create_topic", { name: "sent" })];
""".replace("LOGIN", json.dumps(LOG_IN))


@needs_chromium
def test_the_page_for_people_logs_in_and_sends_what_changes_something(closed: Node, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as running:
        page = running.open(f"{closed.url}/docs")
        assert page.run(SEND) == ["401", "200", "201"]
        assert page.run(CALL + "return (await call('GET', '/topics')).body.topics") == ["orders", "sent"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedCluster]:
    running = ClosedCluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.start()
        keys = [each.log_file.parent / "bootstrap.key" for each in running.nodes.values()]
        (key,) = [each.read_text().strip() for each in keys if each.exists()]
        with httpx.Client(verify=ssl.create_default_context(cafile=running.ca), timeout=DEADLINE_S) as http:
            made = http.post(f"{running.url(1)}/admin/users", json=USER, headers={"x-api-key": key})
            assert made.status_code == 201, made.text
        yield running
    finally:
        running.clean_up()


def test_a_session_that_one_node_has_begun_is_honoured_and_ended_by_all(cluster: ClosedCluster) -> None:
    trusted = ssl.create_default_context(cafile=cluster.ca)
    with httpx.Client(verify=trusted, timeout=DEADLINE_S) as http:
        begun = http.post(f"{cluster.url(1)}/session", json=LOG_IN).raise_for_status()
        cookie, csrf = begun.headers["set-cookie"].partition(";")[0], begun.json()["csrf_token"]
        assert cookie.startswith("__Host-gq=")
    with httpx.Client(verify=trusted, timeout=DEADLINE_S, headers={"cookie": cookie}) as http:

        def is_honoured(number: int) -> bool:
            return http.get(f"{cluster.url(number)}/session").status_code == 200

        for number in NODES:
            wait_until(partial(is_honoured, number), f"node {number} to know the user")
            own = {"origin": cluster.url(number)}
            asked = partial(http.post, f"{cluster.url(number)}/topics", json={"name": f"by-{number}"})
            assert asked(headers=own).status_code == 403
            made = asked(headers={**own, "x-goqueue-csrf": csrf})
            assert made.status_code == 201, made.text
        end = http.delete(f"{cluster.url(2)}/session", headers={"x-goqueue-csrf": csrf, "origin": cluster.url(2)})
        assert end.status_code == 200, end.text
        wait_until(lambda: not any(map(is_honoured, NODES)), "all nodes to know of the log-out")


def test_a_session_of_one_tenant_is_of_no_use_for_another_on_any_node(cluster: ClosedCluster) -> None:
    trusted = ssl.create_default_context(cafile=cluster.ca)
    with httpx.Client(verify=trusted, timeout=DEADLINE_S, auth=("alice", PASSWORD)) as admin:
        for tenant in ("acme", "bolt"):
            admin.post(f"{cluster.url(1)}/admin/tenants", json={"id": tenant, "name": tenant}).raise_for_status()
            anna = {"name": "anna", "password": PASSWORD, "roles": ["admin"]}
            acting = {"x-goqueue-tenant": tenant}
            wait_until(
                lambda given=(anna, acting): (
                    admin.post(  # type: ignore[misc]
                        f"{cluster.url(2)}/admin/users", json=given[0], headers=given[1]
                    ).status_code
                    == 201
                ),
                "node 2 to know the tenant",
            )
            made = admin.post(f"{cluster.url(2)}/topics", json={"name": f"of-{tenant}"}, headers=acting)
            assert made.status_code == 201, made.text
    with httpx.Client(verify=trusted, timeout=DEADLINE_S) as http:
        cookies, csrf = {}, {}
        for tenant in ("acme", "bolt"):
            given = {"user": f"{tenant}~anna", "password": PASSWORD}
            begun = http.post(f"{cluster.url(2)}/session", json=given).raise_for_status()
            cookies[tenant], csrf[tenant] = begun.headers["set-cookie"].partition(";")[0], begun.json()["csrf_token"]
    with httpx.Client(verify=trusted, timeout=DEADLINE_S) as http:

        def topics(number: int, session: str, tenant: str = "") -> object:
            headers = {"cookie": cookies[session], **({"x-goqueue-tenant": tenant} if tenant else {})}
            reply = http.get(f"{cluster.url(number)}/topics", headers=headers)
            return reply.json()["topics"] if reply.status_code == 200 else reply.status_code

        for number in NODES:
            for mine, other in (("acme", "bolt"), ("bolt", "acme")):
                wait_until(partial(lambda *of: topics(*of) == [f"of-{of[1]}"], number, mine), f"node {number}")
                assert topics(number, mine, mine) == [f"of-{mine}"]
                assert (topics(number, mine, other), topics(number, mine, "default")) == (403, 403)
                shown = {"cookie": cookies[mine], "origin": cluster.url(number), "x-goqueue-csrf": csrf[other]}
                mixed = http.post(f"{cluster.url(number)}/topics", json={"name": "mixed"}, headers=shown)
                assert mixed.status_code == 403, "the token of another tenant's session"
        shown = {"cookie": cookies["acme"], "origin": cluster.url(3), "x-goqueue-csrf": csrf["acme"]}
        assert http.delete(f"{cluster.url(3)}/session?all=true", headers=shown).status_code == 200
        wait_until(lambda: {topics(each, "acme") for each in NODES} == {401}, "all nodes to know of the log-out")
        assert [topics(each, "bolt") for each in NODES] == [["of-bolt"]] * 3, "whose user has the same name"

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedCluster]:
    running = ClosedCluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield running.start()
    finally:
        running.clean_up()


def test_a_session_that_one_node_has_begun_is_honoured_and_ended_by_all(cluster: ClosedCluster) -> None:
    (key,) = [each.first_key for each in cluster.nodes.values() if (each.log_file.parent / "bootstrap.key").exists()]
    trusted = ssl.create_default_context(cafile=cluster.ca)
    with httpx.Client(verify=trusted, timeout=DEADLINE_S) as http:
        headers = {"x-api-key": key}
        http.post(f"{cluster.url(1)}/admin/users", json=USER, headers=headers).raise_for_status()
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

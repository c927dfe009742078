"""A real browser with a page of another origin: it must not get anything done here, unless a setting names it."""

import json
import re
import socket
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import cast

import httpx
import pytest

from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages.topics import CreatableTopic, CreateTopicsRequest
from goqueue.wire.rest.operations.table import OPERATIONS
from tests.integration import browser
from tests.integration.process import DEADLINE_S, Node
from tests.integration.wire import Closed, Wire

needs_chromium = pytest.mark.skipif(browser.CHROMIUM is None, reason="chromium is not installed")
CREATE_VERSION = 5

ATTACKS = """
const node = {url}, json = {{ "content-type": "application/json" }};
const topic = (name) => JSON.stringify({{ name }});
const simple = (kind) => outcome(async () => (await fetch(node + "/topics",
  {{ method: "POST", mode: "no-cors", headers: {{ "content-type": kind }}, body: topic("simple") }})).type);
const form = document.createElement("form"), frame = document.createElement("iframe");
frame.name = "target";
Object.assign(form, {{ method: "post", action: node + "/topics", enctype: "text/plain", target: "target" }});
form.append(Object.assign(document.createElement("input"), {{ name: '{{"name": "formed", "a": "', value: '"}}' }}));
document.body.append(frame, form);
const loaded = new Promise((done) => {{ frame.onload = done; }});
form.submit();
await loaded;
const image = await new Promise((done) => {{ const shown = new Image(); shown.onload = shown.onerror = done;
  shown.src = node + "/groups/billing/poll?member_id=a"; }});
navigator.sendBeacon(node + "/topics", new Blob([topic("beacon")], {{ type: "text/plain" }}));
const bytes = Uint8Array.from(atob({frame}), (each) => each.charCodeAt(0));
const raw = (address) => outcome(async () => (await fetch("http://" + address,
  {{ method: "POST", mode: "no-cors", body: bytes }})).type);
return {{
  read: await outcome(async () => (await fetch(node + "/topics")).status),
  create: await outcome(async () => (await fetch(node + "/topics",
    {{ method: "POST", headers: json, body: topic("theirs") }})).status),
  follow: await new Promise((done) => {{ const events = new EventSource(node + "/topics/orders/follow?from=earliest");
    events.onmessage = events.onopen = () => done("open"); events.onerror = () => done("refused"); }}),
  remove: await outcome(async () => (await fetch(node + "/topics/orders", {{ method: "DELETE" }})).status),
  text: await simple("text/plain"), form: await simple("application/x-www-form-urlencoded"),
  kafka: await raw({kafka}), grpc: await raw({grpc}),
}};
"""


def create_topic() -> bytes:
    """A request of Kafka's that makes a topic, if it is taken for one."""
    request = CreateTopicsRequest([CreatableTopic("binary", 1, 1)])
    return b"".join(cast(list[bytes], request_frame(request, CREATE_VERSION, 1, "page")))


def attack(node: Node, site: browser.Site, profile: Path) -> dict[str, object]:
    words = {"url": node.url, "kafka": node.address, "grpc": node.grpc, "frame": b64encode(create_topic()).decode()}
    told: dict[str, object] = site.visit(profile, ATTACKS.format(**{k: json.dumps(v) for k, v in words.items()}))
    return told


def topics(node: Node) -> list[str]:
    found: list[str] = httpx.get(f"{node.url}/topics").json()["topics"]
    return found


@needs_chromium
def test_a_page_of_another_origin_gets_nothing_done(own_node: Node, tmp_path: Path) -> None:
    httpx.post(f"{own_node.url}/topics", json={"name": "orders"}).raise_for_status()
    with browser.site() as site:
        told = attack(own_node, site, tmp_path / "profile")
    assert told == dict.fromkeys(("read", "create", "follow", "remove", "text", "form", "kafka", "grpc"), "refused")
    assert topics(own_node) == ["orders"]


@needs_chromium
def test_a_page_that_a_setting_names_may_ask(tmp_path: Path) -> None:
    with browser.site() as site:
        node = Node(tmp_path, "--http-allowed-origins", site.origin).start()
        try:
            httpx.post(f"{node.url}/topics", json={"name": "orders"}).raise_for_status()
            told = attack(node, site, tmp_path / "profile")
            assert (told["read"], told["create"], told["remove"], told["follow"]) == (200, 201, 200, "open")
            assert topics(node) == ["theirs"]
        finally:
            node.clean_up()


@needs_chromium
def test_a_name_that_was_made_to_point_here_is_not_answered(node: Node, tmp_path: Path) -> None:
    host, _, port = node.url.removeprefix("http://").partition(":")
    rules = f"--host-resolver-rules=MAP rebound.example {host}"
    shown, _ = browser.dump(tmp_path / "profile", f"http://rebound.example:{port}/topics", rules)
    assert "UNKNOWN_HOST" in shown


@needs_chromium
def test_the_page_shows_the_fields_of_answers_and_no_backticks(node: Node, tmp_path: Path) -> None:
    shown, _ = browser.dump(tmp_path / "profile", f"{node.url}/docs#publish")
    opened = shown[shown.index('id="publish"') :].partition("</details>")[0]
    assert "<h3>PublishedAll</h3>" in opened
    assert "<h3>Published</h3>" in opened
    assert "<td><code>durability</code></td>" in opened
    assert "A delay goes before <code>deliver_at</code>" in opened
    assert "`" not in re.sub(r"<[^>]*>", "", shown.partition("<script>")[0])


@needs_chromium
def test_the_page_for_people_works_under_its_own_policy(node: Node, tmp_path: Path) -> None:
    shown, said = browser.dump(tmp_path / "profile", f"{node.url}/docs")
    assert shown.count("<details") == len(OPERATIONS)
    assert "Content Security Policy" not in said


def test_an_http_request_is_no_kafka_request(node: Node) -> None:
    """Whatever its body is: a browser sends the head first."""
    for head in (b"POST / HTTP/1.1", b"PUT / HTTP/1.1", b"GET / HTTP/1.1", b"OPTIONS / HTTP/1.1", b"PATCH / HTTP/1.1"):
        with Wire(node) as wire:
            wire.send_bytes(head + b"\r\nHost: localhost\r\n\r\n" + create_topic())
            with pytest.raises(Closed):
                wire.receive_frame()
    assert "binary" not in topics(node)
    with Wire(node) as wire:  # the request itself is a good one
        wire.send_bytes(create_topic())
        wire.receive_frame()
    assert "binary" in topics(node)


def test_an_http_1_request_is_no_grpc_call(node: Node) -> None:
    reply = b""
    host, _, port = node.grpc.partition(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as connection:
        connection.sendall(b"POST /goqueue.v1.TopicService/CreateTopic HTTP/1.1\r\nHost: localhost\r\n")
        connection.sendall(b"Content-Type: application/grpc\r\nContent-Length: 13\r\n\r\n\0\0\0\0\x08\n\x06called")
        with suppress(ConnectionError):
            while piece := connection.recv(1 << 16):
                reply += piece
    assert b"200 OK" not in reply
    assert "called" not in topics(node)

"""A node behind a proxy that ends TLS: what it is believed, and what others who say the same are not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.process import DEADLINE_S, Node

PROXY, OTHER = "127.0.0.9", "127.0.0.10"
NAME = "mq.example.org"
USER = {"name": "alice", "password": "correct horse", "roles": ["admin"]}
LOG_IN = {"user": "alice", "password": "correct horse"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    arguments = ("--trusted-proxies", f"192.0.2.0/24,{PROXY}", "--http-allowed-hosts", NAME)
    running = Node(tmp_path_factory.mktemp("proxied"), *arguments, is_closed=True)
    try:
        running.start()
        made = httpx.post(f"{running.url}/admin/users", json=USER, headers={"x-api-key": running.first_key})
        assert made.status_code == 201, made.text
        yield running
    finally:
        running.clean_up()


def through(node: Node, address: str, **headers: str) -> httpx.Client:
    """As somebody at this address, who passes on what a browser has asked at `mq.example.org`."""
    transport = httpx.HTTPTransport(local_address=address)
    said = {"host": NAME, **{name.replace("_", "-"): each for name, each in headers.items()}}
    return httpx.Client(transport=transport, base_url=node.url, headers=said, timeout=DEADLINE_S)


def trail(node: Node, operation: str) -> list[Any]:
    told = httpx.get(f"{node.url}/admin/audit", auth=("alice", LOG_IN["password"])).raise_for_status().json()
    return [each for each in told["entries"] if each["operation"] == operation]


def test_a_session_through_a_proxy_with_tls_is_as_safe_as_over_tls(node: Node) -> None:
    with through(node, PROXY, x_forwarded_proto="https", x_forwarded_for="198.51.100.7, 192.0.2.8") as http:
        begun = http.post("/session", json=LOG_IN)
        assert begun.status_code == 200, begun.text
        cookie = begun.headers["set-cookie"]
        assert cookie.startswith("__Host-gq=")
        assert "; Secure" in cookie
        http.headers["cookie"] = cookie.partition(";")[0]
        csrf = {"x-goqueue-csrf": begun.json()["csrf_token"]}
        create = partial(http.post, "/topics", json={"name": "orders"})
        assert create(headers={**csrf, "origin": f"http://{NAME}"}).status_code == 403
        made = create(headers={**csrf, "origin": f"https://{NAME}"})
        assert made.status_code == 201, made.text
    entries = trail(node, "create_topic")
    assert {each["host"] for each in entries} == {"198.51.100.7"}
    assert made.headers["x-request-id"] in {each["request_id"] for each in entries}
    assert {each["host"] for each in trail(node, "log_in")} == {"198.51.100.7"}


def test_what_somebody_else_says_of_itself_is_not_looked_at(node: Node) -> None:
    with through(node, OTHER, x_forwarded_proto="https", x_forwarded_for="198.51.100.9") as http:
        begun = http.post("/session", json=LOG_IN)
        assert begun.headers["set-cookie"].startswith("gq-dev="), "it is on this machine, without TLS"
        assert http.get("/topics", auth=("mallory", "wrong")).status_code == 401
    (failed,) = [each for each in trail(node, "login") if each["principal"] == "mallory"]
    assert failed["host"] == OTHER


def test_a_proxy_that_says_nonsense_is_the_client(node: Node) -> None:
    with through(node, PROXY, x_forwarded_for="198.51.100.9, <script>, unknown") as http:
        assert http.get("/topics", auth=("nonsense", "wrong")).status_code == 401
    (failed,) = [each for each in trail(node, "login") if each["principal"] == "nonsense"]
    assert failed["host"] == PROXY


def test_clients_of_one_proxy_are_slowed_down_by_their_own_guesses(node: Node) -> None:
    def guess(address: str) -> str:
        with through(node, PROXY, x_forwarded_for=address) as http:
            reply = http.get("/topics", auth=("alice", "wrong"))
            assert reply.status_code == 401
            return str(reply.json()["error"])

    with ThreadPoolExecutor(15) as at_once:  # one failure a second is forgiven, however busy the machine is
        told = [each for _ in range(2) for each in at_once.map(guess, ["198.51.100.20"] * 15)]
    assert any("too many" in each for each in told)
    assert "too many" not in guess("198.51.100.21")


def test_only_addresses_can_be_trusted(tmp_path: Path) -> None:
    for wrong in ("*", "proxy.example.org", "10.0.0.1/8"):
        node = Node(tmp_path, "--trusted-proxies", wrong, is_closed=True)
        with pytest.raises(AssertionError, match=r"trusted-proxies.*addresses or networks such as"):
            node.start()

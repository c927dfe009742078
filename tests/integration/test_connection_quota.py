"""`connection_creation_rate`: how many connections an address may make, over Kafka, HTTP and gRPC."""

import socket

import httpx
from confluent_kafka.admin import AdminClient

from goqueue.cli.exits import EXIT_USAGE
from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, Node

RATE = ("--connection-creation-rate", "0.001")
"""One connection, and none for a long time."""


def raw(endpoint: tuple[str, int]) -> bytes:
    """What a connection says before it is closed."""
    with socket.create_connection(endpoint, DEADLINE_S) as connected:
        connected.settimeout(DEADLINE_S)
        return connected.recv(1000)


def test_an_address_that_makes_too_many_connections_is_turned_away(goqueue: Command, node: Node) -> None:
    host, port = node.endpoint
    with httpx.Client(base_url=node.url, timeout=DEADLINE_S) as kept:
        assert kept.get("/topics").status_code == 200
        body = {"ip": "127.0.0.1", "connection_creation_rate": 0.001}
        made = kept.put("/admin/quotas", json=body)
        assert made.status_code == 200, made.text
        with socket.create_connection((host, port), DEADLINE_S):  # the one that it has
            pass
        assert raw((host, port)) == b"", "Kafka's protocol has no word before the first request"
        refused = httpx.get(f"{node.url}/topics", timeout=DEADLINE_S)
        assert (refused.status_code, refused.json()["code"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert refused.headers["retry-after"] == "1"
        assert kept.get("/topics").status_code == 200, "connections that are there stay"
        assert 'connection_creation_rate"' in kept.get("/metrics").text
        assert kept.delete("/admin/quotas", params={"ip": "127.0.0.1"}).status_code == 200
    assert goqueue.json("quota", "list") == []


def test_kafkas_tools_and_ours_see_the_same(goqueue: Command, node: Node) -> None:
    goqueue.run("quota", "set", "--ip", "10.9.9.9", *RATE)
    assert goqueue.json("quota", "describe", "--ip", "10.9.9.9")["connection_creation_rate"] == 0.001
    AdminClient({"bootstrap.servers": node.address}).list_topics(timeout=DEADLINE_S)
    goqueue.run("quota", "delete", "--ip", "10.9.9.9")
    refused = goqueue.run("quota", "set", "--ip", "10.9.9.9", "--request-rate", "1", code=EXIT_USAGE)
    assert "connection_creation_rate is of an address" in refused.err

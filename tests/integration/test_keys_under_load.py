"""Keys that are rotated and deleted while a Kafka client uses them: what was acknowledged is there, and a key that is
gone is gone for connections that are open, too."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.integration.process import DEADLINE_S, Node, wait_until


def settings(node: Node, key: str) -> dict[str, Any]:
    _, key_id, secret = key.split("_")
    return {
        "bootstrap.servers": node.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": key_id,
        "sasl.password": secret,
    }


class Load:
    """Sends numbers, one after the other, until it is stopped."""

    def __init__(self, node: Node, key: str, name: str) -> None:
        self.acknowledged: list[bytes] = []
        self.failed: list[KafkaError] = []
        self._name = name
        self._is_over = threading.Event()
        self.said: list[int] = []
        """Errors that are of no message."""
        more: dict[str, Any] = {"enable.idempotence": True, "linger.ms": 0}
        self._producer = Producer(
            settings(node, key) | more | {"error_cb": lambda error: self.said.append(error.code())}
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            if len(self._producer) < 100:
                number += 1
                self._producer.produce("orders", f"{self._name}-{number}".encode(), on_delivery=self._told)
            self._producer.poll(0.001)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(message.value() or b"")
        else:
            self.failed.append(error)

    def go_on(self) -> None:
        """Returns when it has got further by some messages."""
        wanted = len(self.acknowledged) + 50
        wait_until(lambda: len(self.acknowledged) >= wanted, f"50 more messages of {self._name}")

    def stop(self, *, gives_up: bool = False) -> None:
        self._is_over.set()
        self._thread.join(DEADLINE_S)
        if gives_up:
            self._producer.purge()
        assert self._producer.flush(DEADLINE_S) == 0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, is_closed=True)
    node.start()
    yield node
    node.clean_up()


def ask(node: Node, method: str, path: str, body: Any = None) -> Any:
    headers = {"X-API-Key": node.first_key}
    reply = httpx.request(method, node.url + path, json=body, headers=headers, timeout=DEADLINE_S)
    return reply.raise_for_status().json() if reply.content else None


def stored(node: Node) -> list[bytes]:
    reader = Consumer(settings(node, node.first_key) | {"group.id": "reader"})
    place = TopicPartition("orders", 0, 0)
    _, end = reader.get_watermark_offsets(place, timeout=DEADLINE_S)
    reader.assign([place])
    found: list[Message] = []

    def has_all() -> bool:
        found.extend(reader.consume(1000, 0.1))
        return len(found) >= end

    wait_until(has_all, f"{end} messages")
    reader.close()
    return [each.value() or b"" for each in found]


def test_no_message_is_lost_while_a_key_is_rotated_and_none_is_taken_when_it_is_deleted(node: Node) -> None:
    ask(node, "POST", "/topics", {"name": "orders", "num_partitions": 1})
    made = ask(node, "POST", "/admin/keys", {"name": "app", "roles": ["producer"]})
    old = Load(node, made["key"], "old")
    old.go_on()
    rotated = ask(node, "POST", f"/admin/keys/{made['id']}/rotate", {"overlap": "1h"})
    old.go_on()
    new = Load(node, rotated["key"], "new")
    new.go_on()
    old.go_on()
    old.stop()
    assert old.failed == []
    ask(node, "DELETE", f"/admin/keys/{made['id']}")
    wait_until(lambda: KafkaError._AUTHENTICATION in new.said, "refusal of its next login")
    new.stop(gives_up=True)
    assert new.failed, "it could not go on"
    there = stored(node)
    assert len(set(there)) == len(there), "nothing twice"
    assert {*old.acknowledged, *new.acknowledged} <= set(there)

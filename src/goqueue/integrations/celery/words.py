"""What Celery says in GoQueue's words: names of queues, priorities, moments, and the record that carries a message."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypedDict

from kombu.utils.json import dumps, loads

from goqueue.client.message import Message

HEADER = "kombu"
"""Of a record: all of a message but its body, as JSON. The body is the value, so that tools show it as it is."""
NAME_CHARS_MAX = 200
BAD_CHARS = re.compile(r"[^a-zA-Z0-9._-]")
HASH_CHARS = 8
LANES = ("background", "low", "normal", "high", "critical")
"""Two of kombu's ten priorities each; 9 is the most urgent, as in RabbitMQ."""
PRIORITY_MAX = 9


class Wishes(TypedDict, total=False):
    priority: str
    at: int
    ttl: int


def topic_name(queue: str, prefix: str = "") -> str:
    """A queue may be called what no topic may. Such a name is made readable, and unlike all others by a hash."""
    name = f"{prefix}{queue}"
    plain = BAD_CHARS.sub("_", name)[:NAME_CHARS_MAX]
    if plain == name and name not in ("", ".", ".."):
        return name
    return f"{plain}-{sha256(name.encode()).hexdigest()[:HASH_CHARS]}"


def wishes(message: Mapping[str, Any]) -> Wishes:
    """What the broker is to do with a message: its lane, when it is due, and how long it may wait."""
    found: Wishes = {}
    properties: Mapping[str, Any] = message.get("properties") or {}
    priority = properties.get("priority")
    if priority is not None:
        found["priority"] = LANES[min(max(int(priority), 0), PRIORITY_MAX) // 2]
    eta = (message.get("headers") or {}).get("eta")
    if eta:
        found["at"] = _moment_ms(eta)
    expiration = properties.get("expiration")
    if expiration:
        found["ttl"] = max(1, int(expiration))
    return found


def _moment_ms(given: str | datetime) -> int:
    moment = datetime.fromisoformat(given) if isinstance(given, str) else given
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def to_record(message: Mapping[str, Any]) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    """Its value, and its headers."""
    body = message["body"]
    rest = {name: value for name, value in message.items() if name != "body"}
    value = body if isinstance(body, bytes) else str(body).encode()
    return value, [(HEADER, dumps(rest).encode())]


def from_record(record: Message, tag: str, *, is_redelivered: bool) -> dict[str, Any]:
    """As a virtual channel of kombu takes it. A message of somebody else has a body, and no headers of Celery."""
    kept = record.headers.get(HEADER)
    rest: dict[str, Any] = {} if kept is None else loads(kept.decode())
    properties = {**rest.get("properties", {}), "delivery_tag": tag, "body_encoding": None}
    properties["delivery_info"] = {**properties.get("delivery_info", {}), "redelivered": is_redelivered}
    return {
        "content-type": "application/data",
        "content-encoding": "utf-8",
        "headers": {},
        **rest,
        "properties": properties,
        "body": record.value or b"",
    }

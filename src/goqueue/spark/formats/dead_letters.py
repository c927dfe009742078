"""Rows whose value does not fit its schema, made dead letters by whoever reads them.

A letter is on the broker's disk before its row is left out. A task that is run again writes it again; the broker drops
that one by its dedup id where the topic has `dedup.ms`, as those that are made here do.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from goqueue.client.http import CONFLICT, NOT_FOUND, HttpRefused
from goqueue.client.message import NewMessage
from goqueue.client.sync import Admin, Producer
from goqueue.records.dead_letters import dead_letter_topic, misfit_headers
from goqueue.records.native import Headers
from goqueue.records.wishes import DEDUP_ID
from goqueue.spark.where import Where

DEDUP_MS = 24 * 60 * 60 * 1000
"""A job that failed may be run again the next morning."""
MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""What the source took must be taken; the broker says if it is too much."""
ABOUT_BYTES = 16 * 1024
ERROR_CHARS_MAX = 1000


class Letter(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    why: str


def write_letters(servers: Where, admin: Admin, topic: str, letters: Sequence[Letter]) -> None:
    """Returns when all are safe."""
    name, partitions = _topic_for(admin, topic)
    now_ms = time.time_ns() // 1_000_000
    at, security = servers.address, servers.security
    with Producer(at, client_id="goqueue-spark", message_bytes_max=MESSAGE_BYTES_MAX, security=security) as producer:
        producer.send_many(name, [_message(topic, one, one.partition % partitions, now_ms) for one in letters])


def _message(topic: str, letter: Letter, partition: int, now_ms: int) -> NewMessage:
    place = topic, letter.partition, letter.offset
    headers = misfit_headers(letter.headers, place, letter.why[:ERROR_CHARS_MAX], letter.timestamp_ms, now_ms)
    headers.append((DEDUP_ID, f"spark/{topic}/{letter.partition}/{letter.offset}".encode()[-256:]))
    return {"value": letter.value, "key": letter.key, "headers": headers, "partition": partition, "timestamp": now_ms}


def _topic_for(admin: Admin, topic: str) -> tuple[str, int]:
    """The topic for its dead letters, made if there is none, and how many partitions that has."""
    source = admin.topic(topic)
    named = source.options.get("dead.letter.topic", "")
    name = named if named and named != topic else dead_letter_topic(topic)
    try:
        return name, admin.topic(name).partitions
    except HttpRefused as error:
        if error.status != NOT_FOUND:
            raise
    # A repetition has the same key and goes to the same partition, so that this holds in a cluster too.
    options: dict[str, str | int] = {"dedup_ms": DEDUP_MS, "dedup_scope": "key"}
    if "max.message.bytes" in source.options:
        options["max_message_bytes"] = int(source.options["max.message.bytes"]) + ABOUT_BYTES
    try:
        admin.create_topic(name, source.partitions, **options)
    except HttpRefused as error:
        if error.status != CONFLICT:  # else another task was faster
            raise
    return name, admin.topic(name).partitions

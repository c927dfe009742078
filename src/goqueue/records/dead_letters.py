"""What a dead letter looks like: a record with all that it had, and headers that say whence it came and why it died.

Whoever gives up on a record writes it like this: a group that is read as a queue, validation on publish, Spark.
"""

from collections.abc import Iterable
from zlib import crc32

from goqueue.records.native import Headers
from goqueue.records.wishes import DEDUP_ID, EXPIRES_AT, FORMER_DEDUP_ID, without_delay

SUFFIX = ".dlq"
PREFIX = "gq-dlq-"
TOPIC, PARTITION, OFFSET, GROUP, REASON, ERROR, ATTEMPTS, FIRST_DELIVERED, DIED_AT, TIMESTAMP, EXPIRED_AT = (
    PREFIX + name
    for name in (
        "topic",
        "partition",
        "offset",
        "group",
        "reason",
        "error",
        "attempts",
        "first-delivered-at",
        "died-at",
        "timestamp",
        "expires-at",
    )
)
SCHEMA_REASON = "schema"
"""The value does not fit the schema that it should have."""
RENAMED = {EXPIRES_AT: EXPIRED_AT, DEDUP_ID: FORMER_DEDUP_ID}
"""A record that has expired must not expire again before anybody has looked at it, and must not be taken for the one
that it was before."""
NAME_CHARS_MAX = 249


def dead_letter_topic(topic: str) -> str:
    """A name that would be too long is cut and told apart by a checksum."""
    if len(topic) + len(SUFFIX) <= NAME_CHARS_MAX:
        return topic + SUFFIX
    mark = f"-{crc32(topic.encode()):08x}{SUFFIX}"
    return topic[: NAME_CHARS_MAX - len(mark)] + mark


def letter_headers(headers: Iterable[tuple[str, bytes | None]]) -> Headers:
    """Those of its record. One that has expired must not expire again, before anybody has looked at it."""
    return [(RENAMED.get(name, name), value) for name, value in without_delay(headers)]


def misfit_headers(
    headers: Iterable[tuple[str, bytes | None]], place: tuple[str, int, int], why: str, timestamp: int, now_ms: int
) -> Headers:
    """All headers of the dead letter of a record whose value does not fit its schema."""
    topic, partition, offset = place
    about: dict[str, str | int] = {
        TOPIC: topic,
        PARTITION: partition,
        OFFSET: offset,
        REASON: SCHEMA_REASON,
        ERROR: why,
        ATTEMPTS: 0,
        DIED_AT: now_ms,
        TIMESTAMP: timestamp,
    }
    return [*letter_headers(headers), *((name, str(text).encode()) for name, text in about.items())]

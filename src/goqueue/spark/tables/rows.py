"""From what the HTTP door tells to rows, in the order of the columns in `schemas`."""

from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, UnsetType

from goqueue.model.moments import parse_moment_ms
from goqueue.wire.rest.dead_letters import DeadLetter
from goqueue.wire.rest.delays import DelayedMessage, Schedule
from goqueue.wire.rest.groups import GroupLag, GroupSummary, PartitionLag
from goqueue.wire.rest.leases import HeldLease
from goqueue.wire.rest.topics import TopicDetails
from goqueue.wire.rest.traces import StoredStep, TraceSpan, TraceSummary

Row = tuple[Any, ...]
DELAYED, RECURRING = "delayed", "recurring"
MS_NS = 1_000_000


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromtimestamp(parse_moment_ms(text, 0) / 1000, UTC)


def content(text: str | UnsetType | None, base64: str | UnsetType) -> bytes | None:
    """As it was sent: what is no text comes in base64."""
    if isinstance(base64, str):
        return b64decode(base64)
    return text.encode() if isinstance(text, str) else None


def headers(texts: Mapping[str, str | None], base64: Mapping[str, str] | UnsetType) -> dict[str, bytes | None]:
    found = {name: None if value is None else value.encode() for name, value in texts.items()}
    if isinstance(base64, Mapping):
        found |= {name: b64decode(value) for name, value in base64.items()}
    return found


def known(value: Any) -> Any:
    return None if value is UNSET else value


def dead_letter(letter: DeadLetter) -> Row:
    return (
        letter.dlq_topic,
        letter.partition,
        letter.offset,
        letter.original_topic,
        letter.original_partition,
        letter.original_offset,
        moment(letter.original_timestamp),
        letter.group,
        letter.reason,
        letter.error,
        letter.attempts,
        moment(letter.first_delivered_at),
        moment(letter.died_at),
        letter.redrives,
        letter.priority,
        content(letter.key, letter.key_base64),
        content(letter.value, letter.value_base64),
        headers(letter.headers, letter.headers_base64),
    )


def trace(found: TraceSummary) -> Row:
    spans = found.spans if isinstance(found.spans, list) else []
    return (
        found.trace_id,
        found.topic,
        found.partition,
        found.offset,
        moment(found.start_time),
        moment(found.end_time),
        found.duration_ms,
        found.status,
        [_span(each) for each in spans],
    )


def _span(span: TraceSpan) -> Row:
    attributes = span.attributes if isinstance(span.attributes, dict) else {}
    return (
        span.event_type,
        moment(span.timestamp),
        known(span.consumer_group),
        known(span.consumer_id),
        span.offset,
        span.duration_ns // MS_NS if isinstance(span.duration_ns, int) else None,
        known(span.error),
        attributes.get("detail"),
    )


def step(found: StoredStep) -> Row:
    return (
        found.event_type,
        moment(found.timestamp),
        found.topic,
        found.partition,
        found.first_offset,
        found.last_offset,
        found.every,
        known(found.consumer_group),
        known(found.consumer_id),
        known(found.detail),
        known(found.moved_to),
    )


def delayed(message: DelayedMessage) -> Row:
    due = moment(message.deliver_at)
    return (DELAYED, None, message.topic, message.partition, message.offset, due, None, None, None, message.state)


def recurring(found: Schedule) -> Row:
    next_run, last_run = moment(found.next_run), moment(found.last_run)
    return (
        RECURRING,
        found.name,
        found.topic,
        found.partition,
        None,
        next_run,
        last_run,
        found.cron,
        found.timezone,
        "pending" if next_run is not None else "over",
    )


def lease(held: HeldLease) -> Row:
    return (
        held.group,
        held.topic,
        held.partition,
        held.first_offset,
        held.last_offset,
        held.messages,
        held.consumer,
        held.delivery_count,
        moment(held.leased_at),
        moment(held.lease_until),
    )


def group(found: GroupSummary) -> Row:
    return found.id, found.type, found.state, found.members, found.generation, found.topics


def lag(found: GroupLag, part: PartitionLag) -> Row:
    owner = (None,) * 3 if part.owner is None else (part.owner.member_id, part.owner.client_id, part.owner.host)
    queue: Row = (None,) * 7
    if not isinstance(part.queue, UnsetType):
        told = part.queue
        queue = (
            told.ready,
            told.leased,
            told.waiting,
            told.dying,
            told.replaying,
            told.beyond,
            told.oldest_age_ms,
        )
    return (
        found.group,
        found.type,
        found.state,
        part.topic,
        part.partition,
        part.committed_offset,
        part.settled_offset,
        part.end_offset,
        part.lag,
        *owner,
        *queue,
    )


def topic(found: TopicDetails) -> Row:
    return (
        found.name,
        found.id,
        found.partitions,
        found.total_messages,
        found.total_size_bytes,
        found.options,
        [(int(number), each.earliest, each.next) for number, each in sorted(found.partition_offsets.items())],
    )

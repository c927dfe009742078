"""Times and messages, as protobuf has them and as we do."""

from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from goqueue.model.errors import InvalidMoment, InvalidWish
from goqueue.model.lanes import Lane
from goqueue.model.moments import MOMENT_MS_MAX, parse_absolute_ms
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import NewMessage
from goqueue.records.wishes import DELIVER_AT, PRIORITY
from goqueue.telemetry.trace_ids import TRACEPARENT, make_trace_id, parse_traceparent
from goqueue.wire.grpc import common_pb2 as pb
from goqueue.wire.grpc.publish_pb2 import PublishRequest, PublishStreamRequest

ANY_PARTITION = -1
HEADERS_MAX = 1000
NANOS_MAX = 999_999_999

Publishing: TypeAlias = PublishRequest | PublishStreamRequest

_LANES = {lane.name.lower().encode(): lane for lane in Lane} | {b"%d" % lane: lane for lane in Lane}


def timestamp_of(moment_ms: int) -> Timestamp:
    return Timestamp(seconds=moment_ms // 1000, nanos=moment_ms % 1000 * 1_000_000)


def moment_ms_of(name: str, given: Timestamp) -> int:
    moment_ms = given.seconds * 1000 + given.nanos // 1_000_000
    if not 0 <= given.nanos <= NANOS_MAX or not 0 <= moment_ms <= MOMENT_MS_MAX:
        raise InvalidMoment(f"{name} lies outside of the years 1970 to 9999")
    return moment_ms


def duration_ms_of(name: str, given: Duration, at_least_ms: int = 0, at_most_ms: int = MOMENT_MS_MAX) -> int:
    """What is shorter than a millisecond, and not nothing, is one."""
    if abs(given.nanos) > NANOS_MAX or given.seconds * given.nanos < 0:
        raise InvalidMoment(f"{name} is no duration: seconds {given.seconds}, nanos {given.nanos}")
    duration_ms = given.seconds * 1000 + -(-given.nanos // 1_000_000)
    if not at_least_ms <= duration_ms <= at_most_ms:
        raise InvalidMoment(f"{name} is {duration_ms} ms, but must be from {at_least_ms} to {at_most_ms} ms")
    return duration_ms


def payload_bytes(record: DecodedRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def new_message(given: Publishing, now_ms: int) -> NewMessage:
    """InvalidWish or InvalidMoment: what it asks for cannot be."""
    if len(given.headers) + len(given.binary_headers) > HEADERS_MAX:
        raise InvalidWish(f"a message has at most {HEADERS_MAX} headers here")
    headers: list[tuple[str, bytes | None]] = [(name, text.encode()) for name, text in given.headers.items()]
    headers += given.binary_headers.items()
    has_delay = given.HasField("delay")
    return NewMessage(
        value=given.value if given.HasField("value") else None,
        key=given.key if given.HasField("key") else None,
        headers=headers,
        partition=given.partition if given.HasField("partition") and given.partition != ANY_PARTITION else None,
        lane=_lane(given),
        delay_ms=duration_ms_of("delay", given.delay) if has_delay else None,
        deliver_at_ms=(
            moment_ms_of("deliver_at", given.deliver_at) if given.HasField("deliver_at") and not has_delay else None
        ),
        expires_at_ms=now_ms + duration_ms_of("ttl", given.ttl) if given.HasField("ttl") else None,
        dedup_id=given.dedup_id.encode() if given.HasField("dedup_id") else None,
    )


def _lane(given: Publishing) -> Lane:
    """Zero is critical: only what is unset is normal."""
    if not given.HasField("priority"):
        return Lane.NORMAL
    try:
        return Lane(given.priority)
    except ValueError:
        raise InvalidWish(f"priority is {given.priority}, but must be from 0 (critical) to 4 (background)") from None


def message_of(topic: str, topic_id: bytes, partition: int, record: DecodedRecord) -> pb.Message:
    message = pb.Message(topic=topic, partition=partition, offset=record.offset, priority=Lane.NORMAL)
    message.timestamp.CopyFrom(timestamp_of(max(0, record.timestamp)))
    if record.key is not None:
        message.key = bytes(record.key)
    if record.value is not None:
        message.value = bytes(record.value)
    trace_id = ""
    for name, content in record.headers:
        value = b"" if content is None else bytes(content)
        try:
            message.headers[name] = value.decode()
        except UnicodeDecodeError:
            message.binary_headers[name] = value
        if name == PRIORITY:
            message.priority = _LANES.get(value.lower(), Lane.NORMAL)
        elif name == DELIVER_AT:
            due_ms = parse_absolute_ms(value.decode(errors="replace"))
            if due_ms is not None:
                message.deliver_at.CopyFrom(timestamp_of(due_ms))
        elif name == TRACEPARENT:
            parent = parse_traceparent(value)
            trace_id = "" if parent is None else parent.trace_id
    message.trace_id = trace_id or make_trace_id(topic_id, partition, record.offset)
    return message


def topic_partitions(pairs: Iterable[tuple[str, int]]) -> list[pb.TopicPartition]:
    return [pb.TopicPartition(topic=topic, partition=partition) for topic, partition in pairs]

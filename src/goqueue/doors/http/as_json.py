"""Records as JSON, and JSON as records."""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.model.errors import InvalidWish
from goqueue.model.lanes import Lane
from goqueue.model.moments import format_moment, parse_duration_ms, parse_moment_ms, parse_timestamp_ms
from goqueue.records.decode import DecodedRecord
from goqueue.records.messages import NewMessage
from goqueue.records.native import Headers
from goqueue.records.wishes import lane_and_expiry
from goqueue.wire.rest import messages as rest

_LANES = {lane.name.lower(): lane for lane in Lane} | {str(int(lane)): lane for lane in Lane}


def record_of(message: rest.NewMessage, now_ms: int) -> NewMessage:
    """InvalidWish, InvalidMoment or HttpError: what it asks for cannot be."""
    deliver_at = message.deliver_at if message.deliver_at is not None else message.deliver_at_too
    return NewMessage(
        value=bytes_of("value", message.value, message.value_base64),
        key=bytes_of("key", message.key, message.key_base64),
        headers=_headers_of(message),
        partition=message.partition,
        timestamp_ms=None if message.timestamp is None else parse_timestamp_ms(message.timestamp, now_ms),
        lane=lane_of(message.priority),
        delay_ms=None if message.delay is None else parse_duration_ms(message.delay),
        deliver_at_ms=None if deliver_at is None or message.delay is not None else parse_moment_ms(deliver_at, now_ms),
        expires_at_ms=None if message.ttl is None else now_ms + parse_duration_ms(message.ttl),
        dedup_id=None if message.dedup_id is None else message.dedup_id.encode(),
    )


def _headers_of(message: rest.NewMessage) -> Headers:
    if message.header_list is not None:
        if message.headers or message.headers_base64:
            raise HttpError(BAD_REQUEST, "INVALID_RECORD", "say either headers or header_list")
        return [(each.name, bytes_of("value", each.value, each.value_base64)) for each in message.header_list]
    binary = message.headers_base64 or {}
    texts: dict[str, str | None] = dict(message.headers or {}) | dict.fromkeys(binary)
    return [
        (name, bytes_of(f"headers_base64.{name}", None, binary[name]) if name in binary else _encoded(text))
        for name, text in texts.items()
    ]


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def lane_of(given: str | int | None) -> Lane:
    if given is None:
        return Lane.NORMAL
    lane = _LANES.get(str(given).lower())
    if lane is None:
        raise InvalidWish(f"priority is {given!r}, but must be one of {', '.join(each.name.lower() for each in Lane)}")
    return lane


def bytes_of(name: str, text: str | None, base64: str | None) -> bytes | None:
    if base64 is None:
        return _encoded(text)
    if text is not None:
        raise HttpError(BAD_REQUEST, "INVALID_RECORD", f"say either {name} or {name}_base64")
    try:
        return b64decode(base64, validate=True)
    except (NotBase64, ValueError):
        raise HttpError(BAD_REQUEST, "INVALID_RECORD", f"{name}_base64 is not base64") from None


def priority_of(headers: Iterable[tuple[str, bytes | None]]) -> str:
    return Lane(lane_and_expiry(headers)[0]).name.lower()


def shown_record(partition: int, record: DecodedRecord) -> dict[str, Any]:
    """The fields of `rest.MessageReply`."""
    pairs = record.headers
    has_twice = len({name for name, _ in pairs}) < len(pairs)
    return {
        "header_list": [_shown_header(*each) for each in pairs] if has_twice else UNSET,
        "partition": partition,
        "offset": record.offset,
        "timestamp": format_moment(record.timestamp),
        **shown_content(record.key, record.value, record.headers),
    }


def shown_content(
    key_bytes: bytes | None, value_bytes: bytes | None, pairs: Sequence[tuple[str, bytes | None]]
) -> dict[str, Any]:
    """What a producer sent."""
    key, key_base64 = _shown(key_bytes)
    value, value_base64 = _shown(value_bytes)
    headers: dict[str, str | None] = {}
    binary: dict[str, str] = {}
    for name, content in pairs:
        text, base64 = _shown(content)
        headers[name] = text
        if base64 is not UNSET:
            binary[name] = base64
    return {
        "key": key,
        "value": value,
        "priority": priority_of(pairs),
        "headers": headers,
        "key_base64": key_base64,
        "value_base64": value_base64,
        "headers_base64": binary or UNSET,
    }


def _shown_header(name: str, content: bytes | None) -> rest.Header:
    text, base64 = _shown(content)
    return rest.Header(name=name, value=text, value_base64=None if base64 is UNSET else base64)


def _shown(content: bytes | None) -> tuple[str | None, str | UnsetType]:
    if content is None:
        return None, UNSET
    try:
        return content.decode(), UNSET
    except UnicodeDecodeError:
        return None, b64encode(content).decode()

"""NATS's protocol, as much as JetStream needs. Incomplete input is left where it is."""

import json
from typing import NamedTuple

CRLF = b"\r\n"


class Came(NamedTuple):
    """A message for one of our subscriptions."""

    reply_to: bytes
    headers: bytes
    payload: bytes


class Refused(Exception):
    """What NATS said."""


def publish(subject: bytes, payload: bytes, reply_to: bytes = b"", headers: bytes = b"") -> bytes:
    if not headers:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject, reply_to, len(payload), payload)
    total = len(headers) + len(payload)
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject, reply_to, len(headers), total, headers, payload)


def header_block(pairs: list[tuple[bytes, bytes]]) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % pair for pair in pairs)
    return b"NATS/1.0\r\n%b\r\n" % lines if lines else b""


def take_messages(received: bytearray) -> list[Came]:
    """Whole messages, taken from the front; PING, INFO and +OK are passed over."""
    data = bytes(received)
    found, at = [], 0
    while (end := data.find(CRLF, at)) >= 0:
        words = data[at:end].split()
        kind, start = words[0], end + 2
        if kind in {b"MSG", b"HMSG"}:
            size = int(words[-1])
            if len(data) < start + size + 2:
                break
            head = int(words[-2]) if kind == b"HMSG" else 0
            has_reply = len(words) == (6 if kind == b"HMSG" else 5)
            found.append(
                Came(words[3] if has_reply else b"", data[start : start + head], data[start + head : start + size])
            )
            start += size + 2
        elif kind == b"-ERR":
            raise Refused(data[at:end].decode("utf-8", "replace"))
        at = start
    del received[:at]
    return found


def stored_sequence(payload: bytes) -> int:
    """Of the answer to a publish; Refused if it was not taken."""
    answer = json.loads(payload)
    if "error" in answer:
        raise Refused(str(answer["error"]))
    return int(answer["seq"])

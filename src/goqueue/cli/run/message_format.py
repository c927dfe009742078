"""What `goqueue consume` shows of a message: only some of them, and in words of the user's own choice, as kcat has
them.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from goqueue.cli.exits import EXIT_USAGE, CommandFailed
from goqueue.cli.output import plain
from goqueue.model.moments import parse_timestamp_ms

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PART = re.compile(r"%(?P<field>.)|\\(?P<escape>.)|(?P<text>[^%\\]+)|(?P<end>.)", re.DOTALL)


def content_of(text: str | None, base64: Any) -> bytes | None:
    """The bytes of a key, a value or a header, as the HTTP interface shows them."""
    if text is not None:
        return text.encode()
    return b64decode(base64) if isinstance(base64, str) else None


def key_of(message: Any) -> bytes | None:
    return content_of(message.key, message.key_base64)


def value_of(message: Any) -> bytes | None:
    return content_of(message.value, message.value_base64)


def headers_of(message: Any) -> list[tuple[str, bytes | None]]:
    if message.header_list:
        return [(each.name, content_of(each.value, each.value_base64)) for each in message.header_list]
    binary = message.headers_base64 or {}
    return [(name, content_of(text, binary.get(name))) for name, text in message.headers.items()]


def _header_text(message: Any) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in headers_of(message))


Shown = Callable[[Any, str, bytes | None], bytes]
"""Of a message, the name of its topic and its value, which may have been decoded."""
FIELDS: dict[str, Shown] = {
    "t": lambda message, topic, value: topic.encode(),
    "p": lambda message, topic, value: b"%d" % message.partition,
    "o": lambda message, topic, value: b"%d" % message.offset,
    "k": lambda message, topic, value: key_of(message) or b"",
    "K": lambda message, topic, value: b"%d" % _length(key_of(message)),
    "s": lambda message, topic, value: value or b"",
    "S": lambda message, topic, value: b"%d" % _length(value),
    "h": lambda message, topic, value: _header_text(message),
    "T": lambda message, topic, value: b"%d" % parse_timestamp_ms(message.timestamp, 0),
    "P": lambda message, topic, value: str(message.priority).encode(),
    "J": lambda message, topic, value: json.dumps({"topic": topic, **plain(message)}, ensure_ascii=False).encode(),
    "%": lambda message, topic, value: b"%",
}


def _length(content: bytes | None) -> int:
    """-1: there is none, as in Kafka's protocol."""
    return -1 if content is None else len(content)


class Format:
    def __init__(self, text: str) -> None:
        self._parts: list[Shown | bytes] = []
        for part in _PART.finditer(text):
            if part["field"] is not None:
                if part["field"] not in FIELDS:
                    known = " ".join(f"%{name}" for name in FIELDS)
                    raise CommandFailed(f"--format knows no %{part['field']}; there are {known}", EXIT_USAGE)
                self._parts.append(FIELDS[part["field"]])
            elif part["escape"] is not None:
                self._parts.append(_ESCAPES.get(part["escape"], part["escape"].encode()))
            else:
                self._parts.append((part["text"] or part["end"]).encode())

    def shown(self, message: Any, topic: str, value: bytes | None) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(message, topic, value) for part in self._parts)


class Filter:
    """Which messages are shown: those that pass all of what was said."""

    def __init__(self, given: Any) -> None:
        self._key = None if given.key is None else given.key.encode()
        self._contains = None if given.contains is None else given.contains.encode()
        self._headers = {name: value.encode() for name, value in given.header}
        self._priority = given.priority

    @property
    def is_empty(self) -> bool:
        return self._key is self._contains is self._priority is None and not self._headers

    def passes(self, message: Any) -> bool:
        if self._key is not None and key_of(message) != self._key:
            return False
        if self._contains is not None and self._contains not in (value_of(message) or b""):
            return False
        if self._priority is not None and message.priority != self._priority:
            return False
        return self._headers.items() <= set(headers_of(message))

"""Redis's protocol (RESP), as much as Streams need. Incomplete input is left where it is."""

from typing import TypeAlias

Reply: TypeAlias = "bytes | int | list[Reply] | None"

CRLF = b"\r\n"


class Refused(Exception):
    """What Redis said."""


def command(*words: bytes | str | int) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def take_replies(received: bytearray) -> list[Reply]:
    """Whole replies, taken from the front."""
    data = bytes(received)
    replies, at = [], 0
    while True:
        try:
            reply, at = _read(data, at)
        except _Incomplete:
            break
        replies.append(reply)
    del received[:at]
    return replies


class _Incomplete(Exception):
    """More has to come."""


def _read(data: bytes, at: int) -> tuple[Reply, int]:
    end = data.find(CRLF, at)
    if end < 0:
        raise _Incomplete
    kind, line, at = data[at : at + 1], data[at + 1 : end], end + 2
    if kind == b"$":
        if line == b"-1":
            return None, at
        end = at + int(line)
        if len(data) < end + 2:
            raise _Incomplete
        return data[at:end], end + 2
    if kind == b"*":
        if line == b"-1":
            return None, at
        items: list[Reply] = []
        for _ in range(int(line)):
            item, at = _read(data, at)
            items.append(item)
        return items, at
    if kind == b":":
        return int(line), at
    if kind == b"+":
        return line, at
    raise Refused(line.decode("utf-8", "replace"))

"""ASGI as bytes: reading a body within its limit and answering in one write. A request object would cost as much as
half of the requests.
"""

from typing import TypeAlias

import msgspec

from goqueue.doors.http.errors import TOO_LARGE, UNAVAILABLE, HttpError
from goqueue.wire.asgi import Receive, Scope, Send
from goqueue.wire.forwarded import HttpReply
from goqueue.wire.rest.common import ErrorReply

Header: TypeAlias = tuple[bytes, bytes]

JSON = b"application/json"
RETRY_AFTER: Header = (b"retry-after", b"1")
PARKED = "goqueue.parked"
"""In the state of a scope, if the listener is ours: the tasks of requests that wait for something to happen."""
CONNECTED = "goqueue.connected"
"""Likewise: the connection that a request came through, as `model.listener.Connected`."""
LENGTH_DIGITS_MAX = 18

_encode = msgspec.json.Encoder().encode


class ClientGone(Exception):
    """There is nobody left to answer."""


def header(scope: Scope, wanted: bytes) -> bytes | None:
    for name, value in scope["headers"]:
        if name == wanted:
            found: bytes = value
            return found
    return None


async def read_body(scope: Scope, receive: Receive, bytes_max: int) -> bytes:
    length = header(scope, b"content-length")
    if length is not None and length.isdigit():
        digits = length.lstrip(b"0")
        if len(digits) > LENGTH_DIGITS_MAX or int(digits or b"0") > bytes_max:
            raise _too_large(bytes_max)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        pieces, size = [body], len(body)
    else:
        pieces, size = await _read_pieces(receive, body, bytes_max)
    if size > bytes_max:
        raise _too_large(bytes_max)
    return body if len(pieces) == 1 else b"".join(pieces)


async def _read_pieces(receive: Receive, first: bytes, bytes_max: int) -> tuple[list[bytes], int]:
    pieces, size, is_more = [first], len(first), True
    while is_more and size <= bytes_max:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        is_more = message.get("more_body", False)
    return pieces, size


def _too_large(bytes_max: int) -> HttpError:
    return HttpError(TOO_LARGE, "BODY_TOO_LARGE", f"the body of this request may have {bytes_max} bytes at most")


async def answer(
    send: Send, status: int, body: bytes, media_type: bytes = JSON, headers: tuple[Header, ...] = ()
) -> None:
    if status == UNAVAILABLE:
        headers = (*headers, RETRY_AFTER)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", media_type), (b"content-length", b"%d" % len(body)), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def answer_raw(send: Send, reply: HttpReply) -> None:
    """As another node has given it."""
    headers = [each for each in reply.headers if each[0] not in (b"content-length", b"x-request-id")]
    headers.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


async def answer_json(send: Send, status: int, body: object) -> None:
    await answer(send, status, _encode(body))


async def answer_error(send: Send, status: int, code: str, message: str, headers: tuple[Header, ...] = ()) -> None:
    await answer(send, status, _encode(ErrorReply(error=message, status=status, code=code)), JSON, headers)

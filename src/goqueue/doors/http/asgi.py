"""ASGI as bytes: reading a body within its limit and answering in one write. A request object would cost as much as
half of the requests.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import msgspec

from goqueue.doors.http.errors import BAD_REQUEST, TOO_LARGE, HttpError
from goqueue.wire.rest.common import ErrorReply

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON = b"application/json"

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
    if length is not None and length.isdigit() and int(length) > bytes_max:
        raise _too_large(bytes_max)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > bytes_max:
            break
    if len(body) > bytes_max:
        raise _too_large(bytes_max)
    return body


def _too_large(bytes_max: int) -> HttpError:
    return HttpError(TOO_LARGE, "BODY_TOO_LARGE", f"the body of this request may have {bytes_max} bytes at most")


async def answer(
    send: Send, status: int, body: bytes, media_type: bytes = JSON, headers: tuple[Header, ...] = ()
) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", media_type), (b"content-length", b"%d" % len(body)), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def answer_json(send: Send, status: int, body: object) -> None:
    await answer(send, status, _encode(body))


async def answer_error(send: Send, status: int, code: str, message: str, headers: tuple[Header, ...] = ()) -> None:
    await answer(send, status, _encode(ErrorReply(error=message, status=status, code=code)), JSON, headers)


def invalid(error: msgspec.ValidationError | msgspec.DecodeError | UnicodeDecodeError) -> HttpError:
    return HttpError(BAD_REQUEST, "INVALID_REQUEST", str(error))

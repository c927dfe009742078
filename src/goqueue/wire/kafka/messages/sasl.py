"""SaslHandshake and SaslAuthenticate: how a connection proves who it is, before anything else is said on it."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.model.secret import hides
from goqueue.wire.kafka.notation import Bytes, Int16, Int64, Message, String


class SaslHandshakeRequest(Message):
    mechanism: String = ""


class SaslHandshakeResponse(Message):
    error_code: Int16 = 0
    mechanisms: list[String] = []


@hides("auth_bytes")
class SaslAuthenticateRequest(Message):
    auth_bytes: Bytes = b""


@hides("auth_bytes")
class SaslAuthenticateResponse(Message):
    error_code: Int16 = 0
    error_message: String | None = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, "1+ ignorable"] = 0

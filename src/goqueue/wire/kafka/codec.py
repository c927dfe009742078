"""Bare messages to bytes and back. A codec is compiled when its class and version are first met: a broker meets a few
dozen of the several hundred, and each costs about as much as handling a hundred requests."""

from typing import NamedTuple, TypeVar

from goqueue.wire.kafka.apis import APIS, NOT_FLEXIBLE
from goqueue.wire.kafka.decoding import Decode, compile_decoder
from goqueue.wire.kafka.encoding import Encode, compile_encoder
from goqueue.wire.kafka.messages.embedded import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from goqueue.wire.kafka.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import Span

M = TypeVar("M", bound=Message)


class Format(NamedTuple):
    versions: Span
    flexible_from: int


FORMATS: dict[type[Message], Format] = {
    ConsumerProtocolSubscription: Format(Span(0, 3), NOT_FLEXIBLE),
    ConsumerProtocolAssignment: Format(Span(0, 3), NOT_FLEXIBLE),
    # Nodes prove themselves with these to each other. Clients are not offered them.
    SaslHandshakeRequest: Format(Span(0, 1), NOT_FLEXIBLE),
    SaslHandshakeResponse: Format(Span(0, 1), NOT_FLEXIBLE),
    SaslAuthenticateRequest: Format(Span(0, 2), 2),
    SaslAuthenticateResponse: Format(Span(0, 2), 2),
}
"""All messages that stand on their own."""
for _api in APIS.values():
    FORMATS[_api.request] = FORMATS[_api.response] = Format(_api.versions, _api.flexible_from)

_decoders: dict[tuple[type[Message], int], Decode] = {}
_encoders: dict[tuple[type[Message], int], Encode] = {}


def decode(message: type[M], version: int, data: bytes | memoryview, at: int = 0) -> tuple[M, int]:
    """The message that begins at a position, and where it ends; what lies behind is the caller's to judge.

    Raises MalformedRequest, and nothing else, whatever the data. Records come out as views on the data.
    """
    found, end = decoder(message, version)(memoryview(data), at)
    assert isinstance(found, message)
    return found, end


def encode(message: Message, version: int) -> bytes:
    """ValueError: the message cannot be said in this version, which is a bug of the caller."""
    parts, _ = encoder(type(message), version)(message)
    return b"".join(parts)  # type: ignore[arg-type]  # a Stretch has no bytes to join


def decoder(message: type[Message], version: int) -> Decode:
    try:
        return _decoders[message, version]
    except KeyError:
        made = _decoders[message, version] = compile_decoder(message, version, _is_flexible(message, version))
        return made


def encoder(message: type[Message], version: int) -> Encode:
    """It gives the parts of the encoded message: one, if there are no records in it."""
    try:
        return _encoders[message, version]
    except KeyError:
        made = _encoders[message, version] = compile_encoder(message, version, _is_flexible(message, version))
        return made


def _is_flexible(message: type[Message], version: int) -> bool:
    versions, flexible_from = FORMATS[message]
    if version not in versions:
        raise ValueError(f"{message.__name__} v{version} is not implemented")
    return version >= flexible_from

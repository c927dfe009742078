"""Whole frames: what stands around a message on a connection.

A request is given without the four bytes of its size, which is what a door has when it knows that a frame is complete;
frames to send are made with them.
"""

from struct import Struct
from struct import error as StructError

import msgspec

from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.codec import M, decode, decoder, encoder
from goqueue.wire.kafka.decoding import Decode
from goqueue.wire.kafka.encoding import Encode, Part
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.varint import skip_tags

_REQUEST_HEAD = Struct(">hhih")
_SIZED_REQUEST_HEAD = Struct(">ihhih")
_CORRELATION_ID = Struct(">i")
_SIZE_AND_ID = Struct(">ii")
_SIZE_ID_AND_NO_TAGS = Struct(">iix")
_SIZE_BYTES = 4

_API_OF_RESPONSE = {api.response: api for api in APIS.values()}
_API_OF_REQUEST = {api.request: api for api in APIS.values()}
_request_decoders: dict[tuple[int, int], Decode] = {}
_response_encoders: dict[tuple[type[Message], int], tuple[Encode, Struct]] = {}


class RequestHeader(msgspec.Struct, gc=False):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    """A legacy string even in flexible versions, so that a broker can read it before it knows what it speaks to."""
    body_at: int
    """Where the message begins. Only right for an API that is in APIS."""


def read_request_header(frame: memoryview) -> RequestHeader:
    """The header of any request, also of one that is not implemented: whoever reads it decides how to refuse that."""
    try:
        api_key, api_version, correlation_id, length = _REQUEST_HEAD.unpack_from(frame)
        at = _REQUEST_HEAD.size
        client_id = None
        if length >= 0:
            client_id = str(frame[at : at + length], "utf-8")
            at += length
        elif length < -1:
            raise MalformedRequest("request header: client_id has a negative length")
        api = APIS.get(api_key)
        if api is not None and api.flexible_from <= api_version:
            at = at + 1 if frame[at] == 0 else skip_tags(frame, at)
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"request header: {error}") from error
    if at > len(frame):
        raise MalformedRequest("request header: cut short")
    return RequestHeader(api_key, api_version, correlation_id, client_id, at)


def decode_request(header: RequestHeader, frame: memoryview) -> tuple[Message, int]:
    """The message behind a header, of the class `APIS[header.api_key].request`, and where it ends in the frame.

    Clients are known to send a few bytes too many, so bytes behind that end are no reason to refuse.
    """
    decode = _request_decoders.get((header.api_key, header.api_version)) or _request_decoder(header)
    return decode(frame, header.body_at)


def _request_decoder(header: RequestHeader) -> Decode:
    api = APIS.get(header.api_key)
    if api is None or header.api_version not in api.versions:
        raise MalformedRequest(f"API {header.api_key} v{header.api_version} is not implemented")
    made = _request_decoders[header.api_key, header.api_version] = decoder(api.request, header.api_version)
    return made


def response_frame(response: Message, version: int, correlation_id: int) -> list[Part]:
    """To be sent in order: one part, or with records three and more, of which every second is records."""
    encode, head = _response_encoders.get((type(response), version)) or _response_encoder(type(response), version)
    parts, length = encode(response)
    return _prepend(head.pack(head.size - _SIZE_BYTES + length, correlation_id), parts)


def _response_encoder(response: type[Message], version: int) -> tuple[Encode, Struct]:
    is_flexible = _API_OF_RESPONSE[response].has_flexible_response_header(version)
    head = _SIZE_ID_AND_NO_TAGS if is_flexible else _SIZE_AND_ID
    made = _response_encoders[response, version] = encoder(response, version), head
    return made


def request_frame(request: Message, version: int, correlation_id: int, client_id: str | None) -> list[Part]:
    """What a client sends; in parts like a response."""
    api = _API_OF_REQUEST[type(request)]
    parts, length = encoder(api.request, version)(request)
    name = b"" if client_id is None else client_id.encode()
    name_length = -1 if client_id is None else len(name)
    rest = name + b"\0" if api.is_flexible(version) else name
    size = _SIZED_REQUEST_HEAD.size - _SIZE_BYTES + len(rest) + length
    return _prepend(_SIZED_REQUEST_HEAD.pack(size, api.key, version, correlation_id, name_length) + rest, parts)


def _prepend(head: bytes, parts: list[Part]) -> list[Part]:
    first = parts[0]
    assert isinstance(first, bytes)
    parts[0] = head + first
    return parts


def decode_response(response: type[M], version: int, frame: memoryview) -> tuple[int, M, int]:
    """Correlation id, message, and where the message ends in the frame."""
    is_flexible = _API_OF_RESPONSE[response].has_flexible_response_header(version)
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        at = skip_tags(frame, _CORRELATION_ID.size) if is_flexible else _CORRELATION_ID.size
    except (StructError, IndexError) as error:
        raise MalformedRequest(f"response header: {error}") from error
    message, end = decode(response, version, frame, at)
    return correlation_id, message, end

"""What nodes of one cluster say to each other: frames like those of the Kafka protocol, on an address of its own, after
a proof that both sides know the cluster's secret.

The proof is a SASL handshake with a mechanism of our own. The one that connects sends a nonce, its node id and the id
of the node that it looks for; the other answers with a nonce and its proof; the first one answers with its own. A proof
is an HMAC over all of that and over who gives it, so none can be given back to the one that it came from.
"""

import hmac
from collections.abc import Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.varint import encode_varint, read_varint

MECHANISM = "GQ-PEER"
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2

FETCH = 1
WRITE_TXN_MARKERS = 27
SUBMIT = 20001
FORWARD = 20002
COPIES = 20003
"""What the copies of a node hold; the request is empty."""
VERSIONS = {
    SASL_HANDSHAKE: HANDSHAKE_VERSION,
    SASL_AUTHENTICATE: AUTHENTICATE_VERSION,
    FETCH: 18,
    WRITE_TXN_MARKERS: 2,
}
"""In which nodes speak each API to each other; 0, where it is one of ours."""

NONCE_BYTES = 32
PROOF_BYTES = 32
ERROR_TAG = 20000

_REQUEST_HEAD = Struct(">ihhih")
_READ_HEAD = Struct(">hhih")
_RESPONSE_HEAD = Struct(">ii")
_CORRELATION_ID = Struct(">i")
_HELLO = Struct(f">{NONCE_BYTES}sii")
_SIZE_BYTES = 4
_NO_CLIENT_ID = -1


class PeerHead(NamedTuple):
    """Of a request."""

    api_key: int
    version: int
    correlation_id: int
    body_at: int


def _is_flexible(api_key: int) -> bool:
    return api_key != SASL_HANDSHAKE


def peer_request(api_key: int, correlation_id: int, body: bytes) -> list[bytes]:
    """To be sent in order."""
    tags = b"\0" if _is_flexible(api_key) else b""
    size = _REQUEST_HEAD.size - _SIZE_BYTES + len(tags) + len(body)
    head = _REQUEST_HEAD.pack(size, api_key, VERSIONS.get(api_key, 0), correlation_id, _NO_CLIENT_ID)
    return [head + tags, body]


def read_peer_request(frame: memoryview) -> PeerHead:
    try:
        api_key, version, correlation_id, client_id = _READ_HEAD.unpack_from(frame)
        at = _READ_HEAD.size + max(0, client_id)
        if _is_flexible(api_key):
            at = _skip_tags(frame, at)
    except (StructError, IndexError) as error:
        raise MalformedRequest(f"request header: {error}") from error
    if at > len(frame):
        raise MalformedRequest("request header: cut short")
    return PeerHead(api_key, version, correlation_id, at)


def peer_response(
    api_key: int, correlation_id: int, body: Sequence[bytes | memoryview], error: bytes = b""
) -> list[bytes | memoryview]:
    """`error`: why there is no body, in words; it was not done."""
    tags = b"\0" if _is_flexible(api_key) else b""
    if error:
        tags = b"\1" + encode_varint(ERROR_TAG) + encode_varint(len(error)) + error
    size = _RESPONSE_HEAD.size - _SIZE_BYTES + len(tags) + sum(map(len, body))
    return [_RESPONSE_HEAD.pack(size, correlation_id) + tags, *body]


def correlation_id_of(frame: memoryview) -> int:
    """Of an answer. MalformedRequest: it is too short for one."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
    except StructError as error:
        raise MalformedRequest(f"response header: {error}") from error
    return int(correlation_id)


def read_peer_response(api_key: int, frame: memoryview) -> tuple[memoryview, str]:
    """The body, and why there is none."""
    at, why = _CORRELATION_ID.size, ""
    try:
        if _is_flexible(api_key):
            count, at = read_varint(frame, at)
            for _ in range(count):
                tag, at = read_varint(frame, at)
                size, at = read_varint(frame, at)
                if tag == ERROR_TAG:
                    why = str(frame[at : at + size], "utf-8", "replace")
                at += size
    except IndexError as error:
        raise MalformedRequest(f"response header: {error}") from error
    return frame[at:], why


def _skip_tags(frame: memoryview, at: int) -> int:
    count, at = read_varint(frame, at)
    for _ in range(count):
        _, at = read_varint(frame, at)
        size, at = read_varint(frame, at)
        at += size
    return at


class Hello(NamedTuple):
    """The first words of the one that connects."""

    nonce: bytes
    node_id: int
    """Who it says it is."""
    wanted_id: int
    """Whom it believes to have reached: an address may belong to another node by now."""

    def encode(self) -> bytes:
        return _HELLO.pack(*self)

    @classmethod
    def decode(cls, data: bytes) -> "Hello":
        try:
            return cls(*_HELLO.unpack(data))
        except StructError as error:
            raise MalformedRequest("the first words of a node have another size") from error


def proof(secret: bytes, role: bytes, hello: Hello, answer_nonce: bytes) -> bytes:
    """`role`: `asking` or `asked`, whoever gives it."""
    return hmac.digest(secret, MECHANISM.encode() + role + hello.encode() + answer_nonce, "sha256")


def is_proof(given: bytes, secret: bytes, role: bytes, hello: Hello, answer_nonce: bytes) -> bool:
    return bool(secret) and hmac.compare_digest(given, proof(secret, role, hello, answer_nonce))

"""Whole requests of clients as nodes pass them on, byte for byte, and their answers."""

import msgspec

HTTP, GRPC, GRPC_STREAM = "http", "grpc", "grpc-stream"
"""Kinds of questions between nodes."""
VIA = "goqueue.via"
"""In a scope: another node asks."""
NOT_MINE = "goqueue.not_mine"
"""In a scope: it is not for this node, and nothing was done."""
PRINCIPAL = "goqueue.principal"
"""In a scope: who asks. Beside VIA it is what another node has said."""
PEER = "goqueue.peer"
"""In a scope: from where, as host:port. Beside VIA it is what another node has said."""
SECRETS = frozenset({b"authorization", b"x-api-key", b"cookie", b"x-goqueue-csrf"})
"""Headers that are not passed on: who asks is known by then."""
MISSING = b"gq-missing-nodes"
"""A header of an answer that lacks the parts of these nodes."""
Headers = list[tuple[bytes, bytes]]


class HttpRequest(msgspec.Struct, array_like=True):
    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: Headers
    body: bytes
    principal: str = ""
    """Who asks. Nodes believe it of each other, since each has proved that it is one of the cluster."""
    peer: str = ""
    """From where, as the node that was asked saw it: rules may be about addresses."""


class HttpReply(msgspec.Struct, array_like=True):
    status: int
    headers: Headers
    body: bytes


encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(HttpRequest).decode
decode_reply = msgspec.msgpack.Decoder(HttpReply).decode

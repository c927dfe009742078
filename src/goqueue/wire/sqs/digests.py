"""The MD5s by which clients of SQS check that a message arrived as it was sent."""

from collections.abc import Mapping
from hashlib import md5
from struct import Struct

from goqueue.wire.sqs.requests import MessageAttribute

STRING, BINARY = b"\1", b"\2"
_SIZE = Struct(">I")


def md5_of(text: bytes) -> str:
    return md5(text, usedforsecurity=False).hexdigest()


def md5_of_attributes(attributes: Mapping[str, MessageAttribute]) -> str:
    """Of name, type and value of each, by name, each with its size before it."""
    digest = md5(usedforsecurity=False)
    for name in sorted(attributes):
        attribute = attributes[name]
        kind = STRING if attribute.binary_value is None else BINARY
        digest.update(_sized(name.encode()) + _sized((attribute.data_type or "").encode()))
        digest.update(kind + _sized(attribute.value))
    return digest.hexdigest()


def _sized(octets: bytes) -> bytes:
    return _SIZE.pack(len(octets)) + octets

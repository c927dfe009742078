"""Receipts: what a consumer hands back to settle a record.

A settlement may carry nothing else, so a receipt names its place in full. It is signed, so that nobody can settle by
guessing what another consumer holds. Layout, big-endian, then base64url without padding:

    version 1 | boot 4 | partition 4 | offset 8 | lease 8 | group size 1 | group | topic size 1 | topic | digest 12
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from hmac import compare_digest
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from goqueue.model.errors import MalformedReceipt

RECEIPT_CHARS_MAX = 1024
NAME_BYTES_MAX = 255
"""Of a group id and of a topic name, in UTF-8: the two sizes take one byte each."""
KEY_BYTES_MIN = 16

_VERSION = 1
_DIGEST_BYTES = 12
_PURPOSE = b"goqueue receipt"
_FIXED = Struct(">BIIQQ")
_CHARS_MIN = (_FIXED.size + 2 + _DIGEST_BYTES) * 4 // 3


class Receipt(NamedTuple):
    boot: int
    """Which start of the node gave the lease: leases do not outlive it. 32 bits."""
    group_id: str
    topic: str
    partition: int
    offset: int
    lease: int


def encode_receipt(receipt: Receipt, key: bytes) -> str:
    """ValueError: a number or name that does not fit, which is the mistake of our own caller."""
    boot, group_id, topic, partition, offset, lease = receipt
    group_bytes, topic_bytes = group_id.encode(), topic.encode()
    if len(group_bytes) > NAME_BYTES_MAX or len(topic_bytes) > NAME_BYTES_MAX:
        raise ValueError(f"group id and topic name may have {NAME_BYTES_MAX} bytes each")
    try:
        fixed = _FIXED.pack(_VERSION, boot, partition, offset, lease)
    except StructError as mistake:
        raise ValueError(f"{receipt}: {mistake}") from None
    sizes = bytes((len(group_bytes),)), bytes((len(topic_bytes),))
    body = b"".join((fixed, sizes[0], group_bytes, sizes[1], topic_bytes))
    return _text(body + _digest(body, key))


def decode_receipt(text: object, key: bytes) -> Receipt:
    """MalformedReceipt: whatever `encode_receipt` did not make with this `key`."""
    signed = _signed_bytes(text)
    body = signed[:-_DIGEST_BYTES]
    if not compare_digest(_digest(body, key), signed[-_DIGEST_BYTES:]):
        raise MalformedReceipt("no receipt of this queue: its signature is wrong")
    version, boot, partition, offset, lease = _FIXED.unpack_from(body)
    if version != _VERSION:
        raise MalformedReceipt(f"a receipt of version {version}, only {_VERSION} is known")
    group_at = _FIXED.size + 1
    topic_at = group_at + body[group_at - 1] + 1
    return Receipt(
        boot=boot,
        group_id=body[group_at : topic_at - 1].decode(),
        topic=body[topic_at:].decode(),
        partition=partition,
        offset=offset,
        lease=lease,
    )


def _signed_bytes(text: object) -> bytes:
    if not isinstance(text, str):
        raise MalformedReceipt(f"a receipt is a text, not {type(text).__name__}")
    if not _CHARS_MIN <= len(text) <= RECEIPT_CHARS_MAX or not text.isascii():
        raise MalformedReceipt(f"no receipt of this queue: {len(text)} characters")
    try:
        signed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        signed = b""
    # The decoder skips foreign characters and ignores spare bits: only one text per receipt is let through.
    if _text(signed) != text:
        raise MalformedReceipt("no receipt of this queue: it is not base64url")
    return signed


def _text(signed: bytes) -> str:
    return urlsafe_b64encode(signed).rstrip(b"=").decode()


def _digest(body: bytes, key: bytes) -> bytes:
    if len(key) < KEY_BYTES_MIN:
        raise ValueError(f"a key needs {KEY_BYTES_MIN} bytes")
    return blake2b(body, key=key, digest_size=_DIGEST_BYTES, person=_PURPOSE).digest()

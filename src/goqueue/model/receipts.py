"""Receipts: what a consumer hands back to settle a record.

A settlement may carry nothing else, so a receipt names its place in full. It is signed, so that nobody can settle by
guessing what another consumer holds. Layout, big-endian, then base64url without padding:

    version 1 | epoch 4 | partition 4 | offset 8 | lease 8 | group size 1 | group | topic size 1 | topic | digest 12

Who leases much at once gets one receipt for all of it, of version 2: `offset` is then its first, and its last (8) comes
before the names. With a dot and an offset behind it, it is the receipt of one record.
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

_VERSION, _LEASE_VERSION = 1, 2
_DIGEST_BYTES = 12
_PURPOSE = b"goqueue receipt"
_FIXED = Struct(">BIIQQ")
_LAST = Struct(">Q")
_CHARS_MIN = (_FIXED.size + 2 + _DIGEST_BYTES) * 4 // 3


class Receipt(NamedTuple):
    epoch: int
    """Of the partition's leader that gave the lease: leases do not outlive it. 32 bits."""
    group_id: str
    topic: str
    partition: int
    offset: int
    lease: int


class LeaseReceipt(NamedTuple):
    """Of all that was leased of a partition at one time."""

    epoch: int
    group_id: str
    topic: str
    partition: int
    first: int
    last: int
    """Between the two lies all of it, and perhaps what others hold."""
    lease: int


def encode_receipt(receipt: Receipt, key: bytes) -> str:
    """ValueError: a number or name that does not fit, which is the mistake of our own caller."""
    epoch, group_id, topic, partition, offset, lease = receipt
    try:
        fixed = _FIXED.pack(_VERSION, epoch, partition, offset, lease)
    except StructError as mistake:
        raise ValueError(f"{receipt}: {mistake}") from None
    return _signed_text(fixed, group_id, topic, key)


def encode_lease_receipt(receipt: LeaseReceipt, key: bytes) -> str:
    """ValueError: as for `encode_receipt`."""
    epoch, group_id, topic, partition, first, last, lease = receipt
    try:
        fixed = _FIXED.pack(_LEASE_VERSION, epoch, partition, first, lease) + _LAST.pack(last)
    except StructError as mistake:
        raise ValueError(f"{receipt}: {mistake}") from None
    return _signed_text(fixed, group_id, topic, key)


def _signed_text(fixed: bytes, group_id: str, topic: str, key: bytes) -> str:
    group_bytes, topic_bytes = group_id.encode(), topic.encode()
    if len(group_bytes) > NAME_BYTES_MAX or len(topic_bytes) > NAME_BYTES_MAX:
        raise ValueError(f"group id and topic name may have {NAME_BYTES_MAX} bytes each")
    sizes = bytes((len(group_bytes),)), bytes((len(topic_bytes),))
    body = b"".join((fixed, sizes[0], group_bytes, sizes[1], topic_bytes))
    return _text(body + _digest(body, key))


def decode_receipt(text: object, key: bytes) -> Receipt:
    """Of one record. MalformedReceipt: whatever was not made with this `key`."""
    if isinstance(text, str) and "." in text:
        return _of_one(text, key)
    version, body = _checked_body(text, key)
    if version != _VERSION:
        raise MalformedReceipt(f"a receipt of version {version} is not that of one record")
    _, epoch, partition, offset, lease = _FIXED.unpack_from(body)
    group_id, topic = _names(body, _FIXED.size)
    return Receipt(epoch, group_id, topic, partition, offset, lease)


def decode_lease_receipt(text: object, key: bytes) -> LeaseReceipt:
    """MalformedReceipt: whatever `encode_lease_receipt` did not make with this `key`."""
    version, body = _checked_body(text, key)
    if version != _LEASE_VERSION:
        raise MalformedReceipt(f"a receipt of version {version} is not that of a lease")
    _, epoch, partition, first, lease = _FIXED.unpack_from(body)
    (last,) = _LAST.unpack_from(body, _FIXED.size)
    group_id, topic = _names(body, _FIXED.size + _LAST.size)
    return LeaseReceipt(epoch, group_id, topic, partition, first, last, lease)


def _of_one(text: str, key: bytes) -> Receipt:
    lease_text, _, offset_text = text.partition(".")
    found = decode_lease_receipt(lease_text, key)
    is_plain = offset_text.isascii() and offset_text.isdigit() and str(int(offset_text[:20])) == offset_text
    if not is_plain or not found.first <= int(offset_text) <= found.last:
        raise MalformedReceipt("no receipt of this queue: its lease has no such record")
    return Receipt(found.epoch, found.group_id, found.topic, found.partition, int(offset_text), found.lease)


def _checked_body(text: object, key: bytes) -> tuple[int, bytes]:
    signed = _signed_bytes(text)
    body = signed[:-_DIGEST_BYTES]
    if not compare_digest(_digest(body, key), signed[-_DIGEST_BYTES:]):
        raise MalformedReceipt("no receipt of this queue: its signature is wrong")
    return body[0], body


def _names(body: bytes, at: int) -> tuple[str, str]:
    group_at = at + 1
    topic_at = group_at + body[group_at - 1] + 1
    return body[group_at : topic_at - 1].decode(), body[topic_at:].decode()


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

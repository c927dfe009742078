"""Writing a batch: its header, its checksum, and a plain encoder for the few records that the broker itself writes."""

from collections.abc import Iterable
from struct import error as StructError
from typing import NamedTuple

from crc32c import crc32c

from goqueue.records.batch import (
    CHECKED_FROM,
    CODEC_MASK,
    CRC,
    CRC_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER,
    Codec,
)
from goqueue.records.compression import Octets, compress
from goqueue.records.decode import DecodedRecord

NO_SEQUENCE = -1

_MASK_64 = 2**64 - 1


class Head(NamedTuple):
    """What the writer of a batch decides; length, codec work and checksum follow from it."""

    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    record_count: int
    attributes: int = 0
    base_offset: int = 0
    leader_epoch: int = NO_EPOCH
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE


def assemble(head: Head, records: Octets) -> bytearray:
    """A whole batch round the uncompressed `records`. ValueError: a number does not fit its field."""
    codec = head.attributes & CODEC_MASK
    data = bytearray(HEADER_BYTES)
    data += compress(Codec(codec), records) if codec else records
    try:
        HEADER.pack_into(
            data,
            0,
            head.base_offset,
            len(data) - LENGTH_END,
            head.leader_epoch,
            MAGIC,
            0,
            head.attributes,
            head.last_offset_delta,
            head.base_timestamp,
            head.max_timestamp,
            head.producer_id,
            head.producer_epoch,
            head.base_sequence,
            head.record_count,
        )
    except StructError as mistake:
        raise ValueError(f"{head} with {len(data)} bytes: {mistake}") from None
    sign(memoryview(data))
    return data


def sign(data: memoryview) -> int:
    """Write the checksum of the batch that `data` is; gives it too."""
    crc = crc32c(data[CHECKED_FROM:])
    CRC.pack_into(data, CRC_AT, crc)
    return crc


def encode_records(records: Iterable[DecodedRecord], base_offset: int, base_timestamp: int) -> bytearray:
    """Uncompressed records, relative to the two bases."""
    out = bytearray()
    for record in records:
        body = bytearray(1)  # record attributes: Kafka uses none
        _put_varint(body, record.timestamp - base_timestamp)
        _put_varint(body, record.offset - base_offset)
        _put_bytes(body, record.key)
        _put_bytes(body, record.value)
        _put_varint(body, len(record.headers))
        for name, value in record.headers:
            _put_bytes(body, name.encode())
            _put_bytes(body, value)
        _put_varint(out, len(body))
        out += body
    return out


def _put_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        _put_varint(out, -1)
    else:
        _put_varint(out, len(value))
        out += value


def _put_varint(out: bytearray, number: int) -> None:
    """Zigzag, seven bits a byte. Wraps at 64 bits as Java does: a producer's times may lie that far apart."""
    bits = number & _MASK_64
    bits = (bits << 1 & _MASK_64) ^ -(bits >> 63) & _MASK_64
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)

"""A view on one record batch: reading the 61-byte header is all that the hot path may do to a message.

Layout (big-endian), Kafka's record batch v2:

    0  base offset      8   |  21 attributes        2  |  43 producer id      8
    8  batch length     4   |  23 last offset delta 4  |  51 producer epoch   2
    12 leader epoch     4   |  27 base timestamp    8  |  53 base sequence    4
    16 magic (2)        1   |  35 max timestamp     8  |  57 record count     4
    17 crc-32c          4   |                          |  61 records

The checksum covers everything from byte 21 on. Base offset and leader epoch lie before it, so the broker
sets them in place without touching what the producer signed.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from crc32c import crc32c

from goqueue.model.errors import CorruptBatch

HEADER_BYTES = 61
LENGTH_END = 12
"""The batch length counts the bytes behind its own field."""
CRC_AT = 17
CHECKED_FROM = 21
MAGIC = 2
NO_PRODUCER = -1
NO_EPOCH = -1

HEADER = Struct(">qiibIhiqqqhii")
PREFIX = Struct(">qii")
CRC = Struct(">I")

_unpack_header = HEADER.unpack_from
_new_tuple = tuple.__new__
_CODEC_MAX = 4  # int(Codec.ZSTD): comparing with an enum member costs more than the rest of the check

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20


class Codec(IntEnum):
    """How the records of a batch are compressed: the three low bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Batch(NamedTuple):
    """One checked batch: the header as the sender wrote it, and `data`, the caller's memory (not a copy).

    Made by `check_batch` alone, so it exists only for bytes whose length, magic and checksum are right. A tuple,
    because making an object with thirteen attributes would cost more than all the checks.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    data: memoryview

    @property
    def size(self) -> int:
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        return Codec(self.attributes & CODEC_MASK)

    @property
    def is_append_time(self) -> bool:
        """True: every record carries the time of the append (`max_timestamp`), not its producer's."""
        return bool(self.attributes & APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_marker(self) -> bool:
        """It ends a transaction. Other control batches only keep places in the log free."""
        return self.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT | CONTROL_BIT

    @property
    def is_dense(self) -> bool:
        """True: one record per offset, as a producer must send it; compaction leaves gaps."""
        return self.record_count == self.last_offset_delta + 1

    def __repr__(self) -> str:
        return f"Batch({self.base_offset}..{self.last_offset}, {self.record_count} records, {self.size} bytes)"


def check_batch(buffer: memoryview, position: int = 0) -> Batch:
    """The batch that starts at `position`. Nothing else in it is believed before its checksum is right."""
    try:
        header = _unpack_header(buffer, position)
    except StructError:
        raise CorruptBatch(f"a batch header needs {HEADER_BYTES} bytes, {len(buffer) - position} are left") from None
    end = position + LENGTH_END + header[1]
    if header[3] != MAGIC:
        raise CorruptBatch(f"magic is {header[3]}, only {MAGIC} is known")
    if header[1] < HEADER_BYTES - LENGTH_END or end > len(buffer):
        raise CorruptBatch(f"batch length {header[1]} does not fit the {len(buffer) - position} bytes given")
    if crc32c(buffer[position + CHECKED_FROM : end]) != header[4]:
        raise CorruptBatch("checksum mismatch")
    if header[6] < 0 or not 0 <= header[12] <= header[6] + 1:
        raise CorruptBatch(f"{header[12]} records cannot span {header[6] + 1} offsets")
    if header[5] & CODEC_MASK > _CODEC_MAX:
        raise CorruptBatch(f"unknown codec {header[5] & CODEC_MASK}")
    return _new_tuple(Batch, (*header, buffer[position:end]))


def place(batch: Batch, base_offset: int, leader_epoch: int) -> None:
    """Write where the batch stands in its log into the caller's memory; `batch` itself still tells what was sent."""
    PREFIX.pack_into(batch.data, 0, base_offset, batch.length, leader_epoch)


def split(buffer: memoryview) -> Iterator[Batch]:
    """The batches that stand one behind the other in `buffer`; every byte must belong to one."""
    position = 0
    while position < len(buffer):
        batch = check_batch(buffer, position)
        yield batch
        position += batch.length + LENGTH_END

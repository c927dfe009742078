"""Batches of a few keyed records, as the broker writes them all day into its own logs: without the fields of producers
and codecs they are put together in a third of the time, and what was just summed up need not be checked again.
"""

from collections.abc import Sequence
from struct import Struct

from crc32c import crc32c

from goqueue.records.batch import (
    CHECKED_FROM,
    CRC,
    CRC_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER,
    Batch,
)
from goqueue.records.encode import NO_SEQUENCE

_NULL = b"\x01"
"""A length of -1."""
_NO_ATTRIBUTES_NO_TIME = b"\x00\x00"
"""Every record has the time of its batch."""
_NO_HEADERS = b"\x00"
_TIMES, _TIMES_AT = Struct(">qq"), 27
"""Of the first record and of the latest, in the header."""
_NUMBER = Struct(">Q")

_new_tuple = tuple.__new__


def plain_batch(records: Sequence[tuple[bytes, bytes | None]], timestamp: int) -> Batch:
    """(key, value) each, of one time; at least one. Writable, so that the log can place it."""
    data = bytearray(HEADER_BYTES)
    short, count = _SHORT, len(_SHORT)
    for number, (key, value) in enumerate(records):
        size = len(key)
        body = b"".join(
            (
                _NO_ATTRIBUTES_NO_TIME,
                short[number] if number < count else _long_varint(number),
                short[size] if size < count else _long_varint(size),
                key,
                _NULL if value is None else _varint(len(value)),
                value or b"",
                _NO_HEADERS,
            )
        )
        size = len(body)
        data += short[size] if size < count else _long_varint(size)
        data += body
    count, length = len(records), len(data) - LENGTH_END
    fields = (count - 1, timestamp, timestamp, NO_PRODUCER, NO_EPOCH, NO_SEQUENCE, count)
    HEADER.pack_into(data, 0, 0, length, NO_EPOCH, MAGIC, 0, 0, *fields)
    view = memoryview(data)
    crc = crc32c(view[CHECKED_FROM:])
    CRC.pack_into(data, CRC_AT, crc)
    return Batch(0, length, NO_EPOCH, MAGIC, crc, 0, *fields, view)


class NumberRecord:
    """A record whose value ends in a number, and nothing else of it ever changes: its batch is a copy of the last one
    with another number and another time.
    """

    __slots__ = ("_length", "_made", "_number_at")

    def __init__(self, key: bytes, value_head: bytes) -> None:
        """`value_head`: what comes before the eight bytes of the number."""
        made = plain_batch([(key, value_head + bytes(_NUMBER.size))], 0)
        self._made = bytes(made.data)
        self._length = made.length
        self._number_at = len(self._made) - len(_NO_HEADERS) - _NUMBER.size

    def batch(self, number: int, timestamp: int) -> Batch:
        data = bytearray(self._made)
        _TIMES.pack_into(data, _TIMES_AT, timestamp, timestamp)
        _NUMBER.pack_into(data, self._number_at, number)
        view = memoryview(data)
        crc = crc32c(view[CHECKED_FROM:])
        CRC.pack_into(data, CRC_AT, crc)
        length = self._length
        return _new_tuple(
            Batch,
            (0, length, NO_EPOCH, MAGIC, crc, 0, 0, timestamp, timestamp, NO_PRODUCER, NO_EPOCH, NO_SEQUENCE, 1, view),
        )


def _long_varint(number: int) -> bytes:
    bits = number << 1  # zigzag of what is not negative
    out = bytearray()
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


_SHORT = [_long_varint(number) for number in range(2048)]


def _varint(number: int) -> bytes:
    return _SHORT[number] if number < len(_SHORT) else _long_varint(number)

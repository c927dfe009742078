"""How much memory the objects of a batch will take, told before they exist: two bytes can become a 64-byte header.

Only large batches are weighed, because reading records in plain Python costs more than decoding them natively. Not
weighed is that a long header name outside ASCII may take up to four times its bytes.
"""

from goqueue.model.errors import CorruptBatch

RECORD_BYTES_MIN = 7
"""Length, attributes, two deltas, key, value, header count: one byte each."""
OBJECT_BYTES_PER_BYTE_MAX = 40
"""Measured worst case: a 4-byte header with a two-byte key outside latin-1 becomes 145 bytes of objects."""

RECORD_OBJECT_BYTES = 256
HEADER_OBJECT_BYTES = 192
_HEADER_BYTES_MIN = 2


def object_bytes(records: bytes | memoryview, record_count: int, enough: int) -> int:
    """An upper estimate of the objects that `records` decode to, no finer than it takes to compare it with `enough`."""
    most = len(records) * OBJECT_BYTES_PER_BYTE_MAX
    least = len(records) + record_count * RECORD_OBJECT_BYTES
    if most <= enough:
        return most
    if least > enough:
        return least
    try:
        return least + _count_headers(records, record_count) * HEADER_OBJECT_BYTES
    except IndexError:
        raise CorruptBatch("a record does not fit its batch") from None


def _count_headers(records: bytes | memoryview, record_count: int) -> int:
    total = position = 0
    for _ in range(record_count):
        size, position = read_varint(records, position)
        end = position + size
        for _ in range(3):  # attributes, timestamp delta, offset delta
            _, position = read_varint(records, position)
        for _ in range(2):  # key, value
            size, position = read_varint(records, position)
            position += max(size, 0)
        headers, position = read_varint(records, position)
        if not 0 <= headers * _HEADER_BYTES_MIN <= end - position:
            raise CorruptBatch("a record does not fit its own length")
        total += headers
        position = end
    return total


def read_varint(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The number there, and where it ends. IndexError: it goes beyond the data."""
    bits = shift = 0
    while True:
        octet = data[position]
        position += 1
        bits |= (octet & 0x7F) << shift
        if octet < 0x80:
            return bits >> 1 ^ -(bits & 1), position
        shift += 7
        if shift > 63:
            raise CorruptBatch("a number of more than ten bytes")

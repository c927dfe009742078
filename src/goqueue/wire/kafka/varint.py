"""Lengths of flexible versions: unsigned, seven bits to the byte, the lowest first. Nearly all fit in one byte, which
the compiled codecs handle themselves; here is the rest."""

from goqueue.wire.kafka.errors import MalformedRequest

BYTES_MAX = 5
ONE_BYTE = [bytes([value]) for value in range(128)]


def encode_varint(value: int) -> bytes:
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The value and where it ends. Raises IndexError at the end of the data, as plain indexing does."""
    value = 0
    for shift in range(0, 7 * BYTES_MAX, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise MalformedRequest(f"a varint of more than {BYTES_MAX} bytes")


TAGS_MAX = 1000
"""Of one section. The protocol has three at most; clients of the future may have some more."""


def skip_tags(data: bytes | memoryview, position: int) -> int:
    """Behind a tagged section of which nothing is known."""
    count, position = read_varint(data, position)
    if count > TAGS_MAX:
        raise MalformedRequest(f"{count} tagged fields, at most {TAGS_MAX} are read")
    for _ in range(count):
        _, position = read_varint(data, position)
        size, position = read_varint(data, position)
        position += size
    return position

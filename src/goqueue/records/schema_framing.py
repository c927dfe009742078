"""How a record names the schema of its value: in the header `schema-id`, or before the value as Confluent's serializers
do: a zero byte, four bytes of id and, for Protobuf, which message of its schema it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

HEADER = "schema-id"
MAGIC = 0
PREFIX_BYTES = 5
ID_DIGITS_MAX = 10
LATEST = -1
"""Stands for the id of a schema that a record does not name."""
INDEXES_MAX = 32


class Named(NamedTuple):
    schema_id: int
    is_framed: bool
    """Its value begins with the id."""


def named_schema(value: bytes, headers: Sequence[tuple[str, bytes | None]]) -> Named:
    """ValueError: a header that names none."""
    is_framed = len(value) >= PREFIX_BYTES and value[0] == MAGIC
    schema_id = int.from_bytes(value[1:PREFIX_BYTES]) if is_framed else LATEST
    said = next((text for name, text in reversed(headers) if name == HEADER), None) if headers else None
    if said is not None:
        if not said.isdigit() or len(said) > ID_DIGITS_MAX:
            raise ValueError(f"header {HEADER} is {said[:40]!r}, but must be the id of a schema")
        is_framed = is_framed and int(said) == schema_id
        schema_id = int(said)
    return Named(schema_id, is_framed)


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of its schema a value is, and where it begins: a path of numbers, zigzag; a single 0 stands for the
    first. ValueError: there are none.
    """
    count, at = _varint(payload, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= INDEXES_MAX:
        raise ValueError(f"{count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _varint(payload, at)
        indexes.append(index)
    return tuple(indexes), at


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    shift = number = 0
    while at < len(payload) and shift < INDEXES_MAX:
        byte = payload[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise ValueError("no message indexes behind the id of the schema")

"""The number of a group by which it is placed."""

from zlib import crc32


def group_hash(group_id: str) -> int:
    return crc32(group_id.encode())

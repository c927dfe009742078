"""What consumers put into the bytes that a classic group passes on: subscriptions to the leader, assignments from it.

Both begin with a 16-bit version; strings have 16-bit lengths, arrays 32-bit counts. Later versions only append, so what
follows does not matter.
"""

import struct

from goqueue.machines.group_commands import TopicPartition

CONSUMER_PROTOCOL_TYPE = "consumer"
"""Members of this type speak so; what others say is theirs to know."""

_VERSION_BYTES = 2


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """The topics at its head. None: these bytes are something else."""
    try:
        count, at = _count(metadata, _VERSION_BYTES)
        topics = []
        for _ in range(count):
            name, at = _string(metadata, at)
            topics.append(name)
    except (struct.error, UnicodeDecodeError):
        return None
    return topics


def partitions_of_assignment(assignment: bytes) -> list[TopicPartition] | None:
    """The partitions that a member was given. None: these bytes are something else."""
    if not assignment:
        return []
    try:
        count, at = _count(assignment, _VERSION_BYTES)
        partitions = []
        for _ in range(count):
            topic, at = _string(assignment, at)
            size, at = _count(assignment, at)
            partitions += [TopicPartition(topic, one) for one in struct.unpack_from(f">{size}i", assignment, at)]
            at += 4 * size
    except (struct.error, UnicodeDecodeError):
        return None
    return partitions


def _count(data: bytes, at: int) -> tuple[int, int]:
    (count,) = struct.unpack_from(">i", data, at)
    if count < 0:
        raise struct.error("a count is negative")
    return count, at + 4


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">H", data, at)
    end = at + 2 + length
    if end > len(data):
        raise struct.error("a string is cut off")
    return data[at + 2 : end].decode(), end

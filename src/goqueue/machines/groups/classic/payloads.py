"""What consumers put into the bytes that a classic group passes on: subscriptions to the leader, assignments from it.

Both begin with a 16-bit version; strings have 16-bit lengths, arrays 32-bit counts. Later versions only append, so what
follows does not matter.
"""

import struct
from collections.abc import Callable, Mapping, Sequence

from goqueue.model.topic_partition import TopicPartition

CONSUMER_PROTOCOL_TYPE = "consumer"
"""Members of this type speak so; what others say is theirs to know."""

_VERSION_BYTES = 2
_OWNED_FROM = 1
_NO_USER_DATA = struct.pack(">i", -1)


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """The topics at its head. None: these bytes are something else."""
    try:
        return _topics(metadata)[0]
    except (struct.error, UnicodeDecodeError):
        return None


def partitions_owned(metadata: bytes) -> list[TopicPartition]:
    """What the member says that it has, with a subscription of version 1 or later; members that give up everything
    before they join say nothing of it.
    """
    try:
        (version,) = struct.unpack_from(">h", metadata)
        if version < _OWNED_FROM:
            return []
        _, at = _topics(metadata)
        (user_bytes,) = struct.unpack_from(">i", metadata, at)
        return _partitions(metadata, at + 4 + max(0, user_bytes))
    except (struct.error, UnicodeDecodeError):
        return []


def partitions_of_assignment(assignment: bytes) -> list[TopicPartition] | None:
    """The partitions that a member was given. None: these bytes are something else."""
    if not assignment:
        return []
    try:
        return _partitions(assignment, _VERSION_BYTES)
    except (struct.error, UnicodeDecodeError):
        return None


def assignment_of_partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """In the first version, which every client reads: by topic, without anything of the assignor's own."""
    parts = [struct.pack(">hi", 0, len(partitions))]
    for topic, numbers in partitions.items():
        name = topic.encode()
        parts.append(struct.pack(f">H{len(name)}si{len(numbers)}i", len(name), name, len(numbers), *numbers))
    return b"".join([*parts, _NO_USER_DATA])


def _topics(metadata: bytes) -> tuple[list[str], int]:
    count, at = _count(metadata, _VERSION_BYTES)
    topics = []
    for _ in range(count):
        name, at = _string(metadata, at)
        topics.append(name)
    return topics, at


def _partitions(data: bytes, at: int) -> list[TopicPartition]:
    count, at = _count(data, at)
    partitions = []
    for _ in range(count):
        topic, at = _string(data, at)
        size, at = _count(data, at)
        partitions += [TopicPartition(topic, one) for one in struct.unpack_from(f">{size}i", data, at)]
        at += 4 * size
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


def renamed_subscription(metadata: bytes, rename: Callable[[str], str]) -> bytes:
    """The same with other names of topics. What is no subscription stays as it is: nobody here can read it either."""
    try:
        topics, at = _topics(metadata)
    except (struct.error, UnicodeDecodeError):
        return metadata
    head = b"".join(
        [metadata[:_VERSION_BYTES], struct.pack(">i", len(topics)), *(_text(rename(each)) for each in topics)]
    )
    try:
        (version,) = struct.unpack_from(">h", metadata)
        (user_bytes,) = struct.unpack_from(">i", metadata, at)
        owned_at = at + 4 + max(0, user_bytes)
        if version < _OWNED_FROM:
            return head + metadata[at:]
        return head + metadata[at:owned_at] + _renamed_partitions(metadata, owned_at, rename)
    except (struct.error, UnicodeDecodeError):
        return head + metadata[at:]


def renamed_assignment(assignment: bytes, rename: Callable[[str], str]) -> bytes:
    try:
        return assignment[:_VERSION_BYTES] + _renamed_partitions(assignment, _VERSION_BYTES, rename)
    except (struct.error, UnicodeDecodeError):
        return assignment


def _renamed_partitions(data: bytes, at: int, rename: Callable[[str], str]) -> bytes:
    """From there on, to the end."""
    count, at = _count(data, at)
    parts = [struct.pack(">i", count)]
    for _ in range(count):
        topic, at = _string(data, at)
        size, numbers_at = _count(data, at)
        struct.unpack_from(f">{size}i", data, numbers_at)
        after = numbers_at + 4 * size
        parts += [_text(rename(topic)), data[at:after]]
        at = after
    return b"".join([*parts, data[at:]])


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data

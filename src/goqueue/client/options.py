"""What producers and consumers can be told, checked when they are made."""

from typing import Any, Literal, NamedTuple, TypeVar

from goqueue.client.errors import InvalidArgument
from goqueue.model.moments import shown
from goqueue.records.batch import Codec
from goqueue.records.partitioners import Partitioner

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
PartitionerName = Literal["murmur2", "murmur3", "crc32", "round_robin"]

MIB = 1024 * 1024
LINGER_MS_MAX = 60_000
BATCH_MESSAGES_MAX = 100_000

T = TypeVar("T")


class ProducerOptions(NamedTuple):
    codec: Codec
    partitioner: Partitioner | None
    """None: as each topic's option says."""
    linger_s: float
    batch_messages_max: int
    batch_bytes_max: int
    buffer_bytes_max: int
    message_bytes_max: int
    delivery_s_max: float
    request_s_max: float


def between(name: str, value: Any, lowest: int, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise InvalidArgument(f"{name} is {shown(value)}, but must be a whole number from {lowest} to {highest}")
    return int(value)


def one_of(name: str, value: Any, allowed: dict[str, T]) -> T:
    found = allowed.get(value) if isinstance(value, str) else None
    if found is None:
        raise InvalidArgument(f"{name} is {shown(value)}, but must be one of {', '.join(allowed)}")
    return found


CODECS = {codec.name.lower(): codec for codec in Codec}
PARTITIONERS = {kind.value: kind for kind in Partitioner}

"""Which partition a record goes to. With a key: always the same one; without: evenly, whatever else is published.

A topic says by its option `partitioner` how keys are hashed, so that all who publish to it agree. The default is what
Kafka's Java client does, which knows nothing of that option.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from struct import unpack
from zlib import crc32

import mmh3

from goqueue.model.codes import Code
from goqueue.model.refusal import Refused

_MASK_32 = 0xFFFFFFFF
_MURMUR2_SEED = 0x9747B28C
_MURMUR2_MIX = 0x5BD1E995
REMEMBERED_BYTES_MAX = 64
REMEMBERED_KEYS = 8192


class Partitioner(StrEnum):
    MURMUR2 = "murmur2"
    """Of Kafka's Java client, kafka-python and aiokafka; of librdkafka if it is told so."""
    MURMUR3 = "murmur3"
    """The fastest here."""
    CRC32 = "crc32"
    """Of librdkafka, if it is not told otherwise."""
    ROUND_ROBIN = "round_robin"
    """Looks at no key: records of one key have no order."""


DEFAULT = Partitioner.MURMUR2


class RoundRobin:
    """Each topic has its own turn. With one for all, two topics published in turns would each use every other
    partition only: of two partitions, one.
    """

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        """Bounded by the number of topics, as long as deleted ones are forgotten."""

    def choose(self, topic: str, partitions: int) -> int:
        """Any run of choices for one topic and one number of partitions spreads evenly, within 1."""
        turn = self._turns.get(topic, 0)
        self._turns[topic] = turn + 1
        return turn % partitions

    def forget(self, topic: str) -> None:
        self._turns.pop(topic, None)


def named(name: str) -> Partitioner:
    """The partitioner of that name. One that is not known, of a topic of a newer broker, is taken for the default."""
    return Partitioner(name) if name in _NAMES else DEFAULT


def partition_for(key: bytes, partitions: int, kind: Partitioner = DEFAULT) -> int:
    """The partition of `key`. ValueError: ROUND_ROBIN, which looks at no key."""
    hashed = HASHES.get(kind)
    if hashed is None:
        raise ValueError(f"{kind.value} does not choose by key")
    return hashed(key) % partitions


def partitions_for(keys: Iterable[bytes], partitions: int, kind: Partitioner = DEFAULT) -> list[int]:
    """As `partition_for`, for many keys at once."""
    if kind is Partitioner.MURMUR3:
        quick = mmh3.hash
        return [quick(key, 0, False) % partitions for key in keys]
    hashed = HASHES[kind]
    return [hashed(key) % partitions for key in keys]


def check_partition(partition: int, partitions: int) -> int:
    """The partition that a producer named itself, if there is one such."""
    if not 0 <= partition < partitions:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} is not one of 0 to {partitions - 1}")
    return partition


def murmur3(key: bytes) -> int:
    """MurmurHash3, 32 bits, unsigned, seed 0."""
    hashed: int = mmh3.hash(key, signed=False)
    return hashed


def murmur2(key: bytes) -> int:
    """MurmurHash2 with Kafka's seed, 32 bits, unsigned. In Python: no kept library has it."""
    size = len(key)
    words = size >> 2
    hashed = _MURMUR2_SEED ^ size
    for word in unpack(f"<{words}I", key[: words << 2]):
        mixed = word * _MURMUR2_MIX & _MASK_32
        hashed = (hashed * _MURMUR2_MIX ^ (mixed ^ mixed >> 24) * _MURMUR2_MIX) & _MASK_32
    rest = key[words << 2 :]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _MURMUR2_MIX & _MASK_32
    hashed = (hashed ^ hashed >> 13) * _MURMUR2_MIX & _MASK_32
    return hashed ^ hashed >> 15


_remembered_murmur2 = lru_cache(REMEMBERED_KEYS)(murmur2)
"""Keys come again, and this hash takes a microsecond or two."""


def _kafkas_murmur2(key: bytes) -> int:
    """Without its sign, as Kafka's clients take it."""
    return (_remembered_murmur2(key) if len(key) <= REMEMBERED_BYTES_MAX else murmur2(key)) & 0x7FFFFFFF


HASHES: Mapping[Partitioner, Callable[[bytes], int]] = {
    Partitioner.MURMUR2: _kafkas_murmur2,
    Partitioner.MURMUR3: murmur3,
    Partitioner.CRC32: crc32,
}
_NAMES = frozenset(each.value for each in Partitioner)

"""Which partition a record goes to. With a key: always the same one; without: evenly, whatever else is published."""

from collections.abc import Iterable
from enum import StrEnum
from struct import unpack

import mmh3

from goqueue.model.codes import Code
from goqueue.model.refusal import Refused

_MASK_32 = 0xFFFFFFFF
_MURMUR2_SEED = 0x9747B28C
_MURMUR2_MIX = 0x5BD1E995


class Partitioner(StrEnum):
    MURMUR3 = "murmur3"
    MURMUR2 = "murmur2"
    """What Kafka's Java client does: for producers of both kinds that share keys."""
    ROUND_ROBIN = "round-robin"


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


def partition_for(key: bytes, partitions: int, kind: Partitioner = Partitioner.MURMUR3) -> int:
    """The partition of `key`. ValueError: ROUND_ROBIN, which looks at no key."""
    if kind is Partitioner.MURMUR3:
        return murmur3(key) % partitions
    if kind is Partitioner.MURMUR2:
        return (murmur2(key) & 0x7FFFFFFF) % partitions
    raise ValueError(f"{kind.value} does not choose by key")


def partitions_for(keys: Iterable[bytes], partitions: int, kind: Partitioner = Partitioner.MURMUR3) -> list[int]:
    """As `partition_for`, for many keys at once."""
    if kind is Partitioner.MURMUR3:
        hashed = mmh3.hash
        return [hashed(key, 0, False) % partitions for key in keys]
    return [partition_for(key, partitions, kind) for key in keys]


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
    """MurmurHash2 with Kafka's seed, 32 bits, unsigned. In Python: no kept library has it, and few keys need it."""
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

import warnings
from collections import Counter

import mmh3
import pytest
from confluent_kafka import KafkaError, Message, Producer
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.records.partitioners import (
    Partitioner,
    RoundRobin,
    check_partition,
    murmur2,
    murmur3,
    partition_for,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, which it reads its schemas with
    from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python  # type: ignore[import-untyped]

BY_KEY = [Partitioner.MURMUR3, Partitioner.MURMUR2, Partitioner.CRC32]
KEYS = [b"order-%d" % number for number in range(10_000)]


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # the vectors of Kafka's own UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % 2**32


@given(st.binary(max_size=100))
def test_murmur2_is_what_kafka_python_computes(key: bytes) -> None:
    assert murmur2(key) == murmur2_of_kafka_python(key)


@pytest.mark.parametrize(("name", "kind"), [("murmur2", Partitioner.MURMUR2), ("consistent", Partitioner.CRC32)])
def test_a_key_goes_where_confluent_puts_it(name: str, kind: Partitioner) -> None:
    chosen: dict[object, int | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None
        chosen[message.key()] = message.partition()

    producer = Producer({"test.mock.num.brokers": 1, "partitioner": name, "log_level": 3})
    keys = [b"", *KEYS[:300], *(bytes(range(size)) for size in range(1, 60))]
    for key in keys:
        producer.produce("orders", b"", key, on_delivery=delivered)
    assert producer.flush(30) == 0
    partitions = len(producer.list_topics("orders", timeout=30).topics["orders"].partitions)
    assert partitions > 1
    assert chosen == {key: partition_for(key, partitions, kind) for key in keys}


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # published vectors of MurmurHash3_x86_32 with seed 0
        (b"", 0),
        (b"\xff\xff\xff\xff", 0x76293B50),
        (b"!Ce\x87", 0xF55B516B),
        (b"!Ce", 0x7E4A8634),
        (b"!C", 0xA0F7B07A),
        (b"!", 0x72661CF4),
        (b"\0\0\0\0", 0x2362F9DE),
        (b"Hello, world!", 0xC0363E43),
        (b"The quick brown fox jumps over the lazy dog", 0x2E4FF723),
    ],
)
def test_murmur3_is_the_published_one(key: bytes, hashed: int) -> None:
    assert murmur3(key) == hashed


def test_the_library_takes_any_key() -> None:
    assert all(0 <= murmur3(bytes(size)) < 2**32 for size in range(300))
    assert mmh3.hash(b"order-1", signed=False) == murmur3(b"order-1")


@pytest.mark.parametrize("kind", BY_KEY)
@given(key=st.binary(max_size=50), partitions=st.integers(1, 10_000))
def test_the_same_key_goes_to_the_same_partition(kind: Partitioner, key: bytes, partitions: int) -> None:
    partition = partition_for(key, partitions, kind)
    assert 0 <= partition < partitions
    assert partition_for(bytes(key), partitions, kind) == partition


@pytest.mark.parametrize("kind", BY_KEY)
@pytest.mark.parametrize("partitions", [2, 3, 4, 6, 7, 8, 12, 16, 50, 64, 100])
def test_keys_spread_evenly(kind: Partitioner, partitions: int) -> None:
    counts = Counter(partition_for(key, partitions, kind) for key in KEYS)
    even = len(KEYS) / partitions
    chi_square = sum((counts[partition] - even) ** 2 / even for partition in range(partitions))
    # Mean and variance of the distribution are n - 1 and 2(n - 1): chance goes beyond this once in ten thousand.
    assert chi_square < partitions - 1 + 4 * (2 * (partitions - 1)) ** 0.5 + 4


def test_round_robin_does_not_choose_by_key() -> None:
    with pytest.raises(ValueError, match="round_robin"):
        partition_for(b"key", 3, Partitioner.ROUND_ROBIN)


@given(partitions=st.integers(1, 40), records=st.integers(0, 200))
def test_records_without_key_spread_within_one(partitions: int, records: int) -> None:
    turns = RoundRobin()
    counts = Counter(dict.fromkeys(range(partitions), 0))
    for _ in range(records):
        counts[turns.choose("orders", partitions)] += 1
    assert len(counts) == partitions
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("topics", [1, 2, 3, 4])
@pytest.mark.parametrize("partitions", [2, 3, 4, 6])
def test_topics_published_in_turns_use_all_their_partitions(topics: int, partitions: int) -> None:
    turns = RoundRobin()
    counts = Counter((turn % topics, turns.choose(f"topic-{turn % topics}", partitions)) for turn in range(1200))
    assert set(counts) == {(topic, partition) for topic in range(topics) for partition in range(partitions)}
    assert max(counts.values()) - min(counts.values()) <= 1


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), max_size=6))
def test_a_changed_number_of_partitions_spreads_evenly_again(phases: list[tuple[int, int]]) -> None:
    turns = RoundRobin()
    for partitions, records in phases:
        counts = Counter(dict.fromkeys(range(partitions), 0))
        counts.update(turns.choose("orders", partitions) for _ in range(records))
        assert len(counts) == partitions
        assert max(counts.values()) - min(counts.values()) <= 1


def test_a_forgotten_topic_begins_anew() -> None:
    turns = RoundRobin()
    assert [turns.choose("a", 3), turns.choose("b", 3), turns.choose("a", 3)] == [0, 0, 1]
    turns.forget("a")
    turns.forget("never seen")
    assert [turns.choose("a", 3), turns.choose("b", 3)] == [0, 1]


@pytest.mark.parametrize("partition", [0, 1, 2])
def test_a_named_partition_is_taken(partition: int) -> None:
    assert check_partition(partition, 3) == partition


@pytest.mark.parametrize("partition", [-1, 3, 2**31, -(2**31)])
def test_a_partition_that_does_not_exist_is_refused(partition: int) -> None:
    with pytest.raises(Refused, match=f"partition {partition} is not one of 0 to 2") as refusal:
        check_partition(partition, 3)
    assert refusal.value.code is Code.UNKNOWN_TOPIC_OR_PARTITION

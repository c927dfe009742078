"""Fail-over of a cluster that has much: 1,000 partitions, as many of a second topic, and a million committed offsets.
See `bench_failover`.
"""

from benchmarks.bench_failover import measured
from benchmarks.harness import Row

PARTITIONS, FACTS = 1000, 1_000_000


def run() -> list[Row]:
    return measured(PARTITIONS, FACTS)

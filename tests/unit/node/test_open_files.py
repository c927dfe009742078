"""How many partitions a node may have follows from how many files it may open."""

import resource

import pytest

from goqueue.model.partition_limits import PartitionLimits
from goqueue.node.open_files import partition_limits


@pytest.mark.parametrize(
    ("files", "in_all"),
    [(1024, 384), (20_000, 9872), (10**9, 100_000), (resource.RLIM_INFINITY, 100_000), (100, 1)],
)
def test_half_of_the_open_files_are_for_partitions(monkeypatch: pytest.MonkeyPatch, files: int, in_all: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (files, files))
    assert partition_limits(7, 5, 9) == PartitionLimits(per_topic=7, in_all=in_all, default=5, retention_ms=9)

"""Compaction at somebody's wish. The node runs it, since it knows processes; this is what it is asked."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias


class CompactResult(NamedTuple):
    is_done: bool
    """False: there was nothing to do, or it was a dry run."""
    dirty_ratio: float
    """Share of the bytes that were not compacted before."""
    records_before: int = 0
    records_after: int = 0
    """Both 0 if there was nothing to do."""


Compact: TypeAlias = Callable[[str, int, bool], Awaitable[CompactResult]]
"""A topic, a partition, and whether it is only a dry run. A GoQueueError: it cannot be compacted, or not now."""

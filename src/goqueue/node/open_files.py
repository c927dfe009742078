"""How many files this process may have open, and so how many partitions: each has one open file or more."""

import resource

from goqueue.model.partition_limits import PartitionLimits
from goqueue.telemetry.logs import get_logger

OTHER_FILES = 256
"""Doors, ledgers, and whatever else is not a partition of somebody's topic."""
FILES_PER_PARTITION = 2
"""Its active segment, and one more for sealed segments and for the connections of those who use it."""

events = get_logger("node")


def raise_open_files_limit() -> None:
    """Every segment is an open file, and the usual soft limit of 1024 is for programs that use select."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError) as error:
            events.warning("cannot raise the limit on open files", soft=soft, hard=hard, exc_info=error)


def partition_limits(per_topic: int, default: int, retention_ms: int) -> PartitionLimits:
    """What this process can bear, with the limit on open files that it has now."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = PartitionLimits().in_all
    in_all = most if files == resource.RLIM_INFINITY else (files - OTHER_FILES) // FILES_PER_PARTITION
    return PartitionLimits(per_topic, max(1, min(in_all, most)), default, retention_ms)

"""Old segments go away by age and by size, oldest first; nothing else does."""

from dataclasses import replace

from goqueue.storage.log import Log
from goqueue.storage.options import Cleanup, LogOptions
from goqueue.storage.retention import expire
from goqueue.testing.memory_disk import MemoryDisk
from tests.logs import DIRECTORY, SMALL, append, batch, open_log, stored

FOREVER = replace(SMALL, retention_ms=-1)


def three_segments(disk: MemoryDisk, options: LogOptions) -> Log:
    """Offsets 0, 1 and 2 in a segment each, written at 1000, 2000 and 3000."""
    log = open_log(disk, options)
    for timestamp in (1000, 2000, 3000):
        append(log, batch(b"x" * 1500, timestamp=timestamp))
    log.sync()
    return log


def offsets(log: Log) -> list[int]:
    return [offset for offset, _ in stored(log)]


def test_segments_whose_newest_record_is_too_old_go() -> None:
    disk = MemoryDisk()
    log = three_segments(disk, replace(SMALL, retention_ms=10_000))
    assert expire(log, now_ms=11_000) == 0
    assert expire(log, now_ms=11_001) == 1
    assert offsets(log) == [1, 2]
    assert log.start_offset == 1
    assert [name for name in disk.list(DIRECTORY) if name.startswith(f"{0:020d}")] == []
    assert offsets(open_log(disk.crashed())) == [1, 2]


def test_an_idle_log_is_emptied_too() -> None:
    log = three_segments(MemoryDisk(), replace(SMALL, retention_ms=10_000))
    assert expire(log, now_ms=20_000) == 3
    assert offsets(log) == []
    assert (log.start_offset, log.end_offset) == (3, 3)
    assert append(log, batch(b"next")) == 3


def test_the_oldest_segments_go_when_the_log_is_too_large() -> None:
    size = batch(b"x" * 1500).size
    for allowed, left in [(3 * size, 3), (3 * size - 1, 3), (2 * size, 2), (size, 1), (0, 1)]:
        log = three_segments(MemoryDisk(), replace(FOREVER, retention_bytes=allowed))
        expire(log, now_ms=10**9)
        assert len(offsets(log)) == left, f"{allowed} bytes"


def test_nothing_goes_without_a_limit() -> None:
    log = three_segments(MemoryDisk(), FOREVER)
    assert expire(log, now_ms=10**15) == 0


def test_nothing_at_or_behind_the_limit_offset_goes() -> None:
    log = three_segments(MemoryDisk(), replace(SMALL, retention_ms=0))
    expire(log, now_ms=10**9, limit_offset=1)
    assert offsets(log) == [1, 2]


def test_a_log_that_only_compacts_deletes_nothing() -> None:
    log = three_segments(MemoryDisk(), replace(SMALL, retention_ms=0, cleanup=Cleanup.COMPACT))
    assert expire(log, now_ms=10**9) == 0

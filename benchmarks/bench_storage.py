"""The log against the raw operations that it is made of: same bytes, same disk, same run, turn by turn."""

import os
import statistics
import time
from pathlib import Path
from random import Random

from benchmarks.harness import Row, row, seconds, told_by, workplace
from goqueue.records.batch import Batch, check_batch
from goqueue.records.build import build_batch
from goqueue.storage.log import Log
from goqueue.storage.options import MIB, LogOptions
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.time_reads import first_at_or_after

DIRECTORY = "logs/bench/0"
VALUE = b"v" * 100
LOG_BYTES = 1024 * MIB
RECORDS_PER_BATCH = 100
READ_BYTES = MIB
LOOKUPS = 5000
TURNS = 9


def run() -> list[Row]:
    rows = [
        measure_append(1, calls=40_000, aim=0.5),
        measure_append(100, calls=5000, aim=0.8),
        measure_append(1000, calls=500, aim=0.9),
        measure_synced_append(),
    ]
    with workplace() as root:
        write_large_log(root)
        rows += measure_reads(root)
        rows += measure_lookups(root)
        rows += measure_recovery(root)
        rows += measure_memory(root)
    return rows


def open_log(root: Path) -> Log:
    return Log.open(RealDisk(root), DIRECTORY, LogOptions(), now_ms=0)


def make_batch(records: int, timestamp: int = 0) -> Batch:
    return check_batch(memoryview(build_batch([(timestamp, None, VALUE, [])] * records)))


# -- append


def measure_append(records: int, calls: int, aim: float) -> Row:
    """One batch a call against one writev a call. The batch is checked before: that is the door's work."""
    batch = make_batch(records)
    ours, raw = [], []
    with workplace() as root:
        for turn in range(TURNS):
            log = Log.open(RealDisk(root), f"logs/bench/{turn}", LogOptions(), now_ms=0)
            log.append([batch], 0, 0)

            def append(log: Log = log) -> None:
                for _ in range(calls):
                    log.append([batch], 0, 0)

            fd = os.open(root / f"raw{turn}", os.O_RDWR | os.O_CREAT)

            def write(fd: int = fd) -> None:
                buffers = [batch.data]
                for _ in range(calls):
                    os.writev(fd, buffers)

            raw.append(seconds(write))
            ours.append(seconds(append))
            assert log.end_offset == (calls + 1) * records
            assert os.fstat(fd).st_size == calls * batch.size
            os.close(fd)
            (root / f"raw{turn}").unlink()
            log.abandon()
    unit = calls * records
    name = f"append, {records} x 100 bytes a batch"
    return row(name, unit / min(ours), "msg/s", unit / min(raw), f"ratio >= {aim}")


def measure_synced_append(calls: int = 300) -> Row:
    batch = make_batch(100)
    with workplace() as root:
        log = open_log(root)
        log.append([batch], 0, 0)
        fd = os.open(root / "raw", os.O_RDWR | os.O_CREAT)
        ours, raw = [], []
        for _ in range(calls):
            ours.append(seconds(lambda: log.append([batch], 0, 0)) + seconds(log.sync))
            raw.append(seconds(lambda: os.writev(fd, [batch.data])) + seconds(lambda: os.fdatasync(fd)))
        assert log.synced_offset == (calls + 1) * 100
        os.close(fd)
        log.close()
    ours_us, raw_us = statistics.median(ours) * 1e6, statistics.median(raw) * 1e6
    return row("append and sync, 100 x 100 bytes, median", ours_us, "us", raw_us, None, is_cost=True)


# -- a log of one gibibyte


def write_large_log(root: Path) -> None:
    log = open_log(root)
    timestamp = 0
    while log.segments.size_bytes < LOG_BYTES:
        log.append([make_batch(RECORDS_PER_BATCH, timestamp)], 0, 0)
        timestamp += 1
    log.close()


def measure_reads(root: Path) -> list[Row]:
    """Sequential, from the page cache, against a raw read of the same ranges. The first pass after a start checks every
    batch, later ones need not."""
    log = open_log(root)
    read_raw(sorted((root / DIRECTORY).glob("*.log")))
    first = seconds(lambda: read_all(log))
    ranges = list_ranges(log)
    raw = again = views = 1e9
    for _ in range(TURNS):
        raw = min(raw, seconds(lambda: read_ranges(ranges)))
        again = min(again, seconds(lambda: read_all(log)))
        views = min(views, seconds(lambda: view_all(log)))
    size = log.segments.size_bytes
    log.close()
    return [
        row("sequential read, checked before", size / again / MIB, "MiB/s", size / raw / MIB, "ratio >= 0.9"),
        row("sequential read, first after a start", size / first / MIB, "MiB/s", size / raw / MIB, None),
        row("sequential read, views without a copy", size / views / MIB, "MiB/s", size / raw / MIB, None),
    ]


def list_ranges(log: Log) -> list[tuple[int, int, int]]:
    """(descriptor, position, length) of every piece that a sequential reader gets."""
    found = []
    offset = 0
    while (piece := log.read(offset, READ_BYTES)) is not None:
        found.append((piece.file.fileno(), piece.position, piece.length))
        offset = piece.next_offset
    return found


def read_ranges(ranges: list[tuple[int, int, int]]) -> None:
    for descriptor, position, length in ranges:
        assert len(os.pread(descriptor, length, position)) == length


def read_raw(files: list[Path]) -> int:
    total = 0
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        position = 0
        while data := os.pread(fd, READ_BYTES, position):
            position += len(data)
        total += position
        os.close(fd)
    return total


def read_all(log: Log) -> None:
    offset = total = 0
    while (piece := log.read(offset, READ_BYTES)) is not None:
        total += len(piece.read())
        offset = piece.next_offset
    assert (offset, total) == (log.end_offset, log.segments.size_bytes)


def view_all(log: Log) -> None:
    offset = total = 0
    while (piece := log.read(offset, READ_BYTES)) is not None:
        total += len(piece.view())
        offset = piece.next_offset
    assert (offset, total) == (log.end_offset, log.segments.size_bytes)


def measure_lookups(root: Path) -> list[Row]:
    """Warm: everything was read once. The raw operation is a read of one index block."""
    log = open_log(root)
    read_all(log)
    dice = Random(1)
    path = min((root / DIRECTORY).glob("*.log"))
    fd = os.open(path, os.O_RDONLY)
    raw, by_offset, by_time = [], [], []
    for _ in range(LOOKUPS):
        offset = dice.randrange(log.end_offset)
        timestamp = offset // RECORDS_PER_BATCH
        raw.append(seconds(lambda: os.pread(fd, 4096, dice.randrange(LOG_BYTES // 32))))
        by_offset.append(seconds(lambda offset=offset: check_offset(log, offset)))  # type: ignore[misc]
        by_time.append(seconds(lambda timestamp=timestamp: check_time(log, timestamp)))  # type: ignore[misc]
    os.close(fd)
    log.close()
    return [
        row("point lookup by offset in 1 GiB, p99", p99_us(by_offset), "us", p99_us(raw), "< 1000 us", is_cost=True),
        row("point lookup by time in 1 GiB, p99", p99_us(by_time), "us", p99_us(raw), "< 1000 us", is_cost=True),
    ]


def check_offset(log: Log, offset: int) -> None:
    piece = log.read(offset, 1)
    assert piece is not None
    assert piece.first_offset <= offset < piece.next_offset


def check_time(log: Log, timestamp: int) -> None:
    assert first_at_or_after(log, timestamp) == (timestamp * RECORDS_PER_BATCH, timestamp)


def p99_us(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=100)[-1] * 1e6


def measure_recovery(root: Path) -> list[Row]:
    """After a clean stop, after a kill, and with every index lost; against reading what must be read then."""
    files = sorted((root / DIRECTORY).glob("*.log"))
    raw_ms = seconds(lambda: read_raw(files)) * 1000
    log = open_log(root)
    end_offset = log.end_offset
    log.abandon()
    clean_ms = open_ms(root, end_offset)
    log = open_log(root)
    while log.segments.active.size < 60 * MIB:
        log.append([make_batch(RECORDS_PER_BATCH)], 0, 0)
    end_offset = log.end_offset
    log.abandon()  # nothing of this was synced: all of it is scanned
    unclean_ms = open_ms(root, end_offset)
    for path in (root / DIRECTORY).glob("*index"):
        path.unlink()
    lost_ms = open_ms(root, end_offset)
    return [
        row("recovery of 1 GiB, clean stop", clean_ms, "ms", None, "no scan"),
        row("recovery of 1 GiB, killed with 60 MiB unsynced", unclean_ms, "ms", None, "scans one segment"),
        row("recovery of 1 GiB, all indexes lost", lost_ms, "ms", raw_ms, None, is_cost=True),
    ]


def open_ms(root: Path, end_offset: int) -> float:
    started = time.perf_counter()
    log = open_log(root)
    taken = (time.perf_counter() - started) * 1000
    assert log.end_offset == end_offset
    log.abandon()
    return taken


MEMORY_PROGRAM = """
import json, os, sys
from pathlib import Path
from benchmarks.bench_storage import open_log, read_all
from goqueue.cli.bench.process import Process

def resident():
    return Process(os.getpid()).memory().rss_bytes

before = resident()
log = open_log(Path(sys.argv[1]))
opened = resident()
read_all(log)
print(json.dumps([before, opened, resident()]))
"""


def measure_memory(root: Path) -> list[Row]:
    """The baseline is the same process before it opens the log."""
    before, opened, read = (size / MIB for size in told_by(MEMORY_PROGRAM, str(root)))
    return [
        row("resident memory, 1 GiB log open", opened, "MiB", before, "< 64 MiB", is_cost=True),
        row("resident memory, 1 GiB log open and read", read, "MiB", before, "< 64 MiB", is_cost=True),
    ]

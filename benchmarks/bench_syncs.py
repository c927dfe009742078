"""What a round of small appends costs until all of them are durable, on a real disk with the commit threads of a node:
one log, a few, many. Beside it one `fdatasync` of one file after the other.
"""

import asyncio
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

from goqueue.records.batch import Batch, check_batch
from goqueue.records.build import build_batch
from goqueue.storage import committer
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.real_disk import RealDisk

LOGS = (1, 16, 200)
ROUNDS = {1: 200, 16: 60, 200: 8}

Row = dict[str, object]


def run() -> list[Row]:
    return [row for logs in LOGS for row in asyncio.run(_measure(logs))]


def _batch() -> Batch:
    return check_batch(memoryview(build_batch([(1000, None, b"x" * 100, [])])))


async def _measure(count: int) -> list[Row]:
    loop = asyncio.get_running_loop()

    def deliver(call: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(call)

    threads = committer.CommitThreads(deliver)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        disk = RealDisk(Path(place))
        logs = [Log.open(disk, f"logs/{number}/0", LogOptions(), 0) for number in range(count)]
        for log in logs:
            threads.committer.add(log)
        for log in logs:  # the first append allocates
            log.append([_batch()], 1, 0)
        await _all_synced(logs)
        times, cpu = [], process_time()
        for _ in range(ROUNDS[count]):
            started = perf_counter()
            for log in logs:
                log.append([_batch()], 1, 0)
            await _all_synced(logs)
            times.append(perf_counter() - started)
        cpu_us = (process_time() - cpu) * 1e6 / ROUNDS[count] / count
        assert all(log.synced_offset == ROUNDS[count] + 1 for log in logs)
        raw_ms = _raw_ms(Path(place), count)
        threads.stop()
        for log in logs:
            log.close()
    median_ms = statistics.median(times) * 1000
    name = f"{count} log{'s' if count > 1 else ''}"
    return [
        _row(f"{name}: append and sync, median", median_ms, "ms", raw_ms),
        _row(f"{name}: CPU of each", cpu_us, "us", None),
    ]


def _row(name: str, value: float, unit: str, baseline: float | None) -> Row:
    ratio = None if baseline is None else value / baseline
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio, "aim": None}


async def _all_synced(logs: list[Log]) -> None:
    done = asyncio.Event()

    remaining = len(logs)

    def one(log: Log) -> None:
        nonlocal remaining
        if log.synced_offset == log.end_offset:
            remaining -= 1
            if not remaining:
                done.set()

    for log in logs:
        log.on_synced = one
    await done.wait()


def _raw_ms(place: Path, count: int) -> float:
    files = [os.open(place / f"raw-{number}", os.O_CREAT | os.O_WRONLY) for number in range(count)]
    for file in files:
        os.posix_fallocate(file, 0, 65536)
        os.fdatasync(file)
    times = []
    for number in range(ROUNDS[count]):
        started = perf_counter()
        for file in files:
            os.pwrite(file, b"x" * 170, number * 170)
            os.fdatasync(file)
        times.append(perf_counter() - started)
    for file in files:
        os.close(file)
    return statistics.median(times) * 1000

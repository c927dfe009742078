"""What a round of small appends costs until all of them are durable, on a real disk with the commit threads of a node:
one log, a few, many. Beside it one `fdatasync` of one file after the other.
"""

import asyncio
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.harness import Row, row, workplace
from goqueue.cli.bench.raw import SyncedFile
from goqueue.records.batch import Batch, check_batch
from goqueue.records.build import build_batch
from goqueue.storage import committer
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.real_disk import RealDisk

LOGS = (1, 16, 200)
BATCH_BYTES = 170
RAW_FILE_BYTES = 64 * 1024
ROUNDS = {1: 200, 16: 60, 200: 8}


def run() -> list[Row]:
    return [made for logs in LOGS for made in asyncio.run(_measure(logs))]


def _batch() -> Batch:
    return check_batch(memoryview(build_batch([(1000, None, b"x" * 100, [])])))


async def _measure(count: int) -> list[Row]:
    loop = asyncio.get_running_loop()

    def deliver(call: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(call)

    threads = committer.CommitThreads(deliver)
    with workplace() as place:
        disk = RealDisk(place)
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
        raw_ms = _raw_ms(place, count)
        threads.stop()
        for log in logs:
            log.close()
    median_ms = statistics.median(times) * 1000
    name = f"{count} log{'s' if count > 1 else ''}"
    return [
        row(f"{name}: append and sync, median", median_ms, "ms", raw_ms),
        row(f"{name}: CPU of each", cpu_us, "us", None),
    ]


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
    files = [SyncedFile(place, BATCH_BYTES, RAW_FILE_BYTES) for _ in range(count)]
    times = [sum(file.write_s() for file in files) for _ in range(ROUNDS[count])]
    for file in files:
        file.close()
    return statistics.median(times) * 1000

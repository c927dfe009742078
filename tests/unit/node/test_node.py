"""A node on a disk in memory: what it finds, what it looks after, and that it leaves nothing behind."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

import goqueue.node.node
from goqueue.model.errors import DataDirectoryLocked, LogPoisoned
from goqueue.node.node import Compact, Node
from goqueue.node.settings import Settings
from goqueue.storage import compaction
from goqueue.storage.compaction import Plan
from goqueue.storage.options import Cleanup, LogOptions
from goqueue.storage.swap import Manifest
from goqueue.testing import MemoryDisk
from tests.directories import open_directory
from tests.logs import append, batch, stored_batches

NOW_MS = 1_000_000_000_000
DAY_MS = 86_400_000
RESTLESS = Settings(maintenance_interval_ms=1)


@dataclass(frozen=True, kw_only=True)
class CompactingSettings(Settings):
    """No setting of a node makes every log compact; topics will choose that for themselves."""

    def log_options(self) -> LogOptions:
        return LogOptions(cleanup=Cleanup.COMPACT)


async def never(plan: Plan) -> Manifest | None:
    raise AssertionError(f"{plan.directory} should not be compacted")


def fill(disk: MemoryDisk, logs: dict[tuple[str, int], int]) -> None:
    directory = open_directory(disk, NOW_MS)
    for (topic, partition), messages in logs.items():
        append(directory.create_log(topic, partition, NOW_MS), batch(*[b"x"] * messages, timestamp=NOW_MS))
    directory.close()


def stop_at_call(number: int, stop: asyncio.Event, now_ms: int) -> Callable[[], int]:
    """A clock that ends the run when it is read for the `number`th time."""
    calls = 0

    def clock() -> int:
        nonlocal calls
        calls += 1
        if calls == number:
            stop.set()
        return now_ms

    return clock


def run(node: Node, stop: asyncio.Event) -> None:
    async def whole_life() -> None:
        await node.open()
        try:
            async with asyncio.timeout(30):
                await node.run(stop)
        finally:
            await node.close()

    asyncio.run(whole_life())


def test_a_start_counts_what_is_there_and_a_stop_gives_it_back() -> None:
    disk = MemoryDisk()
    fill(disk, {("orders", 0): 3, ("orders", 1): 4, ("clicks", 0): 5})

    async def open_and_close() -> None:
        node = Node(Settings(), disk, compact=never, now_ms=lambda: NOW_MS)
        opened = await node.open()
        assert (opened.logs, opened.failed_logs, opened.messages) == (3, 0, 12)
        await node.close()
        await node.close()

    asyncio.run(open_and_close())
    directory = open_directory(disk, NOW_MS)
    assert directory.report == []
    directory.close()


def test_a_second_node_is_refused_and_leaves_the_first_and_no_thread_behind() -> None:
    disk = MemoryDisk()

    async def open_both() -> None:
        first = Node(Settings(), disk, compact=never)
        await first.open()
        threads = set(threading.enumerate())
        with pytest.raises(DataDirectoryLocked):
            await Node(Settings(), disk, compact=never).open()
        assert {thread for thread in set(threading.enumerate()) - threads if thread.name == "goqueue-commit"} == set()
        with pytest.raises(DataDirectoryLocked):
            disk.lock("lock")
        await first.close()
        disk.lock("lock").release()

    asyncio.run(open_both())


def test_old_records_go_while_the_node_runs() -> None:
    disk = MemoryDisk()
    fill(disk, {("orders", 0): 3})
    stop = asyncio.Event()
    run(Node(RESTLESS, disk, compact=never, now_ms=stop_at_call(3, stop, NOW_MS + 8 * DAY_MS)), stop)
    directory = open_directory(disk, NOW_MS)
    log = directory.logs["orders", 0]
    assert (log.start_offset, log.end_offset) == (3, 3)
    directory.close()


def compacted_values(compact: Callable[[MemoryDisk, asyncio.Event], Compact]) -> list[int]:
    """Six appends of one key in six segments, then a node that looks after them. The offsets that are left."""
    disk = MemoryDisk()
    directory = open_directory(disk, NOW_MS)
    log = directory.create_log("prices", 0, NOW_MS)
    for number in range(6):
        append(log, batch(b"%d" % number, key=b"k"))
        log.roll(NOW_MS)
    directory.close()
    stop = asyncio.Event()
    settings = CompactingSettings(maintenance_interval_ms=1)
    run(Node(settings, disk, compact=compact(disk, stop), now_ms=lambda: NOW_MS), stop)
    directory = open_directory(disk, NOW_MS)
    left = [each.base_offset for each in stored_batches(directory.logs["prices", 0])]
    directory.close()
    return left


def test_logs_that_ask_for_it_are_compacted() -> None:
    def compact_once(disk: MemoryDisk, stop: asyncio.Event) -> Compact:
        async def compact(plan: Plan) -> Manifest | None:
            stop.set()
            return compaction.compact(disk, plan)

        return compact

    assert compacted_values(compact_once) == [5]


def test_a_compaction_that_fails_is_told_and_changes_nothing() -> None:
    def fail_twice(disk: MemoryDisk, stop: asyncio.Event) -> Compact:
        calls = []

        async def compact(plan: Plan) -> Manifest | None:
            calls.append(plan)
            if len(calls) == 2:
                stop.set()
            raise LogPoisoned("no luck")

        return compact

    with capture_logs() as events:
        assert compacted_values(fail_twice) == [0, 1, 2, 3, 4, 5]
    assert [event["log"] for event in events if event["event"] == "compaction failed"] == ["logs/prices/0"] * 2


def test_a_crash_is_told_with_what_it_cost() -> None:
    disk = MemoryDisk()
    directory = open_directory(disk, NOW_MS)
    append(directory.create_log("orders", 0, NOW_MS), batch(b"x"))
    directory.logs["orders", 0].sync()

    async def open_after_crash() -> None:
        node = Node(Settings(), disk.crashed(lost=disk.unsynced()), compact=never)
        opened = await node.open()
        assert (opened.logs, opened.messages) == (1, 1)
        await node.close()

    with capture_logs() as events:
        asyncio.run(open_after_crash())
    told = [event for event in events if event["event"] == "recovered log"]
    assert [(event["log"], event["log_level"], event["damaged_batches"]) for event in told] == [
        ("logs/orders/0", "info", 0)
    ]
    assert told[0]["scanned_bytes"] > 0


def test_a_long_recovery_shows_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    progress_shown = threading.Event()

    class SlowDisk(MemoryDisk):
        def make_directory(self, path: str) -> None:
            assert progress_shown.wait(timeout=30)
            super().make_directory(path)

    class Listener:
        def info(self, event: str, **fields: object) -> None:
            assert event == "still recovering"
            progress_shown.set()

    monkeypatch.setattr(goqueue.node.node, "PROGRESS_INTERVAL_S", 0.001)
    monkeypatch.setattr(goqueue.node.node, "events", Listener())

    async def open_slowly() -> None:
        node = Node(Settings(), SlowDisk(), compact=never)
        await node.open()
        await node.close()

    asyncio.run(open_slowly())

"""One node: it owns a data directory from its start to its stop, and looks after it in between.

The logs belong to the event loop's thread. Only opening and closing run elsewhere, when nobody else can use a log, so
that signals are answered meanwhile.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from goqueue.model.errors import GoQueueError
from goqueue.node.settings import Settings
from goqueue.storage import compaction
from goqueue.storage.committer import CommitThread
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.disk import Disk
from goqueue.storage.log import Log
from goqueue.storage.recovery import RecoveryReport
from goqueue.storage.swap import Manifest
from goqueue.telemetry.logs import get_logger

PROGRESS_INTERVAL_S = 5.0

Compact = Callable[[compaction.Plan], Awaitable[Manifest | None]]
"""Where compactions run: in a process of their own for a real node, in place for a test."""

events = get_logger("node")


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Opened(NamedTuple):
    """What a start found, in the numbers that a person asks for."""

    logs: int
    failed_logs: int
    messages: int
    """Counted by offsets: where compaction left gaps there are fewer."""
    seconds: float


class Node:
    """`open`, `run` until it is time to stop, `close`."""

    def __init__(
        self, settings: Settings, disk: Disk, *, compact: Compact, now_ms: Callable[[], int] = wall_clock_ms
    ) -> None:
        self._settings = settings
        self._disk = disk
        self._compact = compact
        self._now_ms = now_ms
        self._commits: CommitThread | None = None
        self._directory: DataDirectory | None = None

    async def open(self) -> Opened:
        """Take the data directory and recover what is in it; DataDirectoryLocked or OSError if that cannot be."""
        loop = asyncio.get_running_loop()
        started = loop.time()

        def deliver(finish: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(finish)

        commits = self._commits = CommitThread(deliver)
        opening = loop.run_in_executor(None, self._open_directory, commits)
        try:
            while not (await asyncio.wait({opening}, timeout=PROGRESS_INTERVAL_S))[0]:
                events.info("still recovering", seconds=round(loop.time() - started, 1))
            directory = self._directory = opening.result()
        except BaseException:
            await self.close()
            raise
        for report in directory.report:
            _tell(report)
        return Opened(
            logs=len(directory.logs),
            failed_logs=len(directory.failed),
            messages=sum(log.end_offset - log.start_offset for log in directory.logs.values()),
            seconds=round(loop.time() - started, 3),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Look after the data directory until `stop` is set."""
        directory = self._directory
        assert directory is not None, "run follows open"
        async with asyncio.TaskGroup() as tasks:
            upkeep = tasks.create_task(self._keep_up(directory))
            await stop.wait()
            upkeep.cancel()

    async def close(self) -> None:
        """Sync everything and give the data directory back. Closing twice is fine."""
        commits, self._commits = self._commits, None
        directory, self._directory = self._directory, None
        if commits is not None:
            await asyncio.to_thread(commits.stop)
        if directory is not None:
            await asyncio.to_thread(directory.close)

    def _open_directory(self, commits: CommitThread) -> DataDirectory:
        self._disk.make_directory("")
        defaults = self._settings.log_options()
        return DataDirectory.open(self._disk, defaults=defaults, committer=commits.committer, now_ms=self._now_ms())

    async def _keep_up(self, directory: DataDirectory) -> None:
        while True:
            await asyncio.sleep(self._settings.maintenance_interval_ms / 1000)
            directory.maintain(self._now_ms())
            for log in list(directory.logs.values()):
                await self._compact_log(log)

    async def _compact_log(self, log: Log) -> None:
        """A log that fails here takes only itself out of service."""
        if not log.options.compacts or log.failure is not None:
            return
        try:
            plan = compaction.plan(log, self._now_ms())
            manifest = await self._compact(plan) if plan else None
            if manifest and compaction.install(log, manifest):
                events.info("compacted", log=log.directory, segments=len(manifest.replacements))
        except GoQueueError as error:
            events.error("compaction failed", log=log.directory, exc_info=error)


def _tell(report: RecoveryReport) -> None:
    say = events.warning if report.damage else events.info
    say(
        "recovered log",
        log=report.log,
        scanned_bytes=report.scanned_bytes,
        truncated_bytes=report.truncated_bytes,
        damaged_batches=len(report.damage),
        notes=report.notes,
    )

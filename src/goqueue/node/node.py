"""One node: it owns a data directory from its start to its stop, serves it through its doors, and looks after it in
between.

Everything belongs to the event loop's thread, but for the syncs, which run in the commit thread, and the snapshots,
which are written aside.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from goqueue.doors.kafka.door import KafkaDoor
from goqueue.model.errors import GoQueueError
from goqueue.node.assembly import Assembly
from goqueue.node.settings import Settings
from goqueue.node.values import Address
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import AsideThread
from goqueue.runtime.clock import LoopClock
from goqueue.storage import compaction
from goqueue.storage.committer import CommitThread
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.disk import Disk
from goqueue.storage.log import Log
from goqueue.storage.recovery import RecoveryReport
from goqueue.storage.swap import Manifest
from goqueue.telemetry.logs import get_logger

Compact = Callable[[compaction.Plan], Awaitable[Manifest | None]]
"""Where compactions run: in a process of their own for a real node, in place for a test."""

DRAIN_TURNS = 3
"""Of the event loop: a sync is told to those who wait, their replies are gathered, and are written."""

events = get_logger("node")


class Opened(NamedTuple):
    """What a start found, in the numbers that a person asks for."""

    topics: int
    partitions: int
    failed: int
    messages: int
    """Counted by offsets: where compaction left gaps there are fewer."""
    seconds: float
    kafka: Address


class Node:
    """`open`, `run` until it is time to stop, `close`."""

    def __init__(self, settings: Settings, disk: Disk, *, compact: Compact) -> None:
        self._settings = settings
        self._disk = disk
        self._compact = compact
        self._clock: LoopClock | None = None
        self._commits: CommitThread | None = None
        self._aside: AsideThread | None = None
        self._directory: DataDirectory | None = None
        self._replicas: Replicas | None = None
        self._assembly: Assembly | None = None
        self._door: KafkaDoor | None = None

    async def open(self) -> Opened:
        """Take the data directory, recover what is in it, open the doors; DataDirectoryLocked or OSError if that
        cannot be.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            assembly = self._assemble(loop)
            self._door = KafkaDoor(assembly.broker)
            address = Address(*await self._door.open(*self._settings.kafka, self._settings.kafka_advertised))
        except BaseException:
            await self.close()
            raise
        assert self._directory is not None
        assert self._replicas is not None
        for report in self._directory.report:
            _tell(report)
        return Opened(
            topics=len(assembly.broker.topics.image.topics),
            partitions=sum(topic.partitions for topic in assembly.broker.topics.image.topics.values()),
            failed=len(self._replicas.failed),
            messages=sum(replica.end_offset - replica.start_offset for replica in self._replicas),
            seconds=round(loop.time() - started, 3),
            kafka=address,
        )

    def _assemble(self, loop: asyncio.AbstractEventLoop) -> Assembly:
        def deliver(finish: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(finish)

        settings = self._settings
        self._disk.make_directory("")
        self._clock = LoopClock()
        self._commits = CommitThread(deliver)
        self._aside = AsideThread(loop)
        self._directory = DataDirectory.open(self._disk, committer=self._commits.committer)
        self._replicas = Replicas(
            self._directory,
            defaults=settings.topic_defaults(),
            disk_reserve_bytes=settings.disk_reserve_bytes,
            sync_interval_ms=settings.sync_interval_ms,
            defer=self._clock.call_soon,
        )
        self._assembly = Assembly(
            self._replicas,
            self._clock,
            settings.node_id,
            settings.default_partitions,
            creates_topics=settings.auto_create_topics == "on",
            aside=self._aside,
        )
        return self._assembly

    async def run(self, stop: asyncio.Event) -> None:
        """Look after the data directory until `stop` is set."""
        async with asyncio.TaskGroup() as tasks:
            upkeep = tasks.create_task(self._keep_up())
            await stop.wait()
            upkeep.cancel()

    async def close(self) -> None:
        """Close the doors, sync everything and give the data directory back. Closing twice is fine."""
        if self._door is not None:
            self._door.stop_reading()
            if self._replicas is not None:
                self._replicas.sync()
            for _ in range(DRAIN_TURNS):
                await asyncio.sleep(0)
            await self._door.close()
        if self._aside is not None:
            await asyncio.to_thread(self._aside.stop)
        if self._assembly is not None:
            self._assembly.stop()
        if self._commits is not None:
            await asyncio.to_thread(self._commits.stop)
        if self._replicas is not None:
            self._replicas.close()
        elif self._directory is not None:
            self._directory.close()
        self._door = self._assembly = self._commits = self._aside = self._replicas = self._directory = None

    async def _keep_up(self) -> None:
        assert self._replicas is not None
        assert self._directory is not None
        assert self._clock is not None
        while True:
            await asyncio.sleep(self._settings.maintenance_interval_ms / 1000)
            self._replicas.maintain(self._clock.now_ms())
            for log in list(self._directory.logs.values()):
                await self._compact_log(log, self._clock.now_ms())

    async def _compact_log(self, log: Log, now_ms: int) -> None:
        """A log that fails here takes only itself out of service."""
        if not log.options.compacts or log.failure is not None:
            return
        try:
            plan = compaction.plan(log, now_ms)
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

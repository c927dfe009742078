"""When logs are compacted: every now and then if it is worth it, or at once if somebody asks. Never twice at a time."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from goqueue.model.codes import Code
from goqueue.model.compaction import CompactResult
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import SettledClock
from goqueue.storage import compaction
from goqueue.storage.log import Log
from goqueue.storage.swap import Manifest, sweep
from goqueue.telemetry.logs import get_logger

RunPlan: TypeAlias = Callable[[compaction.Plan], Awaitable[Manifest | None]]
"""Where compactions run: in a process of their own for a real node, in place for a test."""

events = get_logger("node")


class Compactions:
    def __init__(self, replicas: Replicas, clock: SettledClock, run: RunPlan) -> None:
        self._replicas = replicas
        self._clock = clock
        self._run = run
        self._under_way: set[str] = set()

    async def keep_up(self, log: Log) -> None:
        """If it is worth it. A log that fails here takes only itself out of service."""
        if not log.options.compacts or log.failure is not None or log.directory in self._under_way:
            return
        try:
            with self._alone(log):
                now_ms = self._clock.now_ms()
                compaction.seal_overdue(log, now_ms)
                plan = compaction.plan(log, now_ms)
                manifest = await self._run(plan) if plan else None
                if manifest and compaction.install(log, manifest):
                    events.info("compacted", log=log.directory, segments=len(manifest.replacements))
        except (GoQueueError, OSError) as error:  # the system may have no room for one more process or file
            events.error("compaction failed", log=log.directory, exc_info=error)

    async def now(self, topic: str, partition: int, is_dry_run: bool) -> CompactResult:
        """Everything that was published by now. A dry run does the work and throws it away: so its numbers are true."""
        replica = self._replicas.get(topic, partition)
        if replica is None or replica.failure is not None:
            raise Refused(Code.KAFKA_STORAGE_ERROR, f"{topic}/{partition} is out of service")
        log = replica.log
        if not log.options.compacts:
            raise Refused(Code.INVALID_CONFIG, f"cleanup.policy of {topic!r} does not say compact")
        with self._alone(log):
            try:
                return await self._compact(log, is_dry_run)
            except OSError as error:  # the log itself is as it was
                raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error

    async def _compact(self, log: Log, is_dry_run: bool) -> CompactResult:
        log.roll(self._clock.now_ms())
        log.sync()
        ratio = compaction.dirty_ratio(log, self._clock.now_ms())
        plan = compaction.plan(log, self._clock.now_ms(), is_asked_for=True)
        manifest = await self._run(plan) if plan else None
        if manifest is None:
            return CompactResult(is_done=False, dirty_ratio=ratio)
        is_done = False
        if is_dry_run:
            sweep(log.disk, log.directory)
        else:
            is_done = compaction.install(log, manifest)
        return CompactResult(is_done, ratio, manifest.records_before, manifest.records_after)

    @contextmanager
    def _alone(self, log: Log) -> Iterator[None]:
        if log.directory in self._under_way:
            raise Refused(Code.INVALID_REQUEST, "it is being compacted already")
        self._under_way.add(log.directory)
        try:
            yield
        finally:
            self._under_way.discard(log.directory)

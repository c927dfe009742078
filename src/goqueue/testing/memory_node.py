"""All of one node but its threads and its doors, on a disk in memory."""

from collections.abc import Callable
from functools import partial

from goqueue.broker.broker import Broker
from goqueue.machines.groups import commands
from goqueue.model.errors import GoQueueError
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.topics import TopicOptions
from goqueue.node.assembly import Assembly
from goqueue.node.compactions import Compactions
from goqueue.node.tracing import TracingOptions
from goqueue.ports.dice import Dice, system_dice
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock, SettledClock
from goqueue.storage import compaction
from goqueue.storage.committer import Committer
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.log import Log
from goqueue.storage.options import Durability
from goqueue.storage.swap import Manifest
from goqueue.telemetry.logs import get_logger
from goqueue.testing.memory_disk import MemoryDisk

NODE_ID = 1
DEFAULT_PARTITIONS = 3
SYNC_INTERVAL_MS = 1000

events = get_logger("testing")


class PromptCommitter(Committer):
    """Syncs without a thread: what was written in one turn is synced in the next, or after as long as a slow disk
    takes.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(lambda finish: finish(), lambda: int(clock.monotonic_s() * 1000))
        self._clock = clock
        self._is_due = False
        self.sync_ms = 0
        """How long a sync takes."""

    def add(self, log: Log) -> None:
        super().add(log)
        log.on_dirty = partial(self._note, log.on_dirty)

    def _note(self, want_sync: Callable[[Log], None], log: Log) -> None:
        want_sync(log)
        if log.options.durability is not Durability.DISK:
            self._clock.call_after(log.options.sync_interval_ms, self._commit)
        elif not self._is_due:
            self._is_due = True
            sync_ms = self.next_sync_ms()
            if sync_ms:
                self._clock.call_after(sync_ms, self._commit)
            else:
                self._clock.call_soon(self._commit)

    def next_sync_ms(self) -> float:
        """How long the next one takes."""
        return self.sync_ms

    def _taken_s(self, started_s: float) -> float:  # noqa: ARG002  time is virtual
        return self.sync_ms / 1000

    def _commit(self) -> None:
        self._is_due = False
        self.run_once()


class MemoryNode:
    """Replicas at first; a broker once it is assembled."""

    tracing = TracingOptions()
    """Journeys are kept in memory only: so nothing is to be done while a test lets days pass."""

    group_options = commands.GroupOptions()

    creates_topics = True
    """Of the broker that is assembled: it stays so while that runs."""

    def __init__(self, disk: MemoryDisk, clock: Clock, committer: Committer, dice: Dice | None = None) -> None:
        self.disk = disk
        self.clock = clock
        self._settled = SettledClock(clock)
        self.committer = committer
        self.dice = dice or system_dice()
        self.directory = DataDirectory.open(disk, committer=committer)
        self.replicas = Replicas(
            self.directory,
            defaults=TopicOptions(),
            disk_reserve_bytes=0,
            sync_interval_ms=SYNC_INTERVAL_MS,
            defer=committer.after_telling(clock.call_soon),
        )
        self._assembly: Assembly | None = None

    def assemble(self) -> None:
        compactions = Compactions(self.replicas, self._settled, self._compact_in_place)
        self._assembly = Assembly(
            self.replicas,
            self.clock,
            self.dice,
            NODE_ID,
            PartitionLimits(default=DEFAULT_PARTITIONS),
            creates_topics=self.creates_topics,
            compact=compactions.now,
            tracing=self.tracing,
            group_options=self.group_options,
        )

    @property
    def broker(self) -> Broker:
        return self.assembly.broker

    @property
    def assembly(self) -> Assembly:
        assert self._assembly is not None
        return self._assembly

    def keep_up(self) -> None:
        """What a node does every now and then: retention and compaction."""
        now_ms = self._settled.now_ms()
        self.replicas.maintain(now_ms, self._settled.monotonic_s())
        for log in list(self.directory.logs.values()):
            if log.options.compacts and log.failure is None:
                self._compact(log, now_ms)

    async def _compact_in_place(self, plan: compaction.Plan) -> Manifest | None:
        return compaction.compact(self.disk, plan)

    def _compact(self, log: Log, now_ms: int) -> None:
        try:
            compaction.seal_overdue(log, now_ms)
            plan = compaction.plan(log, now_ms)
            manifest = compaction.compact(self.disk, plan) if plan else None
            if manifest:
                compaction.install(log, manifest)
        except (OSError, GoQueueError) as error:
            events.error("compaction failed", log=log.directory, reason=str(error))

    def close(self) -> None:
        """A clean stop. What it asks the clock for may still be run."""
        if self._assembly is not None:
            self._assembly.stop()
        self.replicas.close()

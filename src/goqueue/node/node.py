"""One node: it owns a data directory from its start to its stop, serves it through its doors, and looks after it in
between.

Everything belongs to the event loop's thread, but for the syncs, which run in the commit threads, and what is done
aside: snapshots are written, and new partitions made.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.accounts.sealing import Sealing
from goqueue.broker.broker import Broker
from goqueue.broker.gate import Gate
from goqueue.broker.metrics.export import MetricsExport
from goqueue.broker.topics.topics import Topics
from goqueue.cluster.watermark_saving import WatermarkSaving
from goqueue.machines.groups import commands
from goqueue.model.listener import Api
from goqueue.model.secret import Secret
from goqueue.node.assembly import Assembly
from goqueue.node.auditing import open_audit
from goqueue.node.bootstrap import Bootstrap, FirstAdmin, FirstKey
from goqueue.node.certificates import Certificates
from goqueue.node.compactions import Compactions, RunPlan
from goqueue.node.doors import Doors, opening
from goqueue.node.leftovers import clear_leftovers
from goqueue.node.listeners import plans
from goqueue.node.master_key import read_master_keys
from goqueue.node.membership import Membership
from goqueue.node.metrics import metrics_export, metrics_options
from goqueue.node.oidc import Oidc
from goqueue.node.open_files import partition_limits
from goqueue.node.peering import Peering
from goqueue.node.ports import AsideWorker, Commits, DiskCrew, NodeClock, NodePorts, RealPorts
from goqueue.node.recovered import tell_recovered
from goqueue.node.settings import Settings
from goqueue.node.shown_settings import shown_settings
from goqueue.node.starting import unless_stopped
from goqueue.node.tracing import tracing_options
from goqueue.node.values import Address
from goqueue.replica.replicas import Replicas
from goqueue.replica.saved_watermarks import SavedWatermarks
from goqueue.runtime.clock import SettledClock
from goqueue.storage.data_directory import DataDirectory, OpeningStopped
from goqueue.storage.disk import Disk

DRAIN_TURNS = 3
"""Of the event loop: a sync is told to those who wait, their replies are gathered, and are written."""


class Opened(NamedTuple):
    """What a start found, in the numbers that a person asks for."""

    topics: int
    partitions: int
    failed: int
    messages: int
    """Counted by offsets: where compaction left gaps there are fewer."""
    seconds: float
    addresses: Mapping[Api, list[Address]]

    @property
    def kafka(self) -> Address:
        return self.addresses[Api.KAFKA][0]

    @property
    def http(self) -> Address:
        return self.addresses[Api.HTTP][0]

    @property
    def grpc(self) -> Address | None:
        return self.addresses.get(Api.GRPC, [None])[0]

    @property
    def doors(self) -> dict[str, str]:
        """Where each is, by its name; of several listeners, the first."""
        return {api.value: str(found[0]) for api, found in self.addresses.items()}


class Node:
    """`open`, `run` until it is time to stop, `close`."""

    def __init__(
        self,
        settings: Settings,
        disk: Disk,
        *,
        compact: RunPlan,
        ports: NodePorts | None = None,
        first: FirstAdmin | None = None,
    ) -> None:
        self._settings = settings
        self._first = first or FirstAdmin()
        self.first_key: FirstKey | None = None
        """Where the key of the first admin is, if this start made one."""
        self._disk = disk
        self._compact = compact
        self._ports = ports or RealPorts()
        self._clock: NodeClock | None = None
        self._settled: SettledClock | None = None
        self._commits: Commits | None = None
        self._aside: AsideWorker | None = None
        self._thinking: AsideWorker | None = None
        self._crew: DiskCrew | None = None
        self._directory: DataDirectory | None = None
        self._replicas: Replicas | None = None
        self._compactions: Compactions | None = None
        self._assembly: Assembly | None = None
        self._certificates = Certificates(settings.tls_principal_rules, shares_ports=self._ports.shares_ports)
        self._doors: Doors | None = None
        self._metrics_export: MetricsExport | None = None
        self._membership: Membership | None = None
        self._peering: Peering | None = None
        self._oidc: Oidc | None = None
        self._watermarks: WatermarkSaving | None = None

    async def open(self, stop: asyncio.Event | None = None, is_stopping: Callable[[], bool] = lambda: False) -> Opened:
        """Take the data directory, recover what is in it, open the doors; DataDirectoryLocked, OSError or DoorStaysShut
        if that cannot be. `stop`: once it is set, a node of a cluster opens no more logs, nor waits for etcd.
        `is_stopping`: a node of its own, whose logs are opened before the loop goes on, asks this before each of them.
        OpeningStopped: it was stopped before it served.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            self._prepare()
            assert self._directory is not None
            if self._settings.is_clustered:
                if not await unless_stopped(self._join(), stop := stop or asyncio.Event()):
                    raise OpeningStopped("before it had joined its cluster")
            else:
                self._directory.begin_start(is_stopping)
            assembly = self._assemble()
            self._directory.end_start()
            addresses = await self._open_doors(assembly.broker)
            self._metrics_export = metrics_export(self._settings, assembly.broker)
            assert self._replicas is not None
            if self._membership is not None:
                self._membership.serve(assembly.broker.cluster)
                if await _all_opened(assembly.broker.topics, stop or asyncio.Event()):
                    clear_leftovers(self._directory, self._replicas, self._membership.controller)
                    assert self._watermarks is not None
                    self._watermarks.all_opened()
        except BaseException:
            await self.close()
            raise
        for report in self._directory.report:
            tell_recovered(report)
        return Opened(
            topics=len(assembly.broker.topics.image.topics),
            partitions=sum(topic.partitions for topic in assembly.broker.topics.image.topics.values()),
            failed=len(self._replicas.failed),
            messages=sum(replica.end_offset - replica.start_offset for replica in self._replicas),
            seconds=round(loop.time() - started, 3),
            addresses=addresses,
        )

    async def _open_doors(self, broker: Broker) -> dict[Api, list[Address]]:
        gate = self._gate(broker)
        if self._first.is_made_here and any(plan.listener.requires_authentication for plan in plans(self._settings)):
            assert self._assembly is not None
            about = self._first.key, Secret(self._assembly.secret), self._first.home
            bootstrap = Bootstrap(self._settings, broker.accounts, broker.clock.now_ms(), *about)
            self.first_key = await bootstrap.run()
        self._certificates.tell(broker.metrics.meters)
        self._doors = Doors(self._settings, self._ports, broker, gate, self._certificates)
        if self._peering is not None:
            with opening("peer", self._settings.peer):
                await self._peering.open(self._settings.peer)
        return await self._doors.open()

    def _gate(self, broker: Broker) -> Gate:
        assert self._assembly is not None
        assert self._thinking is not None
        broker.accounts.aside = self._thinking
        self._oidc = Oidc(self._settings, self._ports.aside, broker.clock)
        tokens = self._oidc.open()
        logins = Logins(broker.accounts, broker.clock, self._ports.dice, self._assembly.secret, tokens)
        self._oidc.open_code_flow(tokens, logins, self._ports.dice)
        peering, shares_ports = self._peering, self._ports.shares_ports
        forwarding = None if peering is None else peering.spread(broker, shares_ports=shares_ports)
        age_ms, is_closed = self._settings.access_age_ms_max, self._settings.is_closed
        return Gate(broker, forwarding=forwarding, logins=logins, is_closed=is_closed, access_age_ms_max=age_ms)

    def _read_master_key(self) -> None:
        settings = self._settings
        if settings.master_key_file is not None:
            assert self._assembly is not None
            masters = read_master_keys(settings.master_key_file, settings.data_dir)
            self._assembly.broker.accounts.sealing = Sealing(self._ports.dice, *masters)

    async def _join(self) -> None:
        assert self._clock is not None
        assert self._directory is not None
        settings = self._settings
        limits = partition_limits(settings.partitions_max, settings.default_partitions, settings.retention_ms)
        self._membership = Membership(settings, self._ports, self._clock, self._directory, limits)
        self._membership.replicas = self._replicas
        controller, network = self._membership.controller, self._ports.network
        self._peering = Peering(settings, controller, network, self._clock, self._ports.dice, self._certificates)
        await self._membership.join()
        assert self._replicas is not None
        assert self._aside is not None
        saved = SavedWatermarks(self._disk, self._ports.boot_id)
        self._watermarks = WatermarkSaving(self._replicas, saved, self._clock, self._aside)
        self._watermarks.start()
        replication = self._membership.take_part(self._replicas, self._peering.peers)
        self._peering.door.handlers.update(replication.handlers)

    def _prepare(self) -> None:
        """All that the data directory is reached by."""
        settings, ports = self._settings, self._ports
        self._disk.make_directory("")
        self._clock = ports.clock()
        self._settled = SettledClock(self._clock)
        self._commits = ports.commits()
        self._aside, self._thinking = ports.aside("goqueue-aside"), ports.aside("goqueue-thinking")
        self._directory = DataDirectory.open(self._disk, committer=self._commits.committer)
        self._crew = ports.crew()
        self._replicas = Replicas(
            self._directory,
            defaults=settings.topic_defaults(),
            disk_reserve_bytes=settings.disk_reserve_bytes,
            sync_interval_ms=settings.sync_interval_ms,
            defer=self._commits.committer.after_telling(self._clock.call_soon),
        )
        self._replicas.side_by_side = self._crew
        self._compactions = Compactions(self._replicas, self._settled, self._compact)

    def _assemble(self) -> Assembly:
        assert self._replicas is not None
        assert self._clock is not None
        assert self._compactions is not None
        assert self._aside is not None
        assert self._thinking is not None
        settings = self._settings
        self._assembly = Assembly(
            self._replicas,
            self._clock,
            self._ports.dice,
            settings.node_id,
            partition_limits(settings.partitions_max, settings.default_partitions, settings.retention_ms),
            creates_topics=settings.auto_create_topics == "on",
            compact=self._compactions.now,
            aside=self._aside,
            tracing=tracing_options(settings),
            metrics=metrics_options(settings),
            group_options=commands.GroupOptions(initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms),
            cluster=self._peering,
        )
        self._assembly.broker.schemas.work_aside(self._thinking)
        self._assembly.broker.publisher.turns.work_aside(self._thinking)
        self._assembly.broker = replace(
            self._assembly.broker,
            settings=shown_settings(settings),
            audit=open_audit(settings, self._replicas, self._clock, self._assembly.secret),
        )
        self._read_master_key()
        return self._assembly

    @property
    def broker(self) -> Broker:
        """Of a node that is open."""
        assert self._assembly is not None
        return self._assembly.broker

    @property
    def replicas(self) -> Replicas:
        """Likewise."""
        assert self._replicas is not None
        return self._replicas

    def look_at_certificates(self) -> None:
        """Soon: somebody says that they are new."""
        self._certificates.look_soon()

    async def run(self, stop: asyncio.Event) -> None:
        """Look after the data directory until `stop` is set."""
        assert self._assembly is not None
        self._assembly.loop_watch.start()
        if self._metrics_export is not None:
            self._metrics_export.start()
        async with asyncio.TaskGroup() as tasks:
            upkeep = [tasks.create_task(self._keep_up()), tasks.create_task(self._certificates.keep_fresh())]
            if self._membership is not None:
                upkeep.append(tasks.create_task(self._membership.keep_balanced()))
                upkeep.append(tasks.create_task(self._membership.keep_noting()))
            await stop.wait()
            self._assembly.broker.health.is_stopping = True
            for task in upkeep:
                task.cancel()
            if self._membership is not None:
                if self._doors is not None:
                    self._doors.http.leave()
                await self._membership.drain()

    async def close(self) -> None:
        """Close the doors, sync everything and give the data directory back. Closing twice is fine."""
        doors = [] if self._doors is None else self._doors.all
        for door in doors:
            door.stop_reading()
        if self._doors is not None:
            self._doors.sqs.stop()
        if doors and self._replicas is not None:
            self._replicas.sync()
            for _ in range(DRAIN_TURNS):
                await asyncio.sleep(0)
        for door in doors:
            await door.close()
        await self._leave_cluster()
        await self._stop_thinking()
        await self._stop_working()
        if self._clock is not None:
            self._clock.stop()
        if self._commits is not None:
            await asyncio.to_thread(self._commits.stop)
        self._close_directory()
        if self._crew is not None:
            self._crew.stop()
        self._doors = self._metrics_export = None
        self._assembly = self._commits = self._aside = self._thinking = self._replicas = self._directory = None

    async def _leave_cluster(self) -> None:
        if self._watermarks is not None:
            self._watermarks.stop()
        if self._membership is not None:
            await self._membership.leave()
        if self._peering is not None:
            await self._peering.close()

    def _close_directory(self) -> None:
        if self._replicas is not None:
            if self._watermarks is not None:
                self._watermarks.leave_clean()
            self._replicas.close()
        elif self._directory is not None:
            self._directory.close()

    async def _stop_thinking(self) -> None:
        if self._assembly is not None:
            self._assembly.broker.publisher.turns.stop()
            self._assembly.broker.topics.stop_opening()  # of topics that are made meanwhile
        if self._oidc is not None:
            await self._oidc.close()
        for aside in (self._aside, self._thinking):
            if aside is not None:
                await asyncio.to_thread(aside.stop)

    async def _stop_working(self) -> None:
        """All but what writes to the disk. What is on its way to a collector gets there, if that can be done soon."""
        flushes: list[Callable[[], None]] = []
        if self._metrics_export is not None:
            self._metrics_export.stop()
            flushes.append(self._metrics_export.flush)
        if self._assembly is not None:
            self._assembly.stop()
            if self._assembly.broker.tracing.exporting is not None:
                flushes.append(self._assembly.broker.tracing.exporting.stop)
        await asyncio.gather(*map(asyncio.to_thread, flushes))

    async def _keep_up(self) -> None:
        assert self._replicas is not None
        assert self._directory is not None
        assert self._settled is not None
        assert self._compactions is not None
        while True:
            await asyncio.sleep(self._settings.maintenance_interval_ms / 1000)
            self._replicas.maintain(self._settled.now_ms(), self._settled.monotonic_s())
            for log in list(self._directory.logs.values()):
                await self._compactions.keep_up(log)


async def _all_opened(topics: Topics, stop: asyncio.Event) -> bool:
    """False: it is to stop before."""
    opened = asyncio.Event()
    topics.when_opened(opened.set)
    if await unless_stopped(opened.wait(), stop):
        return True
    topics.stop_opening()
    return False

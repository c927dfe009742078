"""The data directory of several processes, as their supervisor has it open. One that was made for another number of
processes is divided anew first.
"""

import asyncio
from contextlib import suppress

from goqueue.cluster.etcd.port import EtcdFault
from goqueue.cluster.local.shared_store import SharedStore
from goqueue.machines.entries import ENTRY_FACTS, Entries
from goqueue.model.errors import CannotJoin, DataDirectoryLocked, GoQueueError, MetadataDamaged
from goqueue.node.compactions import Compactions, RunPlan
from goqueue.node.ports import AsideWorker, Commits, NodeClock, NodePorts
from goqueue.node.processes import moves
from goqueue.node.processes.member_names import KIND, STORE, STORE_PATH, member_directory, members_of
from goqueue.node.processes.moves import NEXT
from goqueue.node.processes.redividing import redivide
from goqueue.node.settings import Settings
from goqueue.ports.dice import Dice
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import SettledClock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Ledger
from goqueue.storage.data_directory import LOCK_NAME, DataDirectory
from goqueue.storage.directory_id import load_directory_id
from goqueue.storage.disk import Disk
from goqueue.storage.format_file import refuse_newer
from goqueue.storage.inspection import inspect

GONE_S_MAX = 10.0
"""How long a start waits for members of an earlier one: they end when they see that their supervisor is gone."""
LOOK_S = 0.05


def refuse_members(disk: Disk) -> None:
    """CannotJoin: a node of a cluster is about to open what belongs to several processes."""
    if found := members_of(disk):
        raise CannotJoin(
            f"this data directory belongs to {len(found)} processes of one machine: start it with --processes, or"
            " without, and without the setting etcd"
        )


async def become_one(disk: Disk, cluster_name: str, dice: Dice, now_ms: int) -> None:
    """One process is about to open the directory: what belongs to several becomes its own. CannotJoin: it cannot."""
    if not members_of(disk) and not disk.exists(NEXT):
        return
    lock = disk.lock(LOCK_NAME)
    try:
        refuse_newer(disk)
        await former_members_ended(disk)
        redivide(disk, 1, cluster_name, dice, now_ms)
    finally:
        lock.release()


async def former_members_ended(disk: Disk) -> None:
    """Else one of them could still lead what another is about to lead."""
    waiting = set(members_of(disk))
    for _ in range(round(GONE_S_MAX / LOOK_S)):
        waiting = {number for number in waiting if _is_locked(disk, number)}
        if not waiting:
            return
        await asyncio.sleep(LOOK_S)
    number = min(waiting)
    disk.lock(f"{member_directory(number)}/{LOCK_NAME}").release()  # it says who holds it


def _is_locked(disk: Disk, number: int) -> bool:
    try:
        disk.lock(f"{member_directory(number)}/{LOCK_NAME}").release()
    except DataDirectoryLocked:
        return True
    return False


def _refuse_others(disk: Disk) -> None:
    """CannotJoin: it belongs to a cluster. MetadataDamaged: what tells which topics there are is missing."""
    if load_directory_id(disk) is not None:
        raise CannotJoin("this data directory belongs to a node of a cluster: start it with the setting etcd")
    if members_of(disk) and ((looked := inspect(disk, STORE_PATH)).is_short or not looked.has_segments):
        why = looked.words() if looked.is_short else "it is gone"
        raise MetadataDamaged(
            f"{STORE_PATH}, which tells what topics there are, is damaged: {why}. Nothing was changed. Restore the"
            " directory from a backup"
        )


class StoreGone(GoQueueError):
    """A write or sync of the store failed. Members would go on for as long as nothing changes: none of them could come
    back, no topic could be made, and nobody would see why. A start reads what is on the disk."""


class StoreDirectory:
    """`open`, and `keep_up` for as long as the store is used; then `close`."""

    def __init__(self, settings: Settings, disk: Disk, ports: NodePorts, compact: RunPlan) -> None:
        self._settings = settings
        self._disk = disk
        self._ports = ports
        self._compact = compact
        self._clock: NodeClock | None = None
        self._commits: Commits | None = None
        self._aside: AsideWorker | None = None
        self._replicas: Replicas | None = None
        self._coordinator: Coordinator[Entries] | None = None
        self._directory: DataDirectory | None = None
        self._store: SharedStore | None = None
        self._failed = asyncio.Event()
        """The ledger is out of service until it is opened anew."""

    async def open(self, processes: int) -> SharedStore:
        """CannotJoin, MetadataDamaged, DataDirectoryLocked, OSError: it cannot be used."""
        disk, ports = self._disk, self._ports
        disk.make_directory("")
        try:
            self._commits, self._clock, self._aside = ports.commits(), ports.clock(), ports.aside("goqueue-aside")
            self._directory = DataDirectory.open(disk, committer=self._commits.committer)
            await former_members_ended(disk)
            moves.finish(disk)
            _refuse_others(disk)
            redivide(disk, processes, self._settings.cluster_name, ports.dice, self._clock.now_ms())
            self._directory.note_formats()
            self._store = store = self._load(self._directory, self._clock, self._aside)
            ready: asyncio.Future[EtcdFault | None] = asyncio.get_running_loop().create_future()
            store.start(ready.set_result)
            if (fault := await ready) is not None:
                raise fault
            for number in range(1, processes + 1):
                disk.make_directory(member_directory(number))
        except BaseException:
            await self.close()
            raise
        return store

    def _load(self, directory: DataDirectory, clock: NodeClock, aside: AsideWorker) -> SharedStore:
        self._replicas = Replicas(
            directory,
            defaults=self._settings.topic_defaults(),
            disk_reserve_bytes=0,  # what keeps members alive is little, and must not wait for room
            sync_interval_ms=self._settings.sync_interval_ms,
            defer=clock.call_soon,
        )
        replica = self._replicas.open_ledger(STORE, 0, LEDGER_OPTIONS, clock.now_ms())
        ledger = Ledger(replica, KIND, ENTRY_FACTS, aside)
        self._coordinator = Coordinator(KIND, Entries, ledger, clock)
        self._coordinator.on_given_up = self._failed.set
        self._coordinator.load_now()
        return SharedStore(self._coordinator, clock)

    async def keep_up(self) -> None:
        """Retention and compaction of the ledger, until it is cancelled. StoreGone: nothing can be changed any more."""
        assert self._replicas is not None
        assert self._clock is not None
        assert self._directory is not None
        assert self._coordinator is not None
        settled = SettledClock(self._clock)
        compactions = Compactions(self._replicas, settled, self._compact)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.maintenance_interval_ms / 1000):
                    await self._failed.wait()
            if self._failed.is_set():
                raise StoreGone(f"what all processes share is out of service: {self._coordinator.failure}")
            self._replicas.maintain(settled.now_ms(), settled.monotonic_s())
            for log in list(self._directory.logs.values()):
                await compactions.keep_up(log)

    async def close(self) -> None:
        """Closing twice is fine."""
        if self._store is not None:
            self._store.close()
        if self._aside is not None:
            await asyncio.to_thread(self._aside.stop)
        if self._coordinator is not None:
            self._coordinator.stop()
        if self._clock is not None:
            self._clock.stop()
        if self._commits is not None:
            await asyncio.to_thread(self._commits.stop)
        if self._replicas is not None:
            self._replicas.close()
        elif self._directory is not None:
            self._directory.close()
        self._store = self._coordinator = self._replicas = self._directory = None
        self._clock = self._commits = self._aside = None

"""The data directory of several processes: the supervisor has its ledger at the top, as a node on its own would, and
each member a directory of its own below `members`. Whoever opens such a directory in another way is told how.
"""

import asyncio

from goqueue.cluster.etcd.port import EtcdFault
from goqueue.cluster.local.shared_store import SharedStore
from goqueue.machines.entries import ENTRY_FACTS, Entries
from goqueue.model.errors import CannotJoin, DataDirectoryLocked, MetadataDamaged
from goqueue.model.names import LEDGER_PREFIX
from goqueue.node.compactions import Compactions, RunPlan
from goqueue.node.metadata_check import METADATA
from goqueue.node.ports import AsideWorker, Commits, NodeClock, NodePorts
from goqueue.node.settings import Settings
from goqueue.records.log_files import LOGS_NAME
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import SettledClock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Ledger
from goqueue.storage.data_directory import LOCK_NAME, DataDirectory
from goqueue.storage.directory_id import load_directory_id
from goqueue.storage.disk import Disk
from goqueue.storage.inspection import inspect

KIND = "store"
STORE = f"{LEDGER_PREFIX}{KIND}"
STORE_PATH = f"{LOGS_NAME}/{STORE}/0"
MEMBERS = "members"
GONE_S_MAX = 10.0
"""How long a start waits for members of an earlier one: they end when they see that their supervisor is gone."""
LOOK_S = 0.05


def members_of(disk: Disk) -> list[int]:
    """Whose directories are there; none: it is not one of several processes."""
    return sorted(int(name) for name in disk.list(MEMBERS) if name.isascii() and name.isdigit())


def member_directory(number: int) -> str:
    return f"{MEMBERS}/{number}"


def refuse_members(disk: Disk) -> None:
    """CannotJoin: one process is about to open what belongs to several."""
    if found := members_of(disk):
        raise CannotJoin(
            f"this data directory belongs to {len(found)} processes: start it with --processes {len(found)} or more."
            " One process cannot open it, since each has topics of its own there"
        )


def refuse_others(disk: Disk, processes: int) -> None:
    """CannotJoin: it is not a directory of so many processes, nor an empty one. MetadataDamaged: it is, and what tells
    which topics there are is missing."""
    if disk.exists(f"{LOGS_NAME}/{METADATA}"):
        raise CannotJoin(
            "this data directory belongs to one process: start it without --processes. Several processes begin with an"
            " empty directory, into which topics have to be copied by clients (docs/processes.md)"
        )
    if load_directory_id(disk) is not None:
        raise CannotJoin("this data directory belongs to a node of a cluster: start it with the setting etcd")
    found = members_of(disk)
    if found and max(found) > processes:
        raise CannotJoin(
            f"this data directory belongs to {max(found)} processes: start it with --processes {max(found)} or more."
            f" With {processes}, what the others hold could not be reached"
        )
    if found and ((looked := inspect(disk, STORE_PATH)).is_short or not looked.has_segments):
        why = looked.words() if looked.is_short else "it is gone"
        raise MetadataDamaged(
            f"{STORE_PATH}, which tells what topics there are, is damaged: {why}. Nothing was changed. Restore the"
            " directory from a backup"
        )


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

    async def open(self, processes: int) -> SharedStore:
        """CannotJoin, MetadataDamaged, DataDirectoryLocked, OSError: it cannot be used."""
        disk, ports = self._disk, self._ports
        disk.make_directory("")
        try:
            self._commits, self._clock, self._aside = ports.commits(), ports.clock(), ports.aside("goqueue-aside")
            self._directory = DataDirectory.open(disk, committer=self._commits.committer)
            refuse_others(disk, processes)
            self._directory.note_formats()
            await self._former_members_ended()
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
        self._coordinator.load_now()
        return SharedStore(self._coordinator, clock)

    async def _former_members_ended(self) -> None:
        """Else one of them could still lead what another is about to lead."""
        waiting = set(members_of(self._disk))
        for _ in range(round(GONE_S_MAX / LOOK_S)):
            waiting = {number for number in waiting if self._is_locked(number)}
            if not waiting:
                return
            await asyncio.sleep(LOOK_S)
        number = min(waiting)
        self._disk.lock(f"{member_directory(number)}/{LOCK_NAME}").release()  # it says who holds it

    def _is_locked(self, number: int) -> bool:
        try:
            self._disk.lock(f"{member_directory(number)}/{LOCK_NAME}").release()
        except DataDirectoryLocked:
            return True
        return False

    async def keep_up(self) -> None:
        """Retention and compaction of the ledger, until it is cancelled."""
        assert self._replicas is not None
        assert self._clock is not None
        assert self._directory is not None
        settled = SettledClock(self._clock)
        compactions = Compactions(self._replicas, settled, self._compact)
        while True:
            await asyncio.sleep(self._settings.maintenance_interval_ms / 1000)
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

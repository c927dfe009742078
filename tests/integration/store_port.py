"""What the port of a store promises, asked with answers that can be waited for: of real etcd, and of the store that
members of one machine share.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from goqueue.cluster.etcd.client import EtcdClient
from goqueue.cluster.etcd.endpoints import EtcdOptions
from goqueue.cluster.etcd.port import Etcd, EtcdFault, KeyCompare, KeyPut, KeyValue, Txn
from goqueue.cluster.local.client import LocalStoreClient
from goqueue.cluster.local.server import StoreConnection
from goqueue.node.ports import RealPorts
from goqueue.node.processes.store_directory import StoreDirectory
from goqueue.node.settings import Settings
from goqueue.storage import compaction
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.swap import Manifest
from tests.integration.etcd_members import Etcds

FAR_S = 60.0
Connect = Callable[[], Awaitable[Etcd]]


class Asker:
    """The client with answers that can be waited for."""

    def __init__(self, client: Etcd) -> None:
        self.client = client

    async def __call__(self, ask: Callable[..., Any], *args: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        ask(*args, answer.set_result)
        return await asyncio.wait_for(answer, FAR_S)

    async def txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut]) -> Any:
        return await self(self.client.txn, compares, puts)

    async def put(self, key: bytes, value: bytes | None) -> Txn:
        done = await self.txn([], [KeyPut(key, value)])
        assert isinstance(done, Txn), done
        return done

    async def list(self, prefix: bytes) -> Any:
        return await self(self.client.list, prefix)


class Watched:
    def __init__(self, client: Etcd, prefix: bytes, revision: int) -> None:
        self.told: list[tuple[int, list[KeyValue]]] = []
        self.faults: list[EtcdFault] = []
        self._news = asyncio.Event()
        self.end = client.watch(prefix, revision, self._keys, self._lost)

    def _keys(self, revision: int, keys: Sequence[KeyValue]) -> None:
        self.told.append((revision, list(keys)))
        self._news.set()

    def _lost(self, fault: EtcdFault) -> None:
        self.faults.append(fault)
        self._news.set()

    @property
    def entries(self) -> list[tuple[bytes, bytes | None]]:
        return [(entry.key, entry.value) for _, entries in self.told for entry in entries]

    async def until(self, is_done: Callable[["Watched"], bool]) -> None:
        async with asyncio.timeout(FAR_S):
            while not is_done(self):
                self._news.clear()
                await self._news.wait()


class StoreKind(Protocol):
    def connected(self) -> AbstractAsyncContextManager[Connect]:
        """What gives one more client of the same store, while it is there."""


class OfEtcd:
    def __init__(self, etcds: Etcds) -> None:
        self._etcds = etcds

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connect]:
        made: list[EtcdClient] = []

        async def connect() -> Etcd:
            made.append(EtcdClient(EtcdOptions(self._etcds.endpoints)))
            return made[-1]

        try:
            yield connect
        finally:
            for client in made:
                client.close()


class OfSupervisor:
    """The store itself, its server and clients, on a real directory and real sockets."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connect]:
        settings = Settings(data_dir=self._directory)
        kept = StoreDirectory(settings, RealDisk(self._directory), RealPorts(), _compact_nothing)
        store = await kept.open(2)
        made: list[LocalStoreClient] = []

        async def connect() -> Etcd:
            here, there = socket.socketpair()
            here.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: StoreConnection(store, "1"), sock=here)
            made.append(await LocalStoreClient.connect(there))
            return made[-1]

        try:
            yield connect
        finally:
            for client in made:
                client.close()
            await kept.close()


async def _compact_nothing(plan: compaction.Plan) -> Manifest | None:
    return None

"""A node becomes one of its cluster: it says which directory it has, and gets a session in etcd. It refuses where going
on could cost data: with a strange disk, or with an etcd that has forgotten what this node remembers.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from goqueue.cluster.etcd.port import EtcdFault, OnLease
from goqueue.cluster.store import Store
from goqueue.model.errors import CannotJoin, GoQueueError
from goqueue.model.metadata import (
    ABSENT,
    ClusterKey,
    ClusterValue,
    Committed,
    Compare,
    Conflict,
    Event,
    Key,
    Listing,
    LiveKey,
    NodeKey,
    NodeValue,
    PartitionKey,
    Put,
    Step,
)
from goqueue.model.placements import NodeInfo, Placement
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")

LEDGERS = 16
"""Of groups, and of transactions: see ADR 0041."""
START_S_MAX = 60.0
"""How long a start waits for etcd."""
AGAIN_S = 0.1

T = TypeVar("T")


class LeaseStore(Store, Protocol):
    """The one in etcd."""

    def grant(self, ttl_s: int, on_done: OnLease) -> None: ...

    def revoke(self, lease: int, on_done: Callable[[EtcdFault | None], None]) -> None: ...


class KnownEpoch(NamedTuple):
    """What this node has seen of a partition."""

    topic_id: bytes
    number: int
    epoch: int


class Seen(NamedTuple):
    """What a node knew of the metadata before it asked for it: an etcd that has less was restored from a backup."""

    revision: int
    recoveries: int
    epochs: tuple[KnownEpoch, ...]


class Directory(Protocol):
    """The data directory of this node, which nobody else uses."""

    @property
    def directory(self) -> str:
        """Its id."""

    @property
    def cluster_id(self) -> str:
        """Of the cluster that it belongs to; empty: of none yet."""

    @property
    def revision(self) -> int:
        """Of the metadata: this node has seen that much of it."""

    @property
    def recoveries(self) -> int:
        """As many of the cluster had been when it did."""

    def belong_to(self, cluster_id: str) -> None:
        """For good, durably."""

    def epochs(self) -> Iterable[KnownEpoch]:
        """The highest that is in each of its logs."""


class Registration:
    def __init__(self, store: LeaseStore, me: NodeInfo, directory: Directory, new_cluster: ClusterValue, ttl_s: int):
        """`new_cluster`: what the cluster is called if there is none yet."""
        self._store = store
        self._me = me
        self._directory = directory
        self._new_cluster = new_cluster
        self._ttl_s = ttl_s

    async def register(self) -> NodeInfo:
        """This node in its new life. CannotJoin: it must not, or etcd did not answer."""
        try:
            async with asyncio.timeout(START_S_MAX):
                while True:
                    await self._join()
                    if (me := await self._go_live()) is not None:
                        return me
                    await asyncio.sleep(AGAIN_S)
        except TimeoutError:
            raise no_answer() from None

    async def _join(self) -> None:
        """Until nothing is in the way of a session."""
        while True:
            # First: a node that has lost its session goes on copying, and knows more by the time of the answer.
            seen = self._seen()
            listing = await _asked(self._list)
            known = {entry.key: entry for entry in listing.entries}
            step = self._next_step(known)
            if step is not None:
                await _asked(lambda done, step=step: self._store.txn(step, done))  # type: ignore[misc]
                continue
            halting = self._halting(known, listing.revision, seen)
            if halting is not None:
                await _asked(lambda done, step=halting: self._store.txn(step, done))  # type: ignore[misc]
                continue
            live = known.get(LiveKey(self._me.node_id))
            if live is None:
                return
            # The lock on the directory proves that its owner is gone.
            assert isinstance(live.value, NodeInfo)
            events.info("old session revoked", node=self._me.node_id, incarnation=live.revision)
            await self._revoke(live.value.lease)

    def _list(self, done: Callable[[Listing], None]) -> None:
        self._store.list(done)

    def _next_step(self, known: Mapping[Key, Event]) -> Step | None:
        """What has to be written first. CannotJoin: this directory does not belong there."""
        directory, me = self._directory, self._me
        cluster = known.get(ClusterKey())
        if cluster is None:
            if directory.cluster_id:
                raise CannotJoin(
                    f"etcd knows of no cluster, but this data directory belongs to cluster {directory.cluster_id}. A"
                    " store that was wiped must not be taken for a new one: restore etcd from a backup, check the"
                    " settings etcd and cluster_name, or start with an empty data directory"
                )
            return Step((Compare(ClusterKey(), ABSENT),), (Put(ClusterKey(), self._new_cluster),))
        assert isinstance(cluster.value, ClusterValue)
        if not directory.cluster_id:
            directory.belong_to(cluster.value.cluster_id)
        if directory.cluster_id != cluster.value.cluster_id:
            raise CannotJoin(
                f"this data directory belongs to cluster {directory.cluster_id}, and etcd has cluster"
                f" {cluster.value.cluster_id}: check the settings etcd, cluster_name and data_dir"
            )
        key = NodeKey(me.node_id)
        node = known.get(key)
        if node is None:
            return Step((Compare(key, ABSENT),), (Put(key, NodeValue(directory.directory, me.rack)),))
        assert isinstance(node.value, NodeValue)
        if node.value.directory != directory.directory:
            raise CannotJoin(
                f"node {me.node_id} of this cluster has another data directory ({node.value.directory}, and this is"
                f" {directory.directory}): it holds copies that this one lacks. Start with that directory, choose"
                " another node_id, or let an operator forget the old node"
            )
        if node.value.rack != me.rack:
            return Step((Compare(key, node.revision),), (Put(key, node.value._replace(rack=me.rack)),))
        return None

    def _seen(self) -> "Seen":
        directory = self._directory
        return Seen(directory.revision, directory.recoveries, tuple(directory.epochs()))

    def _halting(self, known: Mapping[Key, Event], revision: int, seen: "Seen") -> Step | None:
        """What a backup says of copies may be wrong: from here on nobody elects, leads or follows, until an operator
        has decided. None: it is no backup, or that is known already."""
        cluster = known[ClusterKey()]
        assert isinstance(cluster.value, ClusterValue)
        why = "" if cluster.value.halted else self._why_restored(known, cluster.value, revision, seen)
        if not why:
            return None
        events.error("etcd was restored from an old backup: see goqueue cluster recover", reason=why)
        halted = Put(cluster.key, cluster.value._replace(halted=why))
        return Step((Compare(cluster.key, cluster.revision),), (halted,))

    def _why_restored(self, known: Mapping[Key, Event], cluster: ClusterValue, revision: int, seen: "Seen") -> str:
        me = self._me.node_id
        if seen.recoveries == cluster.recoveries and revision < seen.revision:
            return f"etcd is at revision {revision}, and node {me} has seen {seen.revision}"
        for one in seen.epochs:
            placed = known.get(PartitionKey(one.topic_id, one.number))
            if placed is not None and isinstance(placed.value, Placement) and placed.value.epoch < one.epoch:
                partition, epoch = f"{one.topic_id.hex()}/{one.number}", placed.value.epoch
                return f"partition {partition} has epoch {epoch} in etcd, and node {me} has seen {one.epoch}"
        return ""

    async def _go_live(self) -> NodeInfo | None:
        """None: something came between."""
        granted = await self._grant()
        if isinstance(granted, EtcdFault):
            return None
        lease = granted
        key = LiveKey(self._me.node_id)
        step = Step((Compare(key, ABSENT),), (Put(key, self._me, lease),))
        outcome: Committed | Conflict | GoQueueError = await _asked(lambda done: self._store.txn(step, done))
        if isinstance(outcome, Committed):
            return self._me._replace(incarnation=outcome.revision, lease=lease)
        # Whether it was done or not, nobody renews this one.
        await self._revoke(lease)
        return None

    async def _grant(self) -> int | EtcdFault:
        def ask(done: OnLease) -> None:
            self._store.grant(self._ttl_s, done)

        return await _asked(ask)

    async def _revoke(self, lease: int) -> None:
        def ask(done: Callable[[EtcdFault | None], None]) -> None:
            self._store.revoke(lease, done)

        await _asked(ask)


def no_answer() -> CannotJoin:
    return CannotJoin(
        f"etcd did not answer for {START_S_MAX:g} s: see that it runs, and that the setting etcd names its members"
    )


async def _asked(ask: Callable[[Callable[[T], None]], object]) -> T:
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def done(value: T) -> None:
        if not answer.done():
            answer.set_result(value)

    ask(done)
    return await answer

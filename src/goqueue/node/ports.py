"""What a node gets from its machine: the real machine here, a simulated one in `goqueue.testing`."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from goqueue.cluster.etcd.port import Etcd
from goqueue.cluster.session import Renewer
from goqueue.node.settings import Settings
from goqueue.ports.dice import Dice, system_dice
from goqueue.ports.network import LoopNetwork, Network
from goqueue.runtime.aside import AsideThread, Done, Work
from goqueue.runtime.clock import Clock, LoopClock
from goqueue.storage.committer import SYNCS_AT_ONCE, Committer, CommitThreads
from goqueue.storage.crew import Crew


class NodeClock(Clock, Protocol):
    def stop(self) -> None:
        """Nobody is told of steps any more."""


class Commits(Protocol):
    """Whatever runs a committer."""

    @property
    def committer(self) -> Committer: ...

    def stop(self) -> None:
        """Returns when no sync is running and none will."""


class AsideWorker(Protocol):
    """A place for slow work."""

    def __call__(self, work: Work, done: Done) -> None: ...

    def stop(self) -> None:
        """Returns when nothing is under way and nothing will be."""


class DiskCrew(Protocol):
    """`SideBySide`, until it is stopped."""

    def __call__(self, works: Sequence[Work]) -> None: ...

    def stop(self) -> None: ...


class EtcdPorts(NamedTuple):
    """What keeps a node in its cluster."""

    etcd: Etcd
    renewer: Renewer
    now_s: Callable[[], float]
    """Counts while the machine is suspended, too."""
    check: Callable[[], None]
    """In any thread. A GoQueueError: this etcd is not to be trusted with metadata."""


class NodePorts(Protocol):
    """The methods are called once, in the event loop that the node runs in."""

    @property
    def dice(self) -> Dice: ...

    @property
    def network(self) -> Network: ...

    @property
    def boot_id(self) -> str:
        """Of the machine: it changes when that is started again."""

    @property
    def has_grpc(self) -> bool:
        """grpcio opens its sockets itself: where there are none, there is no gRPC either."""

    @property
    def shares_ports(self) -> bool:
        """Other processes listen at the same addresses: the members of one machine."""

    def clock(self) -> NodeClock: ...

    def commits(self) -> Commits: ...

    def aside(self, name: str) -> AsideWorker: ...

    def crew(self) -> DiskCrew:
        """For many logs that are opened or closed together."""

    def etcd(self, settings: Settings) -> EtcdPorts:
        """Of a node of a cluster."""


class RealPorts:
    has_grpc = True
    shares_ports = False

    def __init__(self) -> None:
        self.dice = system_dice()
        self.network = LoopNetwork(shares_ports=self.shares_ports)
        self.boot_id = _boot_id()

    def clock(self) -> NodeClock:
        return LoopClock()

    def commits(self) -> Commits:
        loop = asyncio.get_running_loop()

        def deliver(finish: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(finish)

        return CommitThreads(deliver, loop.call_soon)

    def aside(self, name: str) -> AsideWorker:
        return AsideThread(asyncio.get_running_loop(), name)

    def crew(self) -> DiskCrew:
        return Crew(SYNCS_AT_ONCE)

    def etcd(self, settings: Settings) -> EtcdPorts:
        # grpcio, which a node that is on its own need not load before its door opens.
        from goqueue.cluster.etcd.client import EtcdClient
        from goqueue.cluster.etcd.renewing import EtcdRenewals, ThreadRenewer, boot_time_s
        from goqueue.cluster.etcd.versions import ask_versions, check_versions
        from goqueue.node.etcd_options import etcd_options

        options = etcd_options(settings)
        client, renewer = EtcdClient(options), ThreadRenewer(lambda: EtcdRenewals(options))
        return EtcdPorts(client, renewer, boot_time_s, lambda: check_versions(ask_versions(options)))


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""  # where nobody says, no machine is known to have gone down

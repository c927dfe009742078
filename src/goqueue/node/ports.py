"""What a node gets from its machine: the real machine here, a simulated one in `goqueue.testing`."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from goqueue.ports.dice import Dice, system_dice
from goqueue.ports.network import LoopNetwork, Network
from goqueue.runtime.aside import AsideThread, Done, Work
from goqueue.runtime.clock import Clock, LoopClock
from goqueue.storage.committer import Committer, CommitThreads


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


class NodePorts(Protocol):
    """The methods are called once, in the event loop that the node runs in."""

    @property
    def dice(self) -> Dice: ...

    @property
    def network(self) -> Network: ...

    @property
    def has_grpc(self) -> bool:
        """grpcio opens its sockets itself: where there are none, there is no gRPC either."""

    def clock(self) -> NodeClock: ...

    def commits(self) -> Commits: ...

    def aside(self, name: str) -> AsideWorker: ...


class RealPorts:
    has_grpc = True

    def __init__(self) -> None:
        self.dice = system_dice()
        self.network = LoopNetwork()

    def clock(self) -> NodeClock:
        return LoopClock()

    def commits(self) -> Commits:
        loop = asyncio.get_running_loop()

        def deliver(finish: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(finish)

        return CommitThreads(deliver)

    def aside(self, name: str) -> AsideWorker:
        return AsideThread(asyncio.get_running_loop(), name)

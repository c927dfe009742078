"""Whole nodes and real clients in one thread, on virtual time, a virtual network and disks in memory, all of them drawn
from one seed: the same seed gives the same run, byte for byte.

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        async with Producer(sim.nodes[0].kafka, **me.ports) as producer:
            await producer.send("orders", b"hello")
            sim.nodes[0].crash("power")
            await sim.nodes[0].start()

    Simulation(seed=7).run(scenario)
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any, TypedDict, TypeVar

from goqueue.client.clock import LoopClock as ClientLoopClock
from goqueue.model.moments import parse_duration_ms, parse_moment_ms
from goqueue.node.settings import Settings
from goqueue.node.values import Authentication
from goqueue.ports.dice import Dice
from goqueue.testing.broker_life import START
from goqueue.testing.message import Duration
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.trace import Trace
from goqueue.testing.virtual_etcd import LoopTime, VirtualEtcd
from goqueue.testing.virtual_loop import Life, VirtualLoop, let_pass
from goqueue.testing.virtual_network import HostNetwork, VirtualNetwork

T = TypeVar("T")


class ClientClock(ClientLoopClock):
    def __init__(self, simulation: "Simulation") -> None:
        super().__init__()
        self._simulation = simulation

    def now_ms(self) -> int:
        return self._simulation.now_ms()


class ClientPorts(TypedDict):
    """What every client takes by name."""

    clock: ClientClock
    dice: Dice
    network: HostNetwork


class Process:
    """A program on a host of its own, which uses the nodes."""

    def __init__(self, simulation: "Simulation", name: str, start: int = 1) -> None:
        self._simulation = simulation
        self.name = name
        self.life = Life(f"{name}/{start}")
        self.dice = simulation.dice(self.life.name)

    @property
    def ports(self) -> ClientPorts:
        """`Producer(address, **process.ports)`."""
        network = self._simulation.network.at(self.name)
        return ClientPorts(clock=ClientClock(self._simulation), dice=self.dice, network=network)

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        return self._simulation.loop.create_task(work, context=self.life.context())

    def kill(self) -> None:
        self._simulation.note("kill", self.name)
        self._simulation.loop.end(self.life)
        self._simulation.network.kill(self.life)


class Simulation:
    """`run` once. `settings` are those of `goqueue.node.settings`, for all nodes."""

    def __init__(
        self, seed: int, nodes: int = 1, *, cluster: bool = False, loop: VirtualLoop | None = None, **settings: Any
    ) -> None:
        """`cluster`: the nodes are one, with an etcd of its own; else each is on its own. `loop`: one that runs
        already, so that `run` is not for it."""
        self.seed = seed
        self.trace = Trace()
        self.start_ms = parse_moment_ms(START, 0)
        self._settings = settings
        self.loop = loop or VirtualLoop()
        self.begin_s = self.loop.time()
        self.network = VirtualNetwork(self.loop, self.dice("network"), self.trace)
        self.etcd = VirtualEtcd(LoopTime(self.loop), self.dice("etcd")) if cluster else None
        self.nodes = [SimulatedNode(self, number + 1) for number in range(nodes)]

    def run(self, scenario: Callable[["Simulation"], Awaitable[T]], limit: Duration = "1h") -> T:
        """Start all nodes, then the scenario. TimeoutError: it was not over after so much virtual time."""

        async def main() -> T:
            async with asyncio.timeout(parse_duration_ms(limit) / 1000):
                for node in self.nodes:
                    await node.start()
                return await scenario(self)

        loop = self.loop
        try:
            asyncio.set_event_loop(loop)
            return loop.run_until_complete(main())
        finally:
            self._end()

    def _end(self) -> None:
        """Nothing goes on: what is left is given up without a word."""
        self.abandon()
        asyncio.set_event_loop(None)
        self.loop.close()

    def abandon(self) -> None:
        for node in self.nodes:
            node.abandon()

    # -- what belongs to it

    def dice(self, name: str) -> Random:
        """Dice of its own for everybody: who draws more often changes nobody else's luck."""
        return Random(f"{self.seed}/{name}")  # noqa: S311  dice that fall the same way twice

    def process(self, name: str, start: int = 1) -> Process:
        """`start`: which one it is of this name, for one that was killed and is started again."""
        return Process(self, name, start)

    def settings(self, **own: Any) -> Settings:
        given = {"authentication": Authentication.OFF, **self._settings}
        return Settings(data_dir=Path("simulated"), disk_reserve_bytes=0, **own, **given)

    def now_ms(self) -> int:
        return self.start_ms + int((self.loop.time() - self.begin_s) * 1000)

    def note(self, what: str, *words: str) -> None:
        """Write it into the trace."""
        self.trace.note(self.loop.time(), what, *words)

    async def let_pass(self, duration: Duration) -> None:
        """Virtual time, meanwhile everything goes on."""
        await let_pass(parse_duration_ms(duration) / 1000)

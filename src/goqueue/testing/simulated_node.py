"""One node of a simulation: the real one with its real doors, on a disk, a clock and a network that a test holds in its
hand. It is started, killed, deprived of power and started again.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Literal

from goqueue.broker.broker import Broker
from goqueue.cluster.etcd.port import Etcd
from goqueue.cluster.session import LoopRenewer
from goqueue.model.moments import parse_duration_ms
from goqueue.node.node import Node
from goqueue.node.ports import AsideWorker, Commits, DiskCrew, EtcdPorts, NodeClock
from goqueue.node.settings import Settings
from goqueue.node.values import Address
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import Done, Work, at_once
from goqueue.runtime.clock import Clock, LoopClock
from goqueue.storage import compaction
from goqueue.storage.crew import one_by_one
from goqueue.storage.data_directory import OpeningStopped
from goqueue.storage.swap import Manifest
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.memory_node import PromptCommitter
from goqueue.testing.message import Duration
from goqueue.testing.virtual_loop import Life
from goqueue.testing.virtual_network import HostNetwork

if TYPE_CHECKING:
    from goqueue.testing.simulation import Simulation

KAFKA_PORT, HTTP_PORT, GRPC_PORT, PEER_PORT = 9092, 8080, 9000, 9192
SLOW_SYNC = 0.02
"""The share of syncs that take long."""
STOP_S_MAX = 60.0


class HostClock(LoopClock):
    """The clock of a real node, on a wall clock that a test sets."""

    def __init__(self, host: "SimulatedNode") -> None:
        self._host = host
        super().__init__()

    def now_ms(self) -> int:
        return self._host.now_ms()

    def monotonic_s(self) -> float:
        return self._loop.time()


class DicedCommitter(PromptCommitter):
    """Every sync takes as long as the dice say."""

    def __init__(self, clock: Clock, dice: Random, host: "SimulatedNode") -> None:
        self._dice = dice
        self._host = host
        super().__init__(clock)

    def next_sync_ms(self) -> float:
        if self._host.sync_ms is not None:
            return self._dice.uniform(*self._host.sync_ms)
        slow = self._dice.random() < SLOW_SYNC
        return self._dice.uniform(20, 200) if slow else self._dice.uniform(0.1, 3)


class InlineCommits:
    def __init__(self, committer: PromptCommitter) -> None:
        self.committer = committer

    def stop(self) -> None:
        """Closing the logs syncs the rest."""
        self.committer.stop()


class LateWorker:
    """Slow work is done after a while, all of it at once; one thing after the other."""

    def __init__(self, clock: Clock, dice: Random) -> None:
        self._clock = clock
        self._dice = dice
        self._waiting: list[tuple[Work, Done]] = []
        self._has_stopped = False

    def __call__(self, work: Work, done: Done) -> None:
        if self._has_stopped:
            done(RuntimeError("the node is stopping"))
            return
        self._waiting.append((work, done))
        if len(self._waiting) == 1:
            self._soon()

    def _soon(self) -> None:
        self._clock.call_after(self._dice.uniform(0.1, 5), self._next)

    def _next(self) -> None:
        if self._waiting:
            at_once(*self._waiting.pop(0))
        if self._waiting:
            self._soon()

    def stop(self) -> None:
        self._has_stopped = True
        while self._waiting:
            at_once(*self._waiting.pop(0))


class LoneCrew:
    """There is one thread."""

    def __call__(self, works: Sequence[Work]) -> None:
        one_by_one(works)

    def stop(self) -> None:
        """Nothing is ever under way."""


class SimulatedPorts:
    """`goqueue.node.ports.NodePorts` for one life of a node."""

    has_grpc = shares_ports = False

    def __init__(self, host: "SimulatedNode", dice: Random, network: HostNetwork) -> None:
        self._host = host
        self.dice = dice
        self.network = network
        self.boot_id = host.boot_id

    def clock(self) -> NodeClock:
        self._clock = HostClock(self._host)
        return self._clock

    def commits(self) -> Commits:
        return InlineCommits(DicedCommitter(self._clock, self.dice, self._host))

    def etcd(self, settings: Settings) -> EtcdPorts:  # noqa: ARG002  there is one
        etcd = self._host.etcd_client()
        return EtcdPorts(etcd, LoopRenewer(etcd, self._clock), self._clock.monotonic_s, lambda: None)

    def aside(self, name: str) -> AsideWorker:  # noqa: ARG002  threads have names
        return LateWorker(self._clock, self.dice)

    def crew(self) -> DiskCrew:
        return LoneCrew()


class SimulatedNode:
    def __init__(self, simulation: "Simulation", number: int) -> None:
        self._simulation = simulation
        self.number = number
        self.name = f"node-{number}"
        self.disk = MemoryDisk()
        self.sync_ms: tuple[float, float] | None = None
        """How long a sync takes, at least and at most; None: as on a good disk."""
        self._ahead_ms = 0
        self._boots = 0
        self._power_ups = 1
        self._life: Life | None = None
        self._node: Node | None = None
        self._stop: asyncio.Event | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_decided = asyncio.Event()

    @property
    def kafka(self) -> str:
        return f"{self.name}:{KAFKA_PORT}"

    @property
    def http(self) -> str:
        return f"http://{self.name}:{HTTP_PORT}"

    @property
    def boot_id(self) -> str:
        return f"{self.name}/{self._power_ups}"

    @property
    def is_up(self) -> bool:
        return self._life is not None

    @property
    def broker(self) -> Broker:
        """The real one, to look into."""
        assert self._node is not None
        return self._node.broker

    def etcd_client(self) -> Etcd:
        """Of this life."""
        etcd = self._simulation.etcd
        assert etcd is not None, "this is no simulation of a cluster"
        return etcd.client(self.name)

    @property
    def replicas(self) -> Replicas:
        """Likewise."""
        assert self._node is not None
        return self._node.replicas

    def now_ms(self) -> int:
        simulation = self._simulation
        return simulation.start_ms + self._ahead_ms + int((simulation.loop.time() - simulation.begin_s) * 1000)

    def set_clock(self, by: Duration) -> None:
        """Forward, or back with a number of milliseconds below 0: no time passes."""
        by_ms = by if isinstance(by, int) else parse_duration_ms(by)
        self._simulation.note("clock", self.name, str(by_ms))
        self._ahead_ms += by_ms

    # -- its life

    async def start(self) -> None:
        """Returns when it serves, or has lost its power on the way: see `is_up`. It fails as the node itself would."""
        assert self._life is None, f"{self.name} runs already"
        simulation = self._simulation
        self._boots += 1
        simulation.note("start", self.name, str(self._boots))
        simulation.network.switch(self.name, on=True)
        life = Life(f"{self.name}/{self._boots}")
        life.has_power = lambda disk=self.disk: not disk.power_lost  # type: ignore[misc]
        life.on_power_lost = lambda: self._power_lost(life)
        self._life = life
        self._is_decided = decided = asyncio.Event()
        failures: list[Exception] = []
        dice = simulation.dice(life.name)
        ports = SimulatedPorts(self, dice, simulation.network.at(self.name))
        self._node = Node(self._settings(), self.disk, compact=self._compact, ports=ports)
        self._stop = asyncio.Event()
        run = self._run(self._node, self._stop, failures)
        self._running = simulation.loop.create_task(run, context=life.context())
        await decided.wait()
        if failures:
            self._end(life, silently=False)
            raise failures[0]

    def _settings(self) -> Settings:
        simulation = self._simulation
        cluster = {"etcd": ("etcd:2379",), "peer": Address(self.name, PEER_PORT)} if simulation.etcd else {}
        return simulation.settings(
            node_id=self.number,
            kafka=Address(self.name, KAFKA_PORT),
            http=Address(self.name, HTTP_PORT),
            grpc=Address(self.name, GRPC_PORT),
            **cluster,
        )

    async def _run(self, node: Node, stop: asyncio.Event, failures: list[Exception]) -> None:
        try:
            await node.open(stop)
        except OpeningStopped:
            return
        except Exception as error:  # noqa: BLE001  whoever starts it is told
            failures.append(error)
            return
        finally:
            self._is_decided.set()
        await node.run(stop)
        await node.close()

    async def _compact(self, plan: compaction.Plan) -> Manifest | None:
        return compaction.compact(self.disk, plan)

    async def stop(self) -> None:
        """In good order. Stopping twice is fine."""
        if self._life is None:
            return
        assert self._stop is not None
        assert self._running is not None
        self._simulation.note("stop", self.name)
        life = self._life
        self._stop.set()
        async with asyncio.timeout(STOP_S_MAX):
            await asyncio.shield(self._running)
        self._end(life, silently=False)

    def pause(self) -> None:
        """It stands still, as a process after SIGSTOP, while time goes on and others send to it. Nobody is told."""
        assert self._life is not None, f"{self.name} does not run"
        self._simulation.note("pause", self.name)
        self._simulation.loop.pause(self._life)

    def resume(self) -> None:
        """It goes on where it stood, with all that has become due. If it is not paused, nothing happens."""
        if self._life is not None and self._life.is_paused:
            self._simulation.note("resume", self.name)
            self._simulation.loop.go_on(self._life)
            self._simulation.network.resumed()

    @property
    def is_paused(self) -> bool:
        return self._life is not None and self._life.is_paused

    def crash(self, kind: Literal["kill", "power"] = "kill") -> None:
        """`kill`: the process is gone, all that it wrote is there, and its connections are closed. `power`: the dice
        say what is lost of the data that was not synced, and nobody is told.
        """
        life = self._life
        self._simulation.note("crash", self.name, kind)
        if life is not None:
            self._end(life, silently=kind == "power")
        if kind == "kill":
            self.disk.survive_as_kill()
        else:
            self._power_ups += 1
            self.disk = self.disk.crash(self._simulation.dice(f"{self.name}/{self._boots}/crash"))

    def crash_at(self, operations: int) -> None:
        """Power is lost before the so manieth operation on the disk from now. `is_up` tells when it has happened."""
        self.disk.crash_at(self.disk.op_count + operations)

    def _power_lost(self, life: Life) -> None:
        if self._life is life:
            self.crash("power")

    def _end(self, life: Life, *, silently: bool) -> None:
        self._simulation.loop.end(life)
        self._simulation.network.kill(life, silently=silently)
        if silently:
            self._simulation.network.switch(self.name, on=False)
        self._life = self._running = self._stop = None
        self._is_decided.set()

    def abandon(self) -> None:
        """The simulation is over."""
        if self._life is not None:
            self._end(self._life, silently=True)
        self._node = None

    async def restart(self) -> None:
        """After a stop in good order, if it runs still."""
        await self.stop()
        await self.start()

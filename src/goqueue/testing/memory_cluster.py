"""A cluster in a test: whole nodes with their etcd, and links between them that the test cuts. Nodes are killed, paused
and started by hand, and time passes as fast as it can be computed.

    async with cluster(nodes=3) as c:
        async with Producer(c.kafka, **c.ports) as producer:
            await producer.send("orders", b"one")
            c.kill(1)
            await producer.send("orders", b"two")
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Self, TypeVar

from goqueue.model.moments import parse_duration_ms
from goqueue.model.topics import Topic
from goqueue.testing.borrowed_loop import BorrowedLoop, borrow
from goqueue.testing.message import Duration
from goqueue.testing.simulated_node import HTTP_PORT, KAFKA_PORT, SimulatedNode
from goqueue.testing.simulation import ClientPorts, Process, Simulation
from goqueue.testing.virtual_loop import let_pass

T = TypeVar("T")

ETCD = "etcd"
TEST = "test"
"""The host of a test itself."""
IN_FULL_MS = 60_000
"""So much of an advance passes in full; what is beyond passes by the clocks of the nodes alone."""
AFTER_LEAP_S = 5.0
LOOK_S = 0.1

End = int | str
"""A node by its number, from 1 on; "etcd"; or the name of a process."""


def cluster(nodes: int = 3, *, seed: int = 1, limit: Duration = "1h", **settings: Any) -> "Cluster":
    """For `async with cluster() as c`, or `cluster().run(scenario)`. `settings` are those of nodes; `limit` is how much
    virtual time the test may take, and another `seed` gives another course of events."""
    return Cluster(nodes, seed, limit, settings)


class Cluster:
    def __init__(self, nodes: int, seed: int, limit: Duration, settings: dict[str, Any]) -> None:
        self._count = nodes
        self._seed = seed
        self._limit_s = parse_duration_ms(limit) / 1000
        self._settings = settings
        self._simulation: Simulation | None = None
        self._borrowed: BorrowedLoop | None = None
        self._timeout: asyncio.Timeout | None = None

    # -- its life

    async def __aenter__(self) -> Self:
        self._borrowed = borrow(asyncio.get_running_loop())
        try:
            self._timeout = asyncio.timeout(self._limit_s)
            await self._timeout.__aenter__()
            await self._begin(self._borrowed)
        except BaseException:
            self.close_now()
            raise
        return self

    async def __aexit__(self, *error: Any) -> None:
        self.close_now()
        if self._timeout is not None:
            await self._timeout.__aexit__(*error)

    def close_now(self) -> None:
        """All nodes are gone, and the event loop is what it was. A second time is fine."""
        if self._simulation is not None:
            self._simulation.abandon()
            self._simulation = None
        if self._borrowed is not None:
            self._borrowed.give_back()
            self._borrowed = None

    def run(self, scenario: Callable[["Cluster"], Awaitable[T]]) -> T:
        """For a test that has no event loop: `scenario(c)` in one of its own."""
        simulation = Simulation(self._seed, self._count, cluster=True, **self._settings)

        async def main(simulation: Simulation) -> T:
            self._simulation = simulation
            await self.settled()
            return await scenario(self)

        try:
            return simulation.run(main, limit=int(self._limit_s * 1000))
        finally:
            self._simulation = None

    async def _begin(self, loop: BorrowedLoop) -> None:
        self._simulation = Simulation(self._seed, self._count, cluster=True, loop=loop, **self._settings)
        for node in self._simulation.nodes:
            await node.start()
        await self.settled()

    @property
    def simulation(self) -> Simulation:
        """With its network, its etcd and its nodes, for all that has no shorter way here."""
        assert self._simulation is not None, "this cluster does not run: async with cluster() as c"
        return self._simulation

    # -- where clients find it

    @property
    def kafka(self) -> list[str]:
        """Of all nodes, as `Producer`, `Consumer` and `Worker` take them."""
        return [f"node-{number}:{KAFKA_PORT}" for number in range(1, self._count + 1)]

    @property
    def http(self) -> str:
        """Of all nodes, as `Admin` takes them."""
        return ",".join(f"http://node-{number}:{HTTP_PORT}" for number in range(1, self._count + 1))

    @property
    def ports(self) -> ClientPorts:
        """`Producer(c.kafka, **c.ports)`: clients of the test itself, on a host named "test"."""
        return self.process(TEST).ports

    def process(self, name: str) -> Process:
        """A program on a host of its own, which can be cut off and killed: `Producer(c.kafka, **shop.ports)`."""
        return self.simulation.process(name)

    # -- what happens to nodes

    def node(self, number: int) -> SimulatedNode:
        return self.simulation.nodes[number - 1]

    def kill(self, number: int, kind: Literal["kill", "power"] = "kill") -> None:
        """As `kill -9`; or its machine loses power, and with it what was not synced."""
        self.node(number).crash(kind)

    async def start(self, number: int) -> None:
        """After a kill or a stop. It returns when the node serves."""
        await self.node(number).start()

    async def stop(self, number: int) -> None:
        """In good order: it hands over what it leads first."""
        await self.node(number).stop()

    def pause(self, number: int) -> None:
        """It stands still while time goes on, as after SIGSTOP."""
        self.node(number).pause()

    def resume(self, number: int) -> None:
        self.node(number).resume()

    def cut(self, one: End, other: End, *, both_ways: bool = True) -> None:
        """From now on nothing gets from one to the other, nor back."""
        if ETCD in (one, other):
            assert self.simulation.etcd is not None
            asks = one != ETCD
            host = self._host(one if asks else other)
            self.simulation.etcd.cut(host, requests=both_ways or asks, answers=both_ways or not asks)
        else:
            self.simulation.network.cut(self._host(one), self._host(other), both_ways=both_ways)

    def heal(self) -> None:
        """All links are whole, and nobody is paused. Who was killed stays dead."""
        assert self.simulation.etcd is not None
        self.simulation.network.heal()
        self.simulation.etcd.heal()
        for node in self.simulation.nodes:
            node.resume()

    def _host(self, end: End) -> str:
        return self.node(end).name if isinstance(end, int) else end

    # -- time

    @property
    def now_ms(self) -> int:
        """By the clocks of the nodes."""
        return self.simulation.nodes[0].now_ms()

    async def advance(self, duration: Duration) -> None:
        """Let time pass. The first minute of it passes in full; beyond that all clocks are set forward at once, and
        what is due by then happens now: delays, schedules, times to live, retention. Leases and sessions go on for as
        long as they would have."""
        leap_ms = parse_duration_ms(duration) - IN_FULL_MS
        await let_pass(min(parse_duration_ms(duration), IN_FULL_MS) / 1000)
        if leap_ms > 0:
            for node in self.simulation.nodes:
                node.set_clock(leap_ms)
            await let_pass(AFTER_LEAP_S)

    async def settled(self, within: Duration = "30s") -> None:
        """Until all nodes that run know of each other, and everything they hold is led and as much in sync as there are
        nodes for. TimeoutError: it is not, after so long."""
        give_up_s = self.simulation.loop.time() + parse_duration_ms(within) / 1000
        while found := self._unsettled():
            if self.simulation.loop.time() > give_up_s:
                raise TimeoutError(f"not settled within {within}: {'; '.join(found[:5])}")
            await let_pass(LOOK_S)

    def _unsettled(self) -> list[str]:
        up = {node.number for node in self.simulation.nodes if node.is_up and not node.is_paused}
        found = []
        for number in sorted(up):
            image = self.node(number).broker.topics.image
            if set(image.nodes) != up:
                found.append(f"node {number} knows nodes {sorted(image.nodes)}")
            topics: list[Topic] = [*image.topics.values(), *image.ledgers.values()]
            if not image.ledgers:
                found.append(f"node {number} knows no ledgers yet")
            for topic in topics:
                for partition, one in enumerate(topic.placements):
                    wanted = set(one.replicas) & up
                    if image.leader_of(topic.name, partition) is None or not wanted <= set(one.isr):
                        found.append(f"{topic.name}/{partition} is led by {one.leader}, in sync {sorted(one.isr)}")
        return found

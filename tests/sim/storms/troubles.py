"""What is done to a simulated cluster while programs use it. Each trouble begins, lasts a while, and is over; which one
comes next, to whom and for how long is drawn from the seed. Some of them go on while the next begins.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable

from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.virtual_etcd import VirtualEtcd
from goqueue.testing.virtual_loop import let_pass
from goqueue.testing.virtual_network import Weather
from tests.sim.storms.stage import Stage
from tools.nemesis.history import Window
from tools.nemesis.judge import AFTER_S

TROUBLE_S = 12.0
PAUSES_S = (0.5, 1.5, 3.0, 5.0, 8.0)
ROUGH = Weather(delay_ms=(0.5, 20.0), slow=0.03, slow_ms=(50.0, 800.0), split=0.3)
SLOW_SYNC_MS = (50.0, 900.0)


class Troubles:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._sim = stage.sim
        self._dice = stage.sim.dice("storm")
        self.windows: list[Window] = []
        self.kinds: dict[str, Callable[[SimulatedNode], Awaitable[None]]] = {
            "kill": self._kill,
            "power": self._lose_power,
            "disk": self._lose_power_on_disk,
            "all": self._lose_all_power,
            "restart": self._restart,
            "rolling": self._restart_all,
            "pause": self._pause,
            "pause-and-cut": self._pause_and_cut,
            "cut-peers": self._cut_peers,
            "cut-off": self._cut_off,
            "cut-etcd": self._cut_from_etcd,
            "cut-clients": self._cut_from_clients,
            "reset": self._reset,
            "slow-sync": self._slow_sync,
            "full": self._fill_disk,
            "etcd-weather": self._etcd_weather,
            "etcd-paused": self._pause_etcd,
            "etcd-killed": self._kill_etcd,
            "etcd-compacted": self._compact_etcd,
        }

    @property
    def _etcd(self) -> VirtualEtcd:
        assert self._sim.etcd is not None
        return self._sim.etcd

    async def run(self) -> None:
        """For a while, and then all is well again."""
        dice = self._dice
        if dice.random() < 0.3:
            self._sim.network.weather = ROUGH
        self._stage.troubled_until_s = math.inf
        end_s = self._sim.loop.time() + TROUBLE_S
        while self._sim.loop.time() < end_s:
            kinds = dice.sample(list(self.kinds), 2 if dice.random() < 0.3 else 1)
            await asyncio.gather(*(self._one(kind, dice.choice(self._sim.nodes)) for kind in kinds))
            await let_pass(dice.uniform(0.1, 2.5))
        await self.calm()

    async def _one(self, kind: str, node: SimulatedNode) -> None:
        begin = self._sim.loop.time()
        self._sim.note("trouble", kind, node.name)
        await self.kinds[kind](node)
        self.windows.append(Window(begin, self._sim.loop.time(), f"{kind} {node.name}"))

    async def calm(self) -> None:
        self._sim.note("calm")
        self._sim.network.weather = Weather(slow=0)
        self._sim.network.heal()
        self._etcd.heal()
        self._etcd.go_on()
        self._etcd.forget_weathers()
        self._stage.troubled_until_s = self._sim.loop.time() + AFTER_S
        for node in self._sim.nodes:
            node.disk.crash_at(None)
            node.disk.capacity_bytes = None
            node.sync_ms = None
            node.resume()
            await self._back(node)

    async def _a_while(self, most_s: float = 5.0) -> None:
        await let_pass(self._dice.uniform(0.1, most_s))

    async def _back(self, node: SimulatedNode) -> None:
        if not node.is_up:
            await node.start()

    # -- nodes

    async def _kill(self, node: SimulatedNode) -> None:
        node.crash("kill")
        await self._a_while()
        await self._back(node)

    async def _lose_power(self, node: SimulatedNode) -> None:
        node.crash("power")
        await self._a_while()
        await self._back(node)

    async def _lose_power_on_disk(self, node: SimulatedNode) -> None:
        """At some operation on its disk, which may be one of its next start."""
        if not node.is_up:
            return
        node.crash_at(self._dice.randint(1, 80))
        await self._a_while(2)
        node.disk.crash_at(None)
        await self._back(node)

    async def _lose_all_power(self, _: SimulatedNode) -> None:
        for node in self._sim.nodes:
            node.crash("power" if self._dice.random() < 0.5 else "kill")
        await self._a_while(2)
        for node in self._sim.nodes:
            await self._back(node)

    async def _restart(self, node: SimulatedNode) -> None:
        await self._stop(node)
        await self._back(node)

    async def _stop(self, node: SimulatedNode) -> None:
        node.resume()
        await node.stop()

    async def _restart_all(self, _: SimulatedNode) -> None:
        for node in self._sim.nodes:
            await self._restart(node)
            await let_pass(1)

    async def _pause(self, node: SimulatedNode) -> None:
        if node.is_up:
            node.pause()
            await let_pass(self._dice.choice(PAUSES_S))
            node.resume()

    async def _pause_and_cut(self, node: SimulatedNode) -> None:
        """It goes on with old beliefs, and hears nothing that would tell it better."""
        await self._pause(node)
        await self._cut_off(node)

    async def _slow_sync(self, node: SimulatedNode) -> None:
        node.sync_ms = SLOW_SYNC_MS
        await self._a_while()
        node.sync_ms = None

    async def _fill_disk(self, node: SimulatedNode) -> None:
        node.disk.capacity_bytes = 1
        await self._a_while()
        node.disk.capacity_bytes = None

    # -- the network

    async def _cut_peers(self, node: SimulatedNode) -> None:
        other = self._dice.choice([one for one in self._sim.nodes if one is not node])
        self._sim.network.cut(node.name, other.name, both_ways=self._dice.random() < 0.5)
        await self._a_while()
        self._sim.network.heal(node.name, other.name)

    async def _cut_off(self, node: SimulatedNode) -> None:
        """From the others and from etcd; clients reach it still."""
        others = [one.name for one in self._sim.nodes if one is not node]
        for other in others:
            self._sim.network.cut(node.name, other)
        self._etcd.cut(node.name)
        await self._a_while(8)
        for other in others:
            self._sim.network.heal(node.name, other)
        self._etcd.heal(node.name)

    async def _cut_from_clients(self, node: SimulatedNode) -> None:
        names = sorted({each.name for each in self._stage.processes})
        both_ways = self._dice.random() < 0.5
        for name in names:
            self._sim.network.cut(name, node.name, both_ways=both_ways)
        await self._a_while()
        for name in names:
            self._sim.network.heal(name, node.name)

    async def _reset(self, node: SimulatedNode) -> None:
        self._sim.network.reset(node.name)

    # -- etcd

    async def _cut_from_etcd(self, node: SimulatedNode) -> None:
        self._etcd.cut(node.name, requests=self._dice.random() < 0.7)
        await self._a_while(8)
        self._etcd.heal(node.name)

    async def _etcd_weather(self, _: SimulatedNode) -> None:
        """Lost, late, and done without an answer; watches that break."""
        for node in self._sim.nodes:
            weather = self._etcd.weather_of(node.name)
            weather.unanswered, weather.lost, weather.late, weather.broken = 0.2, 0.1, 0.1, 0.1
        await self._a_while()
        self._etcd.forget_weathers()

    async def _pause_etcd(self, _: SimulatedNode) -> None:
        self._etcd.pause()
        await self._a_while()
        self._etcd.go_on()

    async def _kill_etcd(self, _: SimulatedNode) -> None:
        self._etcd.kill()
        await self._a_while()
        self._etcd.go_on()

    async def _compact_etcd(self, node: SimulatedNode) -> None:
        """While a node does not hear it."""
        self._etcd.cut(node.name)
        await self._a_while(3)
        self._etcd.compact()
        self._etcd.heal(node.name)

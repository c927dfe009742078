"""A cluster in trouble: programs produce, consume, transact and work while nodes are killed, paused, lose power, are
cut from each other and from etcd, stop and start. When all is well again, everything is served, whatever programs were
told is true, and copies are the same. A seed draws which programs run, and what happens to the nodes.
"""

import asyncio
from typing import Any

from goqueue.testing.simulation import Process, Simulation
from goqueue.testing.virtual_loop import let_pass
from tests.sim.storms.delays import Delays
from tests.sim.storms.groups import Groups
from tests.sim.storms.invariants import check_copies, check_standbys, settled
from tests.sim.storms.logs import Logs
from tests.sim.storms.queues import HttpQueue, SqsQueue, WorkerQueue
from tests.sim.storms.stage import QUIET_S_MAX, Program, Stage, Work
from tests.sim.storms.transactions import Transactions
from tests.sim.storms.troubles import Troubles
from tools.nemesis.history import Operation
from tools.nemesis.judge import Healed, judge

SEEDS = range(1, 31)
PROGRAMS: tuple[type[Program], ...] = (Logs, Transactions, Groups, HttpQueue, SqsQueue, WorkerQueue, Delays)
AT_ONCE = 2
"""So many of them run in one storm."""
SERVED_S_MAX = 30


class ClusterStorm:
    def __init__(self, simulation: Simulation, programs: list[Program] | None = None) -> None:
        self._sim = simulation
        self._stage = Stage(simulation)
        dice = simulation.dice("programs")
        self.programs = programs or [kind() for kind in dice.sample(PROGRAMS, AT_ONCE)]
        self.troubles = Troubles(self._stage)
        self.history: list[Operation] = []

    async def run(self) -> None:
        await let_pass(2)
        for program in self.programs:
            await program.prepare(self._stage)
        works = [
            self._begin(name, work) for program in self.programs for name, work in program.works(self._stage).items()
        ]
        await let_pass(1)
        await self.troubles.run()
        healed = self._sim.loop.time()
        await self._served(healed, works)
        ended = self._sim.loop.time()
        self._stage.is_ending = True
        async with asyncio.timeout(QUIET_S_MAX):
            await asyncio.gather(*works)
        await settled(self._sim)
        for program in self.programs:
            await program.finish(self._stage)
        self._judge(healed, ended)
        check_copies(self._sim)
        check_standbys(self._sim)
        assert not self._sim.loop.exceptions, self._sim.loop.exceptions

    def _begin(self, name: str, work: Work) -> "asyncio.Task[Any]":
        me: Process = self._stage.process(name)
        return me.spawn(work(me))

    async def _served(self, healed: float, works: "list[asyncio.Task[Any]]") -> None:
        """Everybody gets an answer again."""
        asked = {one.what for one in self._stage.history() if one.is_ok} - {"assigned"}
        served: set[str] = set()
        for _ in range(SERVED_S_MAX):
            await let_pass(1)
            for work in works:
                if work.done():
                    work.result()
            served = {one.what for one in self._stage.history() if one.is_ok and one.began > healed}
            if asked <= served | {"cancel"}:
                return
        raise AssertionError(f"not served {SERVED_S_MAX} s after the trouble: {sorted(asked - served)}")

    def _judge(self, healed: float, ended: float) -> None:
        self.history = self._stage.history()
        verdict = judge(self.history, self.troubles.windows, Healed(healed, ended), self._stage.wall_ahead_s)
        assert not verdict.faults, verdict.report


async def cluster_storm(simulation: Simulation) -> None:
    storm = ClusterStorm(simulation)
    await storm.run()
    ok = sum(one.is_ok for one in storm.history)
    assert ok > 20, f"{ok} of {len(storm.history)} operations succeeded: nothing was tried"

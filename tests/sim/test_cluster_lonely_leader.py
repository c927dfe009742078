"""A leader that is cut off from the others and from etcd, but not from its clients: another one leads by now, and what
the first would lease is settled there. Ten seeds of storms missed a leader that leases all the same; this finds it.
"""

import pytest

from goqueue.testing.simulation import Simulation
from tests.sim.cluster.mutants_elsewhere import no_freshness_for_leases
from tests.sim.storms.stage import Http, NotDone, Stage, Unanswered
from tools.nemesis.check_queue import check_queues
from tools.nemesis.history import Fault

QUEUE, GROUP = "jobs", {"group": "crew", "max_messages": 5, "start": "earliest"}
ELECTED = "15s"

pytestmark = pytest.mark.second_layer


class Schedule:
    """Two messages: one is settled at the first leader, one at the second, and then the first is asked once more."""

    def __init__(self, sim: Simulation) -> None:
        assert sim.etcd is not None
        self._sim, self._etcd, self._stage = sim, sim.etcd, Stage(sim)

    async def run(self) -> list[Fault]:
        sim = self._sim
        await sim.let_pass("3s")
        await self._stage.make_topic(QUEUE, 1)
        await self._publish("one")
        lonely = sim.nodes[0].broker.topics.image.placement(QUEUE, 0).leader - 1
        assert await self._receive(lonely) == 1, "it leases while it leads"
        await self._publish("two")
        self._etcd.cut(sim.nodes[lonely].name)
        others = [number for number in range(len(sim.nodes)) if number != lonely]
        for number in others:
            sim.network.cut(sim.nodes[lonely].name, sim.nodes[number].name)
        await sim.let_pass(ELECTED)
        assert await self._receive(others[0]) == 1, "the next leader leases what is left"
        await sim.let_pass("1s")
        await self._receive(lonely)
        return check_queues(self._stage.history(), [])

    async def _publish(self, message: str) -> None:
        asking = self._stage.book.begin("publisher", "publish", queue=QUEUE, id=message, door="http")
        async with Http(self._stage, self._stage.process("publisher")) as http:
            told = await http.ask("POST", f"/topics/{QUEUE}/messages", {"messages": [{"value": message}]})
        assert not told["results"][0].get("error")
        asking.ok()

    async def _receive(self, node: int) -> int:
        """How many messages this node leases to a worker of its own, who acknowledges them there."""
        stage, name = self._stage, f"worker-{node}"
        async with Http(stage, stage.process(name), node) as http:
            asking = stage.book.begin(name, "receive", queue=QUEUE, door="http")
            try:
                told = (await http.ask("POST", f"/topics/{QUEUE}/receive", GROUP))["messages"]
            except (NotDone, Unanswered) as error:
                asking.unknown(error)
                return 0
            leased = [{"id": one["value"], "receipt": one["receipt_handle"], "lease_ms": 0} for one in told]
            asking.ok(messages=leased)
            for one in leased:
                about = {"id": one["id"], "receipt": one["receipt"], "how": "ack"}
                settling = stage.book.begin(name, "settle", queue=QUEUE, **about, door="http")
                try:
                    await http.ask("POST", "/messages/ack", {"receipt_handle": one["receipt"]})
                except (NotDone, Unanswered) as error:
                    settling.unknown(error)
                else:
                    settling.ok()
        return len(leased)


def faults() -> list[Fault]:
    found: list[Fault] = []

    async def scenario(sim: Simulation) -> None:
        found.extend(await Schedule(sim).run())

    Simulation(1, nodes=3, cluster=True).run(scenario)
    return found


def test_a_leader_that_was_cut_off_leases_nothing() -> None:
    assert faults() == []


def test_a_leader_that_leases_without_being_fresh_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    no_freshness_for_leases(monkeypatch)
    assert [each.kind for each in faults()] == ["after settled"]

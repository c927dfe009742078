"""A reader is not kept from a partition that has moved by its fetch of others, which waits for records."""

from goqueue.broker.reading.wants import Limits, Want
from goqueue.client.admin import Admin
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Simulation

ORDERS = "orders"
PARTITIONS = 6
WAIT_MS = 5000
SLACK_S = 0.02


class Reads:
    """Of one partition in which nothing happens, on one node, when each was answered."""

    def __init__(self, sim: Simulation, node: SimulatedNode, partition: int) -> None:
        self._sim, self._node, self._partition = sim, node, partition
        self.answered_s: list[float] = []

    def begin(self) -> None:
        self._node.broker.fetcher.fetch(
            [Want(ORDERS, self._partition, 0, 1000)],
            Limits(1, 1000, WAIT_MS),
            lambda _answer: self.answered_s.append(self._sim.loop.time()),
        )


def test_fetches_that_wait_are_answered_when_their_node_takes_over_and_wait_only_shortly_for_a_moment() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("8s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            for topic in (ORDERS, "others"):
                await admin.create_topic(topic, partitions=PARTITIONS)
        await sim.let_pass("1s")
        heir, leaving = sim.nodes[0], sim.nodes[1]

        def led() -> list[int]:
            placements = heir.broker.topics.image.topics[ORDERS].placements
            return [number for number, one in enumerate(placements) if one.leader == 1]

        before = led()
        reads = Reads(sim, heir, before[0])
        reads.begin()
        await sim.let_pass("1s")
        assert reads.answered_s == [], "it waits for records"
        stopping = me.spawn(leaving.stop())
        while led() == before:
            await sim.let_pass("1ms")
        assert reads.answered_s, "with the takeover"
        began_s = sim.loop.time()
        reads.begin()
        await sim.let_pass("100ms")
        assert reads.answered_s[1] - began_s < 0.05 + SLACK_S, "not for long"
        await sim.let_pass("3s")
        began_s = sim.loop.time()
        reads.begin()
        await sim.let_pass("6s")
        assert reads.answered_s[2] - began_s > WAIT_MS / 1000 - SLACK_S, "as long as it wants, when all is calm"
        await stopping
        assert not sim.loop.exceptions

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="2m")

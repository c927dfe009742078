"""How long a client of ours waits at most when the leader of its partition goes, by virtual time. What is measured on
real machines has the same bars (`make bench ONLY=failover`).
"""

from collections.abc import Callable
from itertools import pairwise

import pytest

from goqueue.client.admin import Admin
from goqueue.client.producer import Producer
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Process, Simulation
from tests.layers import rows_in_layers

ORDERS = "orders"
PARTITIONS = 6
LASTS = "9s"

Fault = Callable[[Process, SimulatedNode], object]


def kill(_me: Process, node: SimulatedNode) -> None:
    node.crash("kill")


def vanish(_me: Process, node: SimulatedNode) -> None:
    """Nobody is told: neither a reset nor a refusal comes from there."""
    node.crash("power")


def stand_still(_me: Process, node: SimulatedNode) -> None:
    """Its connections are up, and new ones are made; nothing comes back."""
    node.pause()


def stop(me: Process, node: SimulatedNode) -> object:
    return me.spawn(node.stop())


async def longest_gap(sim: Simulation, fault: Fault, under_way: int = 1) -> float:
    me = sim.process("me")
    await sim.let_pass("8s")
    async with Admin(sim.nodes[0].http, **me.ports) as admin:
        await admin.create_topic(ORDERS, partitions=PARTITIONS)
    await sim.let_pass("1s")
    placements = sim.nodes[0].broker.topics.image.topics[ORDERS].placements
    mine = [number for number, one in enumerate(placements) if one.leader == 2]
    assert mine
    times: dict[int, list[float]] = {number: [] for number in mine}
    is_over = False
    servers = [node.kafka for node in sim.nodes]
    async with Producer(servers, linger_ms=0, request_timeout="1500ms", **me.ports) as producer:

        async def send(number: int) -> None:
            while not is_over:
                await producer.send(ORDERS, b"beat", partition=number)
                times[number].append(sim.loop.time())
                await sim.let_pass("10ms")

        senders = [me.spawn(send(number)) for number in mine for _ in range(under_way)]
        await sim.let_pass("1s")
        kept = fault(me, sim.nodes[1])
        await sim.let_pass(LASTS)
        is_over = True
        for sender in senders:
            await sender
        del kept
    return max(after - before for each in times.values() for before, after in pairwise(each))


@pytest.mark.parametrize(
    ("seed", "fault", "under_way", "seconds_max"),
    rows_in_layers(
        [(5, stop, 1, 0.3), (5, kill, 1, 2.0), (5, vanish, 1, 5.0), (6, vanish, 1, 5.0), (5, stand_still, 5, 4.0)],
        first=2,
    ),
    ids=["stop", "kill", "vanish", "vanish, asked for metadata too", "stand still, much under way"],
)
def test_a_client_waits_no_longer_than_this_when_a_leader_goes(
    seed: int, fault: Fault, under_way: int, seconds_max: float
) -> None:
    async def scenario(sim: Simulation) -> None:
        assert await longest_gap(sim, fault, under_way) <= seconds_max
        assert not sim.loop.exceptions

    Simulation(seed=seed, nodes=3, cluster=True).run(scenario, limit="2m")

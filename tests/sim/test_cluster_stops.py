"""Nodes that stop one after the other, while clients of HTTP publish through all of them: nobody is told of an error,
and nothing is there twice.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from goqueue.client.admin import Admin
from goqueue.client.consumer import Consumer
from goqueue.client.http import Http
from goqueue.cluster import isr
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Process, Simulation
from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations.table import OPERATIONS
from tests.sim.test_cluster_handing_over import ORDERS, made, replica_of

BY_NAME: dict[str, Operation[Any]] = {each.name: each for each in OPERATIONS}


@asynccontextmanager
async def client_of(me: Process, *nodes: SimulatedNode) -> AsyncIterator[Http]:
    http = Http(",".join(node.http for node in nodes), **me.ports)
    try:
        yield http
    finally:
        await http.close()


async def publish(http: Http, values: list[str], topic: str = ORDERS) -> list[str]:
    """The errors."""
    given = {"topic": topic, "messages": [{"key": each, "value": each} for each in values]}
    reply = await http.call(BY_NAME["publish"], given)
    return [each.error for each in reply.results if isinstance(each.error, str)]


async def stored(sim: Simulation, me: Process, count: int, topic: str = ORDERS) -> list[str]:
    async with Consumer([node.kafka for node in sim.nodes], topic, **me.ports) as consumer:
        return sorted([((await anext(consumer)).value or b"").decode() for _ in range(count)])


@pytest.mark.parametrize("is_asked", ["the leader", "another node"])
def test_a_message_that_comes_while_its_leader_hands_over_is_published_once(is_asked: str) -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        leader = await made(sim, me)
        other = next(node for node in sim.nodes if node is not leader)
        async with client_of(me, leader if is_asked == "the leader" else other) as http:
            replica_of(leader, ORDERS, 0).rest()  # as the stop does
            publishing = me.spawn(publish(http, ["a", "b"]))
            await sim.let_pass("100ms")
            await leader.stop()
            assert await publishing == []
        assert await stored(sim, me, 2) == ["a", "b"]
        assert other.broker.topics.image.placement(ORDERS, 0).leader != leader.number
        assert end_of(sim, leader) == 2
        assert not sim.loop.exceptions

    Simulation(seed=4, nodes=3, cluster=True).run(scenario, limit="2m")


def test_whoever_waits_for_messages_at_a_node_that_stops_is_told_that_there_are_none() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        leader = await made(sim, me)
        async with client_of(me, leader) as http:
            given = {"topic": ORDERS, "group": "workers", "wait": "1m"}
            receiving = me.spawn(http.call(BY_NAME["receive_messages"], given))
            await sim.let_pass("1s")
            assert not receiving.done()
            await leader.stop()
            assert (await receiving).messages == []
        assert not sim.loop.exceptions

    Simulation(seed=6, nodes=3, cluster=True).run(scenario, limit="2m")


def end_of(sim: Simulation, stopped: SimulatedNode) -> int:
    return next(replica_of(node, ORDERS, 0).end_offset for node in sim.nodes if node is not stopped)


def test_a_message_that_is_not_acknowledged_when_its_leader_goes_is_so_by_the_next_one() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        leader = await made(sim, me)
        followers = [node for node in sim.nodes if node is not leader]
        # Longer than a hand-over waits for all copies, shorter than it waits for one.
        followers[1].sync_ms = (150.0, 160.0)
        async with client_of(me, leader) as http:
            assert await publish(http, ["first"]) == []
            publishing = me.spawn(publish(http, ["a"]))
            while replica_of(leader, ORDERS, 0).end_offset < 2:
                await sim.let_pass("1ms")
            await leader.stop()
            assert await publishing == []
        assert await stored(sim, me, 2) == ["a", "first"]
        assert end_of(sim, leader) == 2
        assert not sim.loop.exceptions

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="2m")


@pytest.mark.second_layer
def test_clients_of_http_see_no_error_while_all_nodes_are_restarted() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("8s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic(ORDERS, partitions=6)
        await sim.let_pass("1s")
        for node in sim.nodes:
            node.sync_ms = (5.0, 80.0)
        is_over = asyncio.Event()
        told: list[str] = []

        async def user(number: int) -> None:
            async with client_of(me, *sim.nodes[number:], *sim.nodes[:number]) as http:
                count = 0
                while not is_over.is_set():
                    values = [f"{number}-{count}", f"{number}-{count + 1}"]
                    assert await publish(http, values) == []
                    told.extend(values)
                    count += 2

        users = [me.spawn(user(number)) for number in range(3)]
        for node in sim.nodes:
            await node.restart()
            await sim.let_pass("5s")
        is_over.set()
        for each in users:
            await each
        assert await stored(sim, me, len(told)) == sorted(told)
        ends = sum(max(replica_of(node, ORDERS, number).end_offset for node in sim.nodes) for number in range(6))
        assert ends == len(told)
        assert not sim.loop.exceptions

    Simulation(seed=1, nodes=3, cluster=True).run(scenario, limit="5m")


def test_a_node_that_stops_leaves_the_in_sync_replicas_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes time on all nodes from those that are being served."""
    partitions, per_turn, leaders = 60, 3, 2
    monkeypatch.setattr(isr, "LEFT_PER_TURN", per_turn)

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("8s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic(ORDERS, partitions=partitions)
        await sim.let_pass("3s")
        stopping, watching = sim.nodes[1], sim.nodes[0].broker.cluster
        stopping_now = me.spawn(stopping.stop())
        numbers: list[int] = []

        def isrs() -> int:
            return sum(2 in one.isr for one in watching.image.topics[ORDERS].placements)

        while watching.held()[2][0]:
            await sim.let_pass("10ms")
        while isrs():
            numbers.append(isrs())
            await sim.let_pass("100ms")
        left = [before - after for before, after in pairwise([*numbers, 0])]
        assert max(left) <= 2 * leaders * per_turn, left  # two turns may be seen at once
        assert sum(left) >= partitions / 2, left
        await stopping_now
        assert not sim.loop.exceptions

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="2m")

"""A leader that stands still is replaced when its session ends. Until then nobody is sent to it who comes after it fell
silent, and nobody waits for its answer once others lead.
"""

import asyncio
import json

from goqueue.client.admin import Admin
from goqueue.client.exchange import Answer, Ask, PlainExchange
from goqueue.client.loop_streams import LoopStreams
from goqueue.model.placements import NodeInfo
from goqueue.testing.simulated_node import HTTP_PORT
from goqueue.testing.simulation import Process, Simulation

ORDERS = "orders"
PARTITIONS = 6
ANY_NODE, SILENT = 0, 1
"""Which of the nodes is asked, and which one stands still."""


async def made(sim: Simulation, me: Process) -> int:
    """A partition that the node leads that will be silent."""
    await sim.let_pass("8s")
    async with Admin(sim.nodes[ANY_NODE].http, **me.ports) as admin:
        await admin.create_topic(ORDERS, partitions=PARTITIONS)
    await sim.let_pass("1s")
    placements = sim.nodes[ANY_NODE].broker.topics.image.topics[ORDERS].placements
    return next(number for number, one in enumerate(placements) if one.leader == sim.nodes[SILENT].number)


async def publish(sim: Simulation, partition: int, value: str) -> Answer:
    exchange = PlainExchange(sim.nodes[ANY_NODE].name, HTTP_PORT, 20.0, LoopStreams(sim.network.at("me")))
    body = json.dumps({"messages": [{"value": value, "partition": partition}]}).encode()
    headers = {"content-type": "application/json"}
    try:
        return await exchange.ask(Ask("POST", f"/v1/topics/{ORDERS}/messages", headers, body, 20.0))
    finally:
        await exchange.close()


def silent(sim: Simulation) -> NodeInfo | None:
    return sim.nodes[ANY_NODE].broker.topics.image.nodes.get(sim.nodes[SILENT].number)


def is_suspected(sim: Simulation) -> bool:
    node = silent(sim)
    return node is not None and sim.nodes[ANY_NODE].broker.cluster.is_suspected(node)


def test_what_comes_while_a_leader_is_silent_is_stored_by_the_next_one() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        partition = await made(sim, me)
        sim.nodes[SILENT].pause()
        await sim.let_pass("1900 ms")
        assert is_suspected(sim)
        publishing = me.spawn(publish(sim, partition, "late"))
        await sim.let_pass("100 ms")
        assert silent(sim) is not None, "its session has not ended yet"
        answer = await publishing
        assert answer.status == 200
        (told,) = json.loads(answer.body)["results"]
        assert (told["partition"], told["offset"]) == (partition, 0)
        leader = sim.nodes[ANY_NODE].broker.topics.image.placement(ORDERS, partition).leader
        assert leader != sim.nodes[SILENT].number
        sim.nodes[SILENT].resume()
        await sim.let_pass("5s")
        assert not sim.loop.exceptions

    Simulation(seed=1, nodes=3, cluster=True).run(scenario, limit="2m")


def test_nobody_waits_for_the_answer_of_a_leader_that_was_replaced() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        partition = await made(sim, me)
        publishing = me.spawn(publish(sim, partition, "first"))
        assert (await publishing).status == 200
        sim.nodes[SILENT].pause()
        publishing = me.spawn(publish(sim, partition, "into the void"))
        while silent(sim) is not None:
            assert not publishing.done(), "it may still be answered"
            await sim.let_pass("50 ms")
        await sim.let_pass("500 ms")
        (told,) = json.loads((await asyncio.wait_for(publishing, 0.1)).body)["results"]
        assert told["error"] == "node 2: its session has ended, and it does not answer"
        sim.nodes[SILENT].resume()
        await sim.let_pass("5s")
        assert not sim.loop.exceptions

    Simulation(seed=2, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_leader_that_goes_on_in_time_leads_on_and_clients_are_sent_to_it_again() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        partition = await made(sim, me)
        before = sim.nodes[ANY_NODE].broker.topics.image.placement(ORDERS, partition)
        sim.nodes[SILENT].pause()
        await sim.let_pass("1900 ms")
        assert is_suspected(sim)
        publishing = me.spawn(publish(sim, partition, "held"))
        sim.nodes[SILENT].resume()
        await sim.let_pass("300 ms")
        assert not is_suspected(sim)
        assert (await publishing).status == 200
        after = sim.nodes[ANY_NODE].broker.topics.image.placement(ORDERS, partition)
        assert (after.leader, after.epoch) == (before.leader, before.epoch)
        assert not sim.loop.exceptions

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="2m")

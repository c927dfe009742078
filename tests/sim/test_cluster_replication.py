"""Whole nodes with three copies of everything: what was acknowledged outlives its leader, whoever leads next has it,
and a node that comes back gives up what nobody else has.
"""

import asyncio
from collections.abc import Callable

import pytest

from goqueue.client.admin import Admin
from goqueue.client.consumer import Consumer
from goqueue.client.producer import Producer
from goqueue.model.placements import Placement
from goqueue.replica.replica import Replica
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Process, Simulation

Sent = set[tuple[int, int, bytes | None]]
PARTITIONS = 3


def replica_of(node: SimulatedNode, partition: int) -> Replica:
    found = node.replicas.get("orders", partition)
    assert found is not None
    return found


def placements(node: SimulatedNode) -> tuple[Placement, ...]:
    topic = node.broker.topics.image.topics.get("orders")
    return () if topic is None else topic.placements


async def until(sim: Simulation, is_so: Callable[[], bool], seconds: float = 30) -> float:
    """How long it took."""
    began_s = sim.loop.time()
    while not is_so():
        assert sim.loop.time() - began_s < seconds, "it did not come to that"
        await sim.let_pass("5 ms")
    return sim.loop.time() - began_s


async def make(sim: Simulation, me: Process) -> None:
    await sim.let_pass("3 s")
    async with Admin(sim.nodes[0].http, **me.ports) as admin:
        await admin.create_topic("orders", partitions=PARTITIONS)
    await until(sim, lambda: all(len(placements(node)) == PARTITIONS for node in sim.nodes))


async def send(sim: Simulation, me: Process, node: SimulatedNode, numbers: range) -> Sent:
    sent: Sent = set()
    async with Producer(node.kafka, **me.ports) as producer:
        receipts = await asyncio.gather(
            *(producer.send("orders", b"%d" % number, key=b"key-%d" % number) for number in numbers)
        )
    for number, receipt in zip(numbers, receipts, strict=True):
        sent.add((receipt.partition, receipt.offset, b"%d" % number))
    assert sim.loop.exceptions == []
    return sent


async def read_all(me: Process, node: SimulatedNode, count: int) -> Sent:
    read: Sent = set()
    async with Consumer(node.kafka, "orders", **me.ports) as consumer:
        while len(read) < count:
            for message in await consumer.poll(timeout="1s"):
                read.add((message.partition, message.offset, message.value))
    return read


def all_in_sync(node: SimulatedNode) -> bool:
    return all(len(one.isr) == 3 for one in placements(node))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("crash", ["kill", "power"])
def test_what_was_acknowledged_outlives_its_leader(seed: int, crash: str) -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await make(sim, me)
        sent = await send(sim, me, sim.nodes[0], range(60))
        dead = sim.nodes[placements(sim.nodes[0])[0].leader - 1]
        others = [node for node in sim.nodes if node is not dead]
        dead.crash("kill" if crash == "kill" else "power")
        took_s = await until(sim, lambda: all(one.leader != dead.number for one in placements(others[0])))
        assert took_s < (1 if crash == "kill" else 6)
        sent |= await send(sim, me, others[0], range(60, 120))
        assert await read_all(me, others[1], len(sent)) == sent
        await dead.start()
        await until(sim, lambda: all_in_sync(others[0]))
        for number in range(PARTITIONS):
            ends = {replica_of(node, number).end_offset for node in sim.nodes}
            assert len(ends) == 1
            assert not replica_of(dead, number).is_doubtful
        assert await read_all(me, dead, len(sent)) == sent

    Simulation(seed=seed, nodes=3, cluster=True).run(scenario, limit="5m")


def test_one_node_after_the_other_may_die_and_come_back() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await make(sim, me)
        sent: Sent = set()
        for turn, node in enumerate(sim.nodes):
            sent |= await send(sim, me, node, range(turn * 40, turn * 40 + 20))
            node.crash("kill")
            other = sim.nodes[(turn + 1) % 3]
            await until(sim, lambda node=node, other=other: all(p.leader != node.number for p in placements(other)))  # type: ignore[misc]
            sent |= await send(sim, me, other, range(turn * 40 + 20, turn * 40 + 40))
            await node.start()
            await until(sim, lambda other=other: all_in_sync(other))  # type: ignore[misc]
        assert await read_all(me, sim.nodes[0], len(sent)) == sent

    Simulation(seed=11, nodes=3, cluster=True).run(scenario, limit="5m")


def test_a_leader_that_is_cut_off_gives_up_what_nobody_else_has() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await make(sim, me)
        sent = await send(sim, me, sim.nodes[0], range(30))
        alone = sim.nodes[placements(sim.nodes[0])[0].leader - 1]
        others = [node for node in sim.nodes if node is not alone]
        for node in others:
            sim.network.cut(alone.name, node.name)
        assert sim.etcd is not None
        sim.etcd.cut(alone.name)
        replica = replica_of(alone, 0)
        before = replica.end_offset
        await until(sim, lambda: all(one.leader != alone.number for one in placements(others[0])))
        sent |= await send(sim, me, others[0], range(30, 60))
        await until(sim, lambda: not replica_of(alone, 0).is_fresh)
        sim.network.heal()
        sim.etcd.heal(alone.name)
        await until(sim, lambda: all_in_sync(others[0]))
        assert before <= replica_of(alone, 0).end_offset
        assert await read_all(me, alone, len(sent)) == sent

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="5m")


def test_metrics_tell_how_far_a_follower_is_behind_and_what_was_copied() -> None:
    def told(node: SimulatedNode, name: str) -> dict[tuple[str, ...], float]:
        return dict(node.broker.metrics.page().column(f"goqueue_cluster_{name}"))

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await make(sim, me)
        away = sim.nodes[2]
        leaders = sim.nodes[:2]
        away.crash("kill")
        await until(sim, lambda: all(one.leader != away.number for one in placements(leaders[0])))
        sent = await send(sim, me, leaders[0], range(60))
        most = max(sum(1 for partition, _, _ in sent if partition == number) for number in range(PARTITIONS))
        lags = [told(node, "replica_lag_messages").get((str(away.number),), 0) for node in leaders]
        assert max(lags) == most
        await away.start()
        await until(sim, lambda: all_in_sync(leaders[0]))
        assert {told(node, "replica_lag_messages")[str(away.number),] for node in leaders} == {0}
        assert told(away, "replicated_bytes_total")[()] > sum(len(value or b"") for _, _, value in sent)
        assert told(away, "replica_fetches_total")[()] > 0

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="5m")

"""After etcd was restored from a backup all stands still, until an operator has seen what the nodes hold and has said
with what to go on."""

from typing import Any

import pytest

from goqueue.client import HttpRefused
from goqueue.client.admin import Admin
from goqueue.client.producer import Producer
from goqueue.testing.simulation import Simulation
from goqueue.wire.rest.operations.cluster import CLUSTER_HEALTH, RECOVER_CLUSTER
from tests.sim.cluster.checker import values

ORDERS = "orders"


async def restored(sim: Simulation) -> list[bytes]:
    """Everything is led by epochs of which etcd does not know; what was acknowledged is returned. All are down."""
    await sim.let_pass("2s")
    assert sim.etcd is not None
    me, sent = sim.process("me"), []
    servers = [node.kafka for node in sim.nodes]
    async with Admin(sim.nodes[0].http, **me.ports) as admin:
        await admin.create_topic(ORDERS, partitions=1)
    await sim.let_pass("2s")
    backup = sim.etcd.backup()
    async with Producer(servers, **me.ports) as producer:
        for number in range(3):
            leader = sim.nodes[0].broker.topics.image.topics[ORDERS].placements[0].leader
            sim.nodes[leader - 1].crash("kill")
            sent.append(b"%d" % number)
            await producer.send(ORDERS, sent[-1])
            await sim.nodes[leader - 1].start()
            await sim.let_pass("12s")
    for node in sim.nodes:
        node.crash("kill")
    sim.etcd.restore(backup)
    await sim.let_pass("6s")
    return sent


def stored(sim: Simulation, number: int) -> list[Any]:
    replica = sim.nodes[number].broker.topics.find_replica(ORDERS, 0)
    assert replica is not None
    return values(replica.log, 0, 100)


def test_what_was_acknowledged_is_there_when_all_goes_on_after_a_restored_etcd() -> None:
    async def scenario(sim: Simulation) -> None:
        sent = await restored(sim)
        for node in sim.nodes:
            await node.start()
        await sim.let_pass("10s")
        me = sim.process("operator")
        async with Admin(sim.nodes[1].http, **me.ports) as admin:
            with pytest.raises(HttpRefused, match="503"):
                await admin.call(CLUSTER_HEALTH)
            seen = await admin.call(RECOVER_CLUSTER)
            assert (seen.is_done, seen.missing_nodes, seen.left) == (False, [], [])
            (orders,) = [one for one in seen.partitions if one.topic == ORDERS]
            assert {copy.end_offset for copy in orders.copies} == {3}
            await sim.let_pass("5s")
            assert sim.nodes[0].broker.cluster.halted(), "a dry run changes nothing"
            done = await admin.call(RECOVER_CLUSTER, dry_run=False, reason="the backup of noon")
            assert done.is_done
            await sim.let_pass("15s")
            with pytest.raises(HttpRefused, match="not halted"):
                await admin.call(RECOVER_CLUSTER, dry_run=False)
        assert [node.broker.cluster.halted() for node in sim.nodes] == [""] * 3
        placement = sim.nodes[0].broker.topics.image.topics[ORDERS].placements[0]
        assert sorted(placement.isr) == [1, 2, 3]
        assert placement.epoch > orders.copies[0].last_epoch
        assert [(lost.offset, lost.why) for lost in placement.lost] == [(3, "the backup of noon")]
        async with Producer([node.kafka for node in sim.nodes], **me.ports) as producer:
            await producer.send(ORDERS, b"after")
        await sim.let_pass("2s")
        assert [stored(sim, number) for number in range(3)] == [[*sent, b"after"]] * 3
        sim.nodes[2].crash("kill")
        await sim.nodes[2].start()
        await sim.let_pass("5s")
        assert not sim.nodes[0].broker.cluster.halted(), "what a node has noted before counts no more"

    Simulation(seed=11, nodes=3, cluster=True).run(scenario, limit="5m")


def test_a_node_that_is_not_there_has_to_be_given_up_and_halts_nobody_when_it_comes_back() -> None:
    async def scenario(sim: Simulation) -> None:
        sent = await restored(sim)
        for node in sim.nodes[:2]:
            await node.start()
        await sim.let_pass("10s")
        me = sim.process("operator")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            with pytest.raises(HttpRefused, match="nodes 3 have not told what they hold"):
                await admin.call(RECOVER_CLUSTER, dry_run=False)
            chosen = [{"topic": ORDERS, "partition": 0, "node_id": 2}]
            assert (await admin.call(RECOVER_CLUSTER, dry_run=False, without=[3], choices=chosen)).is_done
        await sim.let_pass("5s")
        placement = sim.nodes[0].broker.topics.image.topics[ORDERS].placements[0]
        assert (placement.leader, placement.lost[0].leader) == (2, 2)
        await sim.nodes[2].start()
        await sim.let_pass("20s")
        assert [node.broker.cluster.halted() for node in sim.nodes] == [""] * 3
        assert [stored(sim, number) for number in range(3)] == [sent] * 3
        assert sorted(sim.nodes[0].broker.topics.image.topics[ORDERS].placements[0].isr) == [1, 2, 3]

    Simulation(seed=12, nodes=3, cluster=True).run(scenario, limit="5m")

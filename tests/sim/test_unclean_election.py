"""Where no replica in sync is left, an operator may let another one lead, and what may be gone is told."""

from typing import Any

import pytest

from goqueue.client import HttpRefused
from goqueue.client.admin import Admin
from goqueue.client.producer import Producer
from goqueue.model.refusal import NotLeader
from goqueue.records.batch import check_batch
from goqueue.records.build import build_batch
from goqueue.testing.simulation import Simulation
from goqueue.wire.rest.operations.cluster import ELECT_UNCLEAN


def test_a_replica_that_is_not_in_sync_leads_only_if_an_operator_says_so_and_none_in_sync_is_alive() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        await sim.let_pass("2s")
        placement = sim.nodes[0].broker.topics.image.topics["orders"].placements[0]
        behind = placement.replicas[-1]
        servers = [node.kafka for node in sim.nodes]
        async with Producer(servers, **me.ports) as producer:
            await producer.send("orders", b"kept")
            sim.nodes[behind - 1].crash("kill")
            await sim.let_pass("15s")  # it falls out of sync
            await producer.send("orders", b"lost")
        others = [node for number, node in enumerate(sim.nodes, 1) if number != behind]
        for node in others:
            node.crash("kill")
        alone = sim.nodes[behind - 1]
        await alone.start()
        await sim.let_pass("10s")
        assert [each.state for each in alone.broker.cluster.placed("orders")] == ["offline"], "nobody may lead it"
        async with Admin(alone.http, **me.ports) as admin:
            told = await admin.call(ELECT_UNCLEAN, topic="orders", partition=0, unclean=True, reason="two disks burnt")
            assert told.node_id == behind
            await sim.let_pass("2s")
            (placed,) = alone.broker.cluster.placed("orders")
            assert (placed.placement.leader, placed.placement.isr) == (behind, (behind,))
            assert [(lost.leader, lost.why) for lost in placed.placement.lost] == [(behind, "two disks burnt")]
            assert alone.broker.cluster.unclean_elections == 1
            with pytest.raises(HttpRefused, match=f"node {behind} leads it"):
                await admin.call(ELECT_UNCLEAN, topic="orders", partition=0, unclean=True, reason="")

    Simulation(seed=4, nodes=3, cluster=True).run(scenario, limit="5m")


def left_alone(sim: Simulation, allowed: str) -> Any:
    """Two nodes with all records burn; the third, which lacks one, is started. Returns its broker."""

    async def scenario() -> Any:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=1, unclean_leader_election_enable=allowed)
        await sim.let_pass("2s")
        behind = sim.nodes[0].broker.topics.image.topics["orders"].placements[0].replicas[-1]
        async with Producer([node.kafka for node in sim.nodes], **me.ports) as producer:
            await producer.send("orders", b"kept")
            sim.nodes[behind - 1].crash("kill")
            await sim.let_pass("15s")
            await producer.send("orders", b"lost")
        for number, node in enumerate(sim.nodes, 1):
            if number != behind:
                node.crash("kill")
        alone = sim.nodes[behind - 1]
        await alone.start()
        await sim.let_pass("20s")
        assert [each.state for each in alone.broker.cluster.placed("orders")] == ["offline"]
        await sim.let_pass("30s")
        return alone

    return scenario()


def test_a_topic_that_allows_it_is_led_by_a_replica_that_is_not_in_sync_after_a_while() -> None:
    async def scenario(sim: Simulation) -> None:
        alone = await left_alone(sim, "true")
        (placed,) = alone.broker.cluster.placed("orders")
        assert placed.placement.leader == alone.broker.identity.node_id
        assert placed.placement.isr == (alone.broker.identity.node_id,)
        (lost,) = placed.placement.lost
        assert (lost.leader, lost.offset) == (alone.broker.identity.node_id, 1)
        assert "unclean.leader.election.enable" in lost.why
        ledgers = {each.state for each in alone.broker.cluster.placed() if each.topic.name.startswith("@")}
        assert ledgers == {"offline"}, "never a ledger of the cluster"

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="5m")


def test_a_topic_that_does_not_allow_it_waits_for_a_replica_in_sync() -> None:
    async def scenario(sim: Simulation) -> None:
        alone = await left_alone(sim, "false")
        assert [each.state for each in alone.broker.cluster.placed("orders")] == ["offline"]

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="5m")


def test_where_unclean_elections_are_allowed_a_leader_without_a_session_takes_and_gives_nothing() -> None:
    """Nobody of its ISR would know of the next leader."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        assert sim.etcd is not None
        me = sim.process("me")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=1, unclean_leader_election_enable="true")
            await admin.create_topic("safe", partitions=1)
        await sim.let_pass("2s")
        for node in sim.nodes:
            sim.etcd.cut(node.name)
        await sim.let_pass("3500ms")
        refused = {}
        for name in ("orders", "safe"):
            number = sim.nodes[0].broker.topics.image.topics[name].placements[0].leader
            replica = sim.nodes[number - 1].broker.topics.find_replica(name, 0)
            assert replica is not None
            batch = check_batch(memoryview(build_batch([(1000, None, b"x", [])])))
            (answer,) = replica.append_all([batch], 0)
            refused[name] = isinstance(answer, NotLeader), replica.is_fresh
        assert refused == {"orders": (True, False), "safe": (False, True)}

    Simulation(seed=6, nodes=3, cluster=True).run(scenario, limit="5m")

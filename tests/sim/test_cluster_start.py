"""A node of a cluster opens its logs beside its other work: what is open serves, though there is more to open."""

import asyncio

import pytest

from goqueue.broker.topics import topics
from goqueue.client import Admin, Producer
from goqueue.testing import cluster
from goqueue.testing.memory_cluster import Cluster
from goqueue.testing.simulated_node import LateWorker
from goqueue.testing.simulation import Simulation

PARTITIONS, STEP_MS = 60, 100


def test_partitions_serve_while_others_are_being_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(c: Cluster) -> None:
        numbers = range(1, 4)
        async with Admin(c.http, **c.ports) as admin:
            await admin.create_topic("orders", partitions=PARTITIONS)
        monkeypatch.setattr(topics, "PARTITIONS_PER_STEP", 2)
        monkeypatch.setattr(LateWorker, "_soon", lambda worker: worker._clock.call_after(STEP_MS, worker._next))
        for number in numbers:
            c.kill(number)
        starting = [asyncio.ensure_future(c.start(number)) for number in numbers]
        async with Producer(c.kafka, **c.ports) as producer:
            sent = await producer.send("orders", b"early", partition=0)
            opening = [number for number in numbers if c.node(number).broker.topics.is_opening]
            assert sent.offset == 0
            assert opening, "all was open before the first message was acknowledged"
            assert not c.node(opening[0]).broker.health.is_ready([])
            await asyncio.gather(*starting)
            for number in numbers:
                assert len(c.node(number).replicas) == PARTITIONS
                assert c.node(number).broker.health.is_ready([])
            await producer.send("orders", b"late", partition=PARTITIONS - 1)

    cluster(nodes=3).run(scenario)


def test_a_copy_that_served_is_in_doubt_if_the_power_goes_while_others_are_being_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last stop was in good order. Nobody may take that for the end of what was acknowledged since, unsynced."""

    async def scenario(c: Cluster) -> None:
        async with Admin(c.http, **c.ports) as admin:
            await admin.create_topic("orders", partitions=PARTITIONS, durability="os")
        await c.stop(1)
        monkeypatch.setattr(topics, "PARTITIONS_PER_STEP", 2)
        monkeypatch.setattr(LateWorker, "_soon", lambda worker: worker._clock.call_after(STEP_MS, worker._next))
        starting = asyncio.ensure_future(c.start(1))
        async with Producer(c.kafka, **c.ports) as producer:
            await producer.send("orders", b"early", partition=0)
            assert c.node(1).broker.topics.is_opening
            c.kill(1, "power")
        await starting
        await c.start(1)
        replica = c.node(1).replicas.get("orders", 0)
        assert replica is not None
        assert replica.is_doubtful

    cluster(nodes=1).run(scenario)


def test_a_node_that_is_stopped_while_it_opens_its_logs_opens_no_more_and_ends_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(c: Cluster) -> None:
        async with Admin(c.http, **c.ports) as admin:
            await admin.create_topic("orders", partitions=PARTITIONS)
        await c.stop(1)
        with monkeypatch.context() as slowly:
            slowly.setattr(topics, "PARTITIONS_PER_STEP", 2)
            slowly.setattr(LateWorker, "_soon", lambda worker: worker._clock.call_after(STEP_MS, worker._next))
            starting = asyncio.ensure_future(c.start(1))
            async with Producer(c.kafka, **c.ports) as producer:
                sent = await producer.send("orders", b"early", partition=0)
            replicas = c.node(1).replicas
            opened = len(replicas)
            assert 0 < opened < PARTITIONS
            stopping = asyncio.ensure_future(c.stop(1))
            await starting
            assert len(replicas) <= opened + 2, "what was under way was the last of it"
            await stopping
        await c.start(1)
        assert len(c.node(1).replicas) == PARTITIONS
        replica = c.node(1).replicas.get("orders", 0)
        assert replica is not None
        assert (sent.offset, replica.high_watermark) == (0, 1)
        assert not any(each.is_doubtful for each in c.node(1).replicas)

    cluster(nodes=1).run(scenario)


def test_a_node_that_waits_for_etcd_can_be_stopped() -> None:
    async def scenario(sim: Simulation) -> None:
        assert sim.etcd is not None
        await sim.let_pass("8s")
        node = sim.nodes[2]
        await node.stop()
        sim.etcd.pause()
        starting = asyncio.ensure_future(node.start())
        await sim.let_pass("2s")
        began_s = sim.loop.time()
        await node.stop()
        assert sim.loop.time() - began_s < 3, "a minute is what a start has for etcd"
        await starting
        sim.etcd.go_on()
        await node.start()
        await sim.let_pass("2s")
        assert node.broker.cluster.session_holds()
        assert not sim.loop.exceptions

    Simulation(seed=7, nodes=3, cluster=True).run(scenario, limit="2m")

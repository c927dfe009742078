"""A node is lost: whoever leads next knows what was answered, from its standbys, and goes on with what is due."""

from typing import Any

import pytest

from goqueue.broker.shards import SHARDS, shard_of_group, shard_of_transaction
from goqueue.client.admin import Admin
from goqueue.client.http import HttpRefused
from goqueue.client.producer import Producer
from goqueue.machines.delays.commands import RecurringReply
from goqueue.machines.deliveries.commands import How, Place, Settle, Settlement
from goqueue.machines.groups import commands
from goqueue.machines.groups.commands import EndTransactionOffsets
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused
from goqueue.model.transactions import Hanging
from goqueue.records.partitioners import partition_for
from goqueue.runtime.standby import StandbyCounts
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Simulation
from goqueue.testing.virtual_network import ANYWHERE
from goqueue.wire.rest.operations.cluster import CLUSTER_NODES
from tests.sim.test_cluster_coordinators import read

MINUTE_MS = 60_000

PLACE = Place("crew", "jobs", 0)


def leader(sim: Simulation, name: str, number: int, among: list[SimulatedNode]) -> SimulatedNode:
    placement = among[0].broker.topics.image.placement(name, number)
    return sim.nodes[placement.leader - 1]


async def settle(sim: Simulation, node: SimulatedNode, offsets: range) -> None:
    queues, replies = node.broker.queues, list[object]()
    queues.open(PLACE, "earliest", replies.append)
    await sim.let_pass("2s")
    assert replies == [None]
    queues.observe(PLACE)
    leased = queues.lease(PLACE, "worker", 10, None)
    assert not isinstance(leased, GoQueueError)
    settlements = tuple(Settlement(one, one, How.ACK, 0, lease=leased.lease) for one in offsets)
    queues.submit(Settle(PLACE, settlements, "worker"), replies.append)
    await sim.let_pass("2s")
    assert len(replies) == 2
    assert not isinstance(replies[1], GoQueueError)


@pytest.mark.parametrize("seed", [21, 22])
def test_what_was_answered_is_known_to_the_next_leader_and_what_is_due_is_done(seed: int) -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("3s")
        async with Admin(sim.nodes[2].http, **me.ports) as admin:
            await admin.create_topic("jobs", partitions=1)
        await sim.let_pass("3s")
        lost = leader(sim, "jobs", 0, sim.nodes)
        left = [node for node in sim.nodes if node is not lost]
        async with Producer(left[0].kafka, **me.ports) as producer:
            for number in range(4):
                await producer.send("jobs", b"%d" % number, partition=0)
            await producer.send("jobs", b"later", partition=0, delay="20s")
        await settle(sim, lost, range(2))
        coordinator = leader(sim, "@groups", shard_of_group("flock"), sim.nodes)
        committed: list[commands.CommitReply | GoQueueError] = []
        commit = commands.CommitOffsets("flock", (commands.OffsetToCommit("jobs", 0, 3),))
        coordinator.broker.groups.submit(commit, committed.append)
        await sim.let_pass("2s")
        assert not isinstance(committed[0], GoQueueError)

        lost.crash("power")
        await sim.let_pass("10s")
        heir = leader(sim, "jobs", 0, left)
        assert heir is not lost
        assert heir.broker.queues.settled_below(PLACE) == 2, "settled stays settled"
        assert heir.broker.schedules.count("jobs") == 1, "and what was delayed waits"
        keeper = leader(sim, "@groups", shard_of_group("flock"), left)
        known = {each.group_id: offsets for each, offsets in keeper.broker.groups.measured()}["flock"]
        assert [one.offset for one in known.values()] == [3]
        await sim.let_pass("20s")
        values = await read(sim, me, "jobs", 5, left[0])
        assert values == [b"0", b"1", b"2", b"3", b"later"], "fired once, by whoever leads"
        assert not sim.loop.exceptions

    Simulation(seed=seed, nodes=3, cluster=True).run(scenario, limit="5m")


def test_markers_of_a_coordinator_that_was_deposed_are_refused_by_partitions_groups_and_delays() -> None:
    """They may have been on their way for long, and the producer is in its next transaction by now."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("3s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("jobs", partitions=1)
        await sim.let_pass("1s")
        shard = shard_of_transaction("writer")
        old_epoch = sim.nodes[0].broker.topics.image.placement("@transactions", shard).epoch
        leader(sim, "@transactions", shard, sim.nodes).crash()
        await sim.let_pass("8s")
        left = [node for node in sim.nodes if node.is_up]
        async with Producer(left[0].kafka, transactional_id="writer", **me.ports) as producer:
            async with producer.transaction():
                await producer.send("jobs", b"first", partition=0)
                await producer.send_offsets({("jobs", 0): 1}, group="flock")
            await sim.let_pass("1s")
            async with producer.transaction():
                await producer.send("jobs", b"second", partition=0)
                await producer.send("jobs", b"later", partition=0, delay="2s")
                await producer.send_offsets({("jobs", 0): 2}, group="flock")
                host = leader(sim, "jobs", 0, left).broker
                (writing,) = host.topics.replica("jobs", 0).producers.describe()
                identity = writing.producer_id, writing.epoch
                done: list[object] = []
                host.transactions.markers.end_here(
                    Hanging(*identity, old_epoch, commit=False), ("jobs", 0), done.append
                )
                word = EndTransactionOffsets(*identity, False, writing.epoch, shard, old_epoch)
                left[0].broker.groups.end_transaction("flock", word, done.append)
                await sim.let_pass("1s")
                assert isinstance(done[0], Refused)
                assert done[0].code is Code.TRANSACTION_COORDINATOR_FENCED
                assert done[1] == commands.CodeReply(Code.TRANSACTION_COORDINATOR_FENCED)
        await sim.let_pass("4s")
        assert await read(sim, me, "jobs", 3, left[0]) == [b"first", b"later", b"second"]
        offsets: list[commands.FetchOffsetsReply | GoQueueError] = []
        left[0].broker.groups.ask(commands.FetchOffsets("flock", None), offsets.append)
        await sim.let_pass("1s")
        assert not isinstance(offsets[0], GoQueueError)
        assert [one.offset for one in offsets[0].offsets] == [2]
        assert not sim.loop.exceptions

    Simulation(seed=25, nodes=3, cluster=True).run(scenario, limit="5m")


def test_a_recurring_schedule_that_was_moved_does_not_run_where_a_new_leader_finds_it() -> None:
    """Not even once: its old leader was cut off and could not drop it."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("3s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("ticks", partitions=6)
        await sim.let_pass("1s")
        image = sim.nodes[0].broker.topics.image
        placements = image.topics["ticks"].placements
        partitioner = sim.nodes[0].broker.topics.partitioner(image.topics["ticks"])
        keys = {partition_for(b"%d" % n, 6, partitioner): b"%d" % n for n in range(100)}
        first = 0
        second = next(number for number in range(6) if placements[first].leader not in placements[number].replicas)
        old, new = (sim.nodes[placements[number].leader - 1] for number in (first, second))
        replies: list[RecurringReply | GoQueueError] = []
        old.broker.recurring.store(Recurring("tick", "ticks", "* * * * *", b"old", keys[first]), replies.append)
        await sim.let_pass("2s")
        await sim.let_pass((MINUTE_MS - 8000 - sim.now_ms()) % MINUTE_MS)  # eight seconds before it is due
        assert sim.etcd is not None
        sim.network.cut(old.name, ANYWHERE)
        sim.etcd.cut(old.name)
        new.broker.recurring.store(Recurring("tick", "ticks", "* * * * *", b"new", keys[second]), replies.append)
        await sim.let_pass("7s")
        assert [type(reply) for reply in replies] == [RecurringReply, RecurringReply]
        other = next(node for node in sim.nodes if node not in (old, new))
        found = leader(sim, "ticks", first, [new]).broker.schedules.of("ticks", first)
        assert found is not None, "somebody else leads it by now"
        assert [one.name for one in found.peek().recurring()] == ["tick"], "else nothing was tried"
        await sim.let_pass("50s")
        assert await read(sim, me, "ticks", 1, other) == [b"new"]
        assert [one.name for one in found.peek().recurring()] == []
        sim.network.heal()
        sim.etcd.heal()
        await sim.let_pass("20s")
        assert not sim.loop.exceptions

    Simulation(seed=26, nodes=3, cluster=True, default_replication_factor=2).run(scenario, limit="20m")


def test_every_node_tells_how_far_the_standbys_of_all_nodes_are() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("15s")
        async with Admin(sim.nodes[1].http, **me.ports) as admin:
            nodes = (await admin.call(CLUSTER_NODES)).nodes
            assert [(one.node_id, one.standbys_behind, one.standby_lag_facts) for one in nodes] == [
                (number, 0, 0) for number in (1, 2, 3)
            ]
            counts = [node.broker.cluster.standbys().standbys for node in sim.nodes]
            assert sum(counts) == 2 * (SHARDS + SHARDS + 1), "each ledger has two followers"
            sim.nodes[2].broker.cluster.standbys = lambda: StandbyCounts(22, 3, 50_000)
            nodes = (await admin.call(CLUSTER_NODES)).nodes
            assert [one.standbys_behind for one in nodes] == [0, 0, 3]
            sim.nodes[2].crash()
            nodes = (await admin.call(CLUSTER_NODES)).nodes
            assert [one.standbys_behind for one in nodes] == [0, 0, None]
        assert not sim.loop.exceptions

    Simulation(seed=27, nodes=3, cluster=True).run(scenario, limit="5m")


def test_the_next_leader_knows_ids_that_came_before_it_led() -> None:
    """What is delayed too: its id stands in another ledger. And what came while another led, to one that led before."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("3s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("jobs", partitions=1, dedup_ms=600_000)
            with pytest.raises(HttpRefused, match=r"dedup\.scope"):
                await admin.create_topic("many", partitions=2, dedup_ms=600_000)
            await admin.create_topic("keyed", partitions=2, dedup_ms=600_000, dedup_scope="key")
        await sim.let_pass("2s")
        first = leader(sim, "jobs", 0, sim.nodes)

        async def send(number: int, **options: Any) -> None:
            node = next(node for node in sim.nodes if node.is_up)
            async with Producer(node.kafka, **me.ports) as producer:
                await producer.send("jobs", b"%d" % number, headers={"gq-dedup-id": b"%d" % number}, **options)

        await send(1)
        await send(2, delay="30s")
        await sim.let_pass("1s")
        first.crash()
        await sim.let_pass("8s")
        for number in (1, 2, 3):
            await send(number)
        await first.start()
        await sim.let_pass("60s")
        second = leader(sim, "jobs", 0, sim.nodes)
        if second is not first:  # else it is the preferred leader, and leads again by now
            second.crash()
            await sim.let_pass("8s")
        for number in (1, 2, 3, 4):
            await send(number)
        left = [node for node in sim.nodes if node.is_up]
        assert await read(sim, me, "jobs", 4, left[0]) == [b"1", b"2", b"3", b"4"]
        assert not sim.loop.exceptions

    Simulation(seed=28, nodes=3, cluster=True).run(scenario, limit="10m")

"""What nodes of a cluster decide together: topics, lives of nodes, and what is refused."""

import pytest

from goqueue.client.admin import Admin
from goqueue.client.producer import Producer
from goqueue.machines.controller_commands import Reassign, Result
from goqueue.model.errors import CannotJoin
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.simulation import Simulation
from tests.sim.cluster.checker import values

ORDERS = "orders"


def logs(sim: Simulation, number: int) -> list[str]:
    return sim.nodes[number].disk.list("logs")


def test_a_deleted_topic_leaves_no_key_and_no_log_and_may_be_made_again_at_once() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        assert sim.etcd is not None
        async with Admin(sim.nodes[0].http, **sim.process("me").ports) as admin:
            await admin.create_topic(ORDERS, partitions=130)
            await admin.delete_topic(ORDERS)
            assert not [key for key in sim.etcd.keys if b"orders" in key or b"removed" in key]
            assert [ORDERS in logs(sim, number) for number in range(3)] == [False] * 3
            await admin.create_topic(ORDERS, partitions=2)
        await sim.let_pass("1s")
        assert [node.broker.topics.image.topics[ORDERS].partitions for node in sim.nodes] == [2, 2, 2]
        assert not sim.loop.exceptions

    Simulation(seed=1, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_node_that_slept_through_a_deletion_removes_its_logs_when_it_is_back() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        async with Admin(sim.nodes[0].http, **sim.process("me").ports) as admin:
            await admin.create_topic(ORDERS, partitions=3)
            await sim.let_pass("1s")
            sim.nodes[2].crash("kill")
            await sim.let_pass("6s")
            await admin.delete_topic(ORDERS)
        assert ORDERS in logs(sim, 2)
        await sim.nodes[2].start()
        await sim.let_pass("1s")
        assert ORDERS not in logs(sim, 2)
        assert sim.nodes[2].disk.list("aside") == []

    Simulation(seed=2, nodes=3, cluster=True).run(scenario, limit="2m")


def test_logs_that_nobody_has_said_may_go_are_put_aside() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        assert sim.etcd is not None
        async with Admin(sim.nodes[0].http, **sim.process("me").ports) as admin:
            await admin.create_topic(ORDERS, partitions=1)
            await sim.let_pass("1s")
            sim.nodes[2].crash("kill")
            await sim.let_pass("6s")
            await admin.delete_topic(ORDERS)
        for key in [key for key in sim.etcd.keys if b"/gone/" in key]:
            del sim.etcd.keys[key]
        await sim.nodes[2].start()
        await sim.let_pass("1s")
        assert sim.nodes[2].disk.list("logs/orders") == []
        assert len(sim.nodes[2].disk.list("aside")) == 1

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_log_of_an_earlier_topic_of_the_same_name_is_put_aside() -> None:
    """Both have records of epoch 0 at the same offsets: only the id of the topic tells them apart."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        servers = [node.kafka for node in sim.nodes]
        async with Admin(sim.nodes[0].http, **me.ports) as admin, Producer(servers, **me.ports) as producer:
            await admin.create_topic(ORDERS, partitions=1)
            await producer.send(ORDERS, b"old")
            await sim.let_pass("1s")
            sim.nodes[2].crash("kill")
            await sim.let_pass("6s")
            await admin.delete_topic(ORDERS)
            await admin.create_topic(ORDERS, partitions=1)
            async with Producer(servers[:2], **me.ports) as other:
                await other.send(ORDERS, b"new")
        await sim.nodes[2].start()
        await sim.let_pass("5s")
        replica = sim.nodes[2].broker.topics.find_replica(ORDERS, 0)
        assert replica is not None
        assert values(replica.log, 0, 10) == [b"new"]
        assert len(sim.nodes[2].disk.list("aside")) == 1
        assert sorted(sim.nodes[0].broker.topics.image.topics[ORDERS].placements[0].isr) == [1, 2, 3]

    Simulation(seed=8, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_node_whose_session_is_gone_begins_another_life_and_leads_again() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        assert sim.etcd is not None
        me = sim.process("me")
        async with Producer([node.kafka for node in sim.nodes], **me.ports) as producer:
            await producer.send(ORDERS, b"first")
            before = sim.nodes[0].broker.topics.image.nodes[2].incarnation
            (live,) = [one for key, one in sim.etcd.keys.items() if key.endswith(b"/live/2")]
            sim.etcd.do_revoke(live.lease)
            await sim.let_pass("2s")
            assert sim.nodes[0].broker.topics.image.nodes[2].incarnation > before
            for number in range(20):
                await producer.send(ORDERS, b"more", key=b"%d" % number)
        await sim.let_pass("5s")
        placements = sim.nodes[0].broker.topics.image.topics[ORDERS].placements
        assert {tuple(sorted(one.isr)) for one in placements} == {(1, 2, 3)}
        assert not sim.loop.exceptions

    Simulation(seed=4, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_node_with_a_strange_disk_or_a_wiped_etcd_does_not_start() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        assert sim.etcd is not None
        node = sim.nodes[2]
        node.crash("kill")
        disk, node.disk = node.disk, MemoryDisk()
        with pytest.raises(CannotJoin, match="another data directory"):
            await node.start()
        node.disk = disk
        kept, sim.etcd.keys = sim.etcd.keys, {}
        with pytest.raises(CannotJoin, match="knows of no cluster"):
            await node.start()
        sim.etcd.keys = kept
        await node.start()
        await sim.let_pass("1s")
        assert sorted(node.broker.topics.image.nodes) == [1, 2, 3]

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="2m")


def test_an_etcd_that_was_restored_from_an_old_backup_stops_all_elections() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        assert sim.etcd is not None
        backup = sim.etcd.backup()
        for node in sim.nodes:
            node.crash("kill")
            await sim.let_pass("1s")
            await node.start()
            await sim.let_pass("1s")
        async with Producer(sim.nodes[0].kafka, **sim.process("me").ports) as producer:
            await producer.send(ORDERS, b"first")
        await sim.let_pass("6s")
        for node in sim.nodes:
            node.crash("kill")
        sim.etcd.restore(backup)
        await sim.let_pass("6s")
        for node in sim.nodes:
            await node.start()
        await sim.let_pass("10s")
        halted = [node.broker.cluster.halted() for node in sim.nodes]
        assert halted[0]
        assert halted == [halted[0]] * 3
        assert {each.state for node in sim.nodes for each in node.broker.cluster.placed()} == {"offline"}

    Simulation(seed=6, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_partition_moves_to_other_nodes_and_the_old_copy_is_put_aside() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic(ORDERS, partitions=1)
        async with Producer([node.kafka for node in sim.nodes], **me.ports) as producer:
            await producer.send(ORDERS, b"first")
            topics = sim.nodes[0].broker.topics
            (before,) = topics.image.topics[ORDERS].placements
            (other,) = {1, 2, 3, 4} - set(before.replicas)
            wanted = (other, *before.replicas[1:])
            replies: list[object] = []
            topics.submit(Reassign(ORDERS, 0, wanted), replies.append)
            await sim.let_pass("25s")
            assert replies == [Result()]
            (after,) = sim.nodes[0].broker.topics.image.topics[ORDERS].placements
            assert (set(after.replicas), after.adding, after.removing) == (set(wanted), (), ())
            assert set(after.isr) == set(wanted)
            receipt = await producer.send(ORDERS, b"second")
            assert receipt.offset == 1
        left = sim.nodes[before.replicas[0] - 1]
        assert left.disk.list(f"logs/{ORDERS}") == []

    Simulation(seed=7, nodes=4, cluster=True).run(scenario, limit="2m")

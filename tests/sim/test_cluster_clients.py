"""Clients with the addresses of three nodes go on when one of them is gone, the first one too."""

import asyncio

import pytest

from goqueue.client.admin import Admin
from goqueue.client.consumer import Consumer
from goqueue.client.job import Job
from goqueue.client.producer import Producer
from goqueue.client.worker import Worker
from goqueue.testing.simulation import Simulation

MESSAGES = 40


def addresses(sim: Simulation, kind: str) -> str:
    return ",".join(str(getattr(node, kind)).removeprefix("http://") for node in sim.nodes)


def test_producer_and_consumer_go_on_when_the_first_node_is_killed() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(addresses(sim, "http"), **me.ports) as admin:
            await admin.create_topic("orders", partitions=6)
            await sim.let_pass("2s")
            async with (
                Producer(addresses(sim, "kafka"), **me.ports) as producer,
                Consumer(addresses(sim, "kafka"), "orders", **me.ports) as consumer,
            ):
                sent = []
                for number in range(MESSAGES):
                    if number == MESSAGES // 2:
                        sim.nodes[0].crash("kill")
                    await producer.send("orders", str(number).encode(), key=b"key-%d" % number)
                    sent.append(str(number).encode())
                read: set[bytes | None] = set()
                while len(read) < len(sent):
                    read |= {message.value for message in await consumer.poll(timeout="1s")}
                assert read == set(sent)
            assert (await admin.topic("orders")).total_messages == MESSAGES

    Simulation(seed=3, nodes=3, cluster=True, default_replication_factor=3).run(scenario, limit="5m")


def test_an_admin_whose_first_address_is_dead_asks_the_next() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        servers = "nowhere:1," + addresses(sim, "http")
        async with Admin(servers, **me.ports) as admin:
            await admin.create_topic("orders", partitions=3)
            assert "orders" in await admin.topics()

    Simulation(seed=4, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="2m")


def test_a_worker_handles_all_messages_whoever_leads_them() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        done: set[bytes | None] = set()
        async with Admin(addresses(sim, "http"), **me.ports) as admin:
            await admin.create_topic("orders", partitions=6)
        await sim.let_pass("1s")
        async with Producer(addresses(sim, "kafka"), **me.ports) as producer:
            for number in range(MESSAGES):
                await producer.send("orders", str(number).encode(), key=b"key-%d" % number)

        worker = Worker(addresses(sim, "kafka"), "orders", group="team", **me.ports)

        @worker.handle
        async def pack(job: Job) -> None:
            done.add(job.value)

        running = me.spawn(worker.run())
        while len(done) < MESSAGES:
            await sim.let_pass("500ms")
        worker.stop()
        await running

    Simulation(seed=5, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_readers_find_the_new_leader_though_the_old_one_still_answers_them_and_knows_of_none() -> None:
    """Each has only ever talked to a node that is cut off from the others now, and from etcd. It asks again, at longer
    and longer intervals, and asks others who leads."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(addresses(sim, "http"), **me.ports) as admin:
            await admin.create_topic("orders", partitions=3)
        await sim.let_pass("1s")
        old = sim.nodes[sim.nodes[0].broker.topics.image.topics["orders"].placements[0].leader - 1]
        worker = Worker(old.kafka, "orders", group="team", **me.ports)
        async with Consumer(old.kafka, "orders", **me.ports) as consumer, worker:
            await consumer.poll(timeout="1s")
            assert sim.etcd is not None
            sim.etcd.cut(old.name)
            for node in sim.nodes:
                if node is not old:
                    sim.network.cut(node.name, old.name)
            before = sim.trace.events
            await sim.let_pass("8s")
            assert sim.trace.events - before < 1500, "clients asked again and again without a pause"
            others = [node.kafka for node in sim.nodes if node is not old]
            async with Producer(others, **me.ports) as producer:
                for partition in range(3):
                    await producer.send("orders", b"%d" % partition, partition=partition)
            async with asyncio.timeout(10):
                read: set[bytes | None] = set()
                while len(read) < 3:
                    read |= {message.value for message in await consumer.poll(timeout="1s")}
                for _ in range(3):
                    job = await worker.next()
                    assert job is not None
                    await job.ack()
        assert not sim.loop.exceptions

    Simulation(seed=6, nodes=3, cluster=True).run(scenario, limit="5m")


def test_a_producer_finds_the_new_leader_though_the_old_one_still_answers_it_and_knows_of_none() -> None:
    """It has only ever talked to a node that is cut off from the others now, and from etcd. That one says of each
    message that too few copies are in sync."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(addresses(sim, "http"), **me.ports) as admin:
            await admin.create_topic("orders", partitions=3, min_insync_replicas=2)
        await sim.let_pass("1s")
        old = sim.nodes[sim.nodes[0].broker.topics.image.topics["orders"].placements[0].leader - 1]
        async with Producer(old.kafka, request_timeout="1s", **me.ports) as producer:
            for partition in range(3):
                await producer.send("orders", b"before", partition=partition)
            assert sim.etcd is not None
            sim.etcd.cut(old.name)
            for node in sim.nodes:
                if node is not old:
                    sim.network.cut(node.name, old.name)
            await sim.let_pass("8s")
            before = sim.trace.events
            async with asyncio.timeout(15):
                await asyncio.gather(*(producer.send("orders", b"after", partition=number) for number in range(3)))
            assert sim.trace.events - before < 1500, "it asked again and again without a pause"
        others = [node.kafka for node in sim.nodes if node is not old]
        async with Consumer(others, "orders", **me.ports) as consumer:
            read: list[tuple[int, bytes | None]] = []
            while len(read) < 6:
                read += [(message.partition, message.value) for message in await consumer.poll(timeout="1s")]
        assert sorted(read) == [(number, value) for number in range(3) for value in (b"after", b"before")]
        assert not sim.loop.exceptions

    Simulation(seed=10, nodes=3, cluster=True).run(scenario, limit="5m")


@pytest.mark.parametrize(("concurrency", "prefetch"), [(1, 0), (2, 0), (10, None)])
def test_a_worker_with_little_room_asks_all_leaders_in_turn(concurrency: int, prefetch: int | None) -> None:
    """One of them is asked as long as it has nothing, and must not keep the others' messages waiting."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(addresses(sim, "http"), **me.ports) as admin:
            await admin.create_topic("orders", partitions=3)
        await sim.let_pass("1s")
        options = {"group": "team", "concurrency": concurrency, "prefetch": prefetch}
        async with (
            Worker(addresses(sim, "kafka"), "orders", **options, **me.ports) as worker,  # type: ignore[arg-type]
            Producer(addresses(sim, "kafka"), **me.ports) as producer,
        ):
            await sim.let_pass("2s")
            for number in range(9):
                await producer.send("orders", b"%d" % number, partition=number % 3)
                async with asyncio.timeout(1):
                    job = await worker.next()
                assert job is not None
                assert job.value == b"%d" % number
                await job.ack()

    Simulation(seed=7, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_a_worker_that_came_while_a_partition_had_no_leader_gets_its_messages_when_it_has_one() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(addresses(sim, "http"), **me.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        await sim.let_pass("1s")
        async with Producer(addresses(sim, "kafka"), **me.ports) as producer:
            await producer.send("orders", b"early")
        only_copy = sim.nodes[sim.nodes[0].broker.topics.image.placement("orders", 0).leader - 1]
        others = ",".join(node.kafka for node in sim.nodes if node is not only_copy)
        only_copy.crash("kill")
        await sim.let_pass("15s")
        async with Worker(others, "orders", group="team", **me.ports) as worker:
            await sim.let_pass("5s")
            await only_copy.start()
            async with asyncio.timeout(30):
                job = await worker.next()
            assert job is not None
            assert job.value == b"early"
            await job.ack()
        assert not sim.loop.exceptions

    Simulation(seed=8, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="5m")


def test_a_worker_with_room_for_one_goes_on_when_the_machine_that_it_asks_is_gone() -> None:
    """No reset comes from there. The answer is given up when others lead, and not after `request_timeout`, which is 30
    seconds here."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("8s")
        me = sim.process("me")
        async with Admin(addresses(sim, "http"), **me.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        await sim.let_pass("1s")
        leader = sim.nodes[sim.nodes[0].broker.topics.image.placement("orders", 0).leader - 1]
        others = [node.kafka for node in sim.nodes if node is not leader]
        servers = addresses(sim, "kafka")
        async with Worker(servers, "orders", group="team", concurrency=1, prefetch=0, **me.ports) as worker:
            taking = me.spawn(worker.next())
            await sim.let_pass("2s")  # it waits for messages
            leader.crash("power")
            async with Producer(others, request_timeout="1s", **me.ports) as producer:
                await producer.send("orders", b"late")
            async with asyncio.timeout(8):
                job = await taking
            assert job is not None
            assert job.value == b"late"
            await job.ack()
        assert not sim.loop.exceptions

    Simulation(seed=9, nodes=3, cluster=True).run(scenario, limit="5m")

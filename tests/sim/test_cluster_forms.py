"""Three real nodes with one etcd become a cluster: what one of them is asked to make, all of them serve."""

from goqueue.client.admin import Admin
from goqueue.client.consumer import Consumer
from goqueue.client.producer import Producer
from goqueue.testing.simulation import Simulation

LEDGERS = {"@groups": 16, "@transactions": 16, "@schemas": 1}


def test_three_nodes_form_a_cluster_and_know_the_same() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        for node in sim.nodes:
            image = node.broker.topics.image
            assert sorted(image.nodes) == [1, 2, 3]
            assert {name: topic.partitions for name, topic in image.ledgers.items()} == LEDGERS
        assert not sim.loop.exceptions

    Simulation(seed=1, nodes=3, cluster=True).run(scenario)


def test_a_topic_made_through_one_node_is_led_by_all_and_read_from_anywhere() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("1s")
        me = sim.process("me")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=6)
        await sim.let_pass("1s")  # the others hear of it
        leaders = {one.leader for one in sim.nodes[1].broker.topics.image.topics["orders"].placements}
        assert leaders == {1, 2, 3}
        sent: set[tuple[int, int, bytes | None]] = set()
        async with Producer(sim.nodes[1].kafka, **me.ports) as producer:
            for number in range(60):
                receipt = await producer.send("orders", str(number).encode(), key=b"key-%d" % number)
                sent.add((receipt.partition, receipt.offset, str(number).encode()))
        assert {partition for partition, _, _ in sent} == set(range(6))
        read: set[tuple[int, int, bytes | None]] = set()
        async with Consumer(sim.nodes[2].kafka, "orders", **me.ports) as consumer:
            while len(read) < len(sent):
                for message in await consumer.poll(timeout="1s"):
                    read.add((message.partition, message.offset, message.value))
        assert read == sent
        assert not sim.loop.exceptions

    Simulation(seed=2, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="2m")


def test_a_killed_leader_is_replaced_within_two_seconds_and_nothing_acknowledged_is_lost() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        servers = [node.kafka for node in sim.nodes]
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=6)
        sent: dict[tuple[int, int], bytes] = {}
        crashed_s = 0.0
        async with Producer(servers, **me.ports) as producer:
            for number in range(100):
                if number == 50:
                    sim.nodes[1].crash("kill")
                    crashed_s = sim.loop.time()
                value = b"%d" % number
                receipt = await producer.send("orders", value, key=b"key-%d" % number)
                assert sent.setdefault((receipt.partition, receipt.offset), value) == value
        assert sim.loop.time() - crashed_s < 4
        placements = sim.nodes[0].broker.topics.image.topics["orders"].placements
        assert 2 not in {one.leader for one in placements}
        read: dict[tuple[int, int], bytes | None] = {}
        async with Consumer(servers, "orders", **me.ports) as consumer:
            while len(read) < len(sent):
                for message in await consumer.poll(timeout="1s"):
                    read[message.partition, message.offset] = message.value
        assert read == sent
        await sim.nodes[1].start()
        await sim.let_pass("5s")
        placements = sim.nodes[0].broker.topics.image.topics["orders"].placements
        assert {tuple(sorted(one.isr)) for one in placements} == {(1, 2, 3)}
        assert not sim.loop.exceptions

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="2m")


def test_every_node_of_a_cluster_stores_journeys_of_its_own() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=3)
        async with Producer(sim.nodes[0].kafka, **me.ports) as producer:
            for number in range(9):
                await producer.send("orders", b"%d" % number, partition=number % 3)
        await sim.let_pass("10s")
        assert [node.broker.tracing.journal.stored > 0 for node in sim.nodes] == [True, True, True]
        assert not sim.loop.exceptions

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_node_that_stops_hands_over_first_and_nobody_waits_long() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        servers = [node.kafka for node in sim.nodes]
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=6)
        longest_s = 0.0
        async with Producer(servers, **me.ports) as producer:
            for number in range(6):
                await producer.send("orders", b"first", key=b"key-%d" % number)
            stopping = me.spawn(sim.nodes[1].stop())
            while not stopping.done():
                began_s = sim.loop.time()
                await producer.send("orders", b"more", key=b"key-%d" % int(began_s * 1000))
                longest_s = max(longest_s, sim.loop.time() - began_s)
                await sim.let_pass("10ms")
        assert longest_s < 1, longest_s
        image = sim.nodes[0].broker.topics.image
        everything = [
            one for each in (image.topics, image.ledgers) for topic in each.values() for one in topic.placements
        ]
        assert 2 not in {one.leader for one in everything}
        assert sorted(image.nodes) == [1, 3]
        assert not sim.loop.exceptions

    Simulation(seed=4, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_partition_that_another_node_leads_or_has_is_no_fault_of_this_one() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        me = sim.process("me")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=6)
        await sim.let_pass("2s")
        assert [node.broker.health.failed_partitions() for node in sim.nodes] == [[], [], []]

    Simulation(seed=6, nodes=3, cluster=True, default_replication_factor=2).run(scenario, limit="2m")

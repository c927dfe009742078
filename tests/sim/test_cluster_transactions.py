"""What was committed is committed in every partition, whatever its coordinator knew at that moment."""

from goqueue.broker.shards import shard_of_transaction
from goqueue.client import Admin, Producer
from goqueue.machines.transactions.commands import EndTransaction
from goqueue.machines.transactions.facts import State
from goqueue.model.codes import Code
from goqueue.model.transactions import Writer
from goqueue.testing.simulation import Simulation
from goqueue.wire.kafka.messages.transactions import EndTxnRequest
from tests.sim.test_cluster_answers import ORDERS, Client, cluster
from tests.sim.test_cluster_handing_over import replica_of

WRITER, NEWS = "writer", "news"


def test_a_coordinator_that_has_not_heard_of_a_topic_ends_the_transaction_there_all_the_same() -> None:
    """The leader of a new partition lets a transaction join at its coordinator, whose own metadata is late. To be
    unknown there is not to be deleted: without a marker nobody would ever read past that transaction."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("3s")
        shard = shard_of_transaction(WRITER)
        late = sim.nodes[sim.nodes[0].broker.topics.image.placement("@transactions", shard).leader - 1]
        early = next(node for node in sim.nodes if node is not late)
        assert sim.etcd is not None
        async with Producer(early.kafka, transactional_id=WRITER, **me.ports):
            known = late.broker.transactions.describe(WRITER)
        assert known is not None
        sim.etcd.weather_of(late.name).watch_ms = 4000.0, 4000.0
        async with Admin(early.http, **me.ports) as admin:
            await admin.create_topic(NEWS, partitions=3)
        placements = early.broker.topics.image.topics[NEWS].placements
        place = NEWS, next(number for number, one in enumerate(placements) if one.leader == early.number)
        told: list[object] = []
        # As the first write of a client with transactions v2 does: the leader of the partition lets it join.
        writer = Writer(WRITER, *known.identity)
        early.broker.transactions.enlisting.add_partitions(writer, (place,), 0, told.append)
        await sim.let_pass("500ms")
        assert told == [Code.NONE]
        late.broker.transactions.submit(EndTransaction(*writer, commit=True), told.append)
        await sim.let_pass("500ms")
        assert getattr(told[1], "code", told[1]) is Code.NONE
        await sim.let_pass("20s")
        ended = late.broker.transactions.describe(WRITER)
        assert ended is not None
        assert ended.state is State.COMPLETE_COMMIT
        replica = early.broker.topics.find_replica(*place)
        assert replica is not None
        assert replica.end_offset == 1, "there is no marker"
        assert not sim.loop.exceptions

    Simulation(seed=17, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="2m")


def test_a_transaction_whose_topic_is_deleted_ends_without_it() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("3s")
        shard = shard_of_transaction(WRITER)
        coordinator = sim.nodes[sim.nodes[0].broker.topics.image.placement("@transactions", shard).leader - 1]
        async with (
            Admin(coordinator.http, **me.ports) as admin,
            Producer(coordinator.kafka, transactional_id=WRITER, **me.ports) as producer,
        ):
            await admin.create_topic(NEWS, partitions=1)
            async with producer.transaction():
                await producer.send(NEWS, b"never read", partition=0)
                await producer.flush()
                await admin.delete_topic(NEWS)
        await sim.let_pass("5s")
        ended = coordinator.broker.transactions.describe(WRITER)
        assert ended is not None
        assert ended.state is State.COMPLETE_COMMIT
        assert not sim.loop.exceptions

    Simulation(seed=18, nodes=3, cluster=True, default_replication_factor=1).run(scenario, limit="2m")


def test_a_marker_waits_for_a_partition_that_is_about_to_be_handed_over_and_not_a_second_longer() -> None:
    """The next transaction of its producer waits for it."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        node, partition = await cluster(sim, me)
        client = Client(me, node)
        writer = await client.writer(partition)
        replica = replica_of(node, ORDERS, partition)
        replica.rest()
        ended = await (await client.send(EndTxnRequest(*writer, True), 3))
        assert ended.error_code == Code.NONE
        await sim.let_pass("100ms")

        def state() -> State:
            known = node.broker.transactions.describe(writer[0])
            assert known is not None
            return known.state

        assert state() is State.PREPARE_COMMIT
        replica.go_on()
        await sim.let_pass("100ms")
        assert state() is State.COMPLETE_COMMIT
        assert not sim.loop.exceptions

    Simulation(seed=19, nodes=3, cluster=True).run(scenario, limit="2m")

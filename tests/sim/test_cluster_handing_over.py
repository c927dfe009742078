"""A leader that hands over lets nobody fail who comes meanwhile: appends and commands wait, and then go where the next
leader is.
"""

from goqueue.broker.groups.groups import commands
from goqueue.broker.shards import shard_of_group
from goqueue.client.admin import Admin
from goqueue.client.producer import Producer
from goqueue.model.errors import GoQueueError, NotTaken
from goqueue.replica.replica import Replica
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Process, Simulation

ORDERS = "orders"


async def made(sim: Simulation, me: Process) -> SimulatedNode:
    """A topic of one partition; its leader."""
    await sim.let_pass("8s")
    async with Admin(sim.nodes[0].http, **me.ports) as admin:
        await admin.create_topic(ORDERS, partitions=1)
    await sim.let_pass("1s")
    return sim.nodes[sim.nodes[0].broker.topics.image.placement(ORDERS, 0).leader - 1]


def replica_of(node: SimulatedNode, name: str, number: int) -> Replica:
    return next(one for one in node.replicas.hosts() if one.place == (name, number))


def test_what_comes_while_a_leader_rests_waits_and_is_taken_when_it_leads_on() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        leader = await made(sim, me)
        replica = replica_of(leader, ORDERS, 0)
        async with Producer(leader.kafka, **me.ports) as producer:
            await producer.send(ORDERS, b"first")
            replica.rest()
            sending = [me.spawn(producer.send(ORDERS, b"%d" % number)) for number in range(3)]
            await sim.let_pass("150ms")
            assert not any(one.done() for one in sending), "nobody is told anything meanwhile"
            assert replica.end_offset == 1
            replica.go_on()
            await sim.let_pass("50ms")
            assert sorted([(await one).offset for one in sending]) == [1, 2, 3]
        assert not sim.loop.exceptions

    Simulation(seed=1, nodes=3, cluster=True).run(scenario, limit="2m")


def test_what_waited_goes_to_the_next_leader_and_nothing_is_there_twice() -> None:
    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        leader = await made(sim, me)
        replica = replica_of(leader, ORDERS, 0)
        async with Producer([node.kafka for node in sim.nodes], **me.ports) as producer:
            await producer.send(ORDERS, b"first")
            replica.rest()  # as the stop does
            sending = [me.spawn(producer.send(ORDERS, b"%d" % number)) for number in range(3)]
            await sim.let_pass("100ms")
            stopping = me.spawn(leader.stop())
            await sim.let_pass("200ms")
            assert sorted([(await one).offset for one in sending]) == [1, 2, 3]
            assert sim.nodes[0].broker.topics.image.placement(ORDERS, 0).leader != leader.number
            assert replica.end_offset < 4 or not replica.role.is_leader
            await stopping
        assert not sim.loop.exceptions

    Simulation(seed=2, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_command_waits_too_and_whoever_gave_it_is_told_that_it_was_not_done() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("8s")
        shard = shard_of_group("flock")
        image = sim.nodes[0].broker.topics.image
        keeper = sim.nodes[image.placement("@groups", shard).leader - 1]
        replica = replica_of(keeper, "@groups", shard)
        replies: list[object] = []
        command = commands.CommitOffsets("flock", (commands.OffsetToCommit(ORDERS, 0, 3),))
        replica.rest()
        keeper.broker.groups.submit(command, replies.append)
        await sim.let_pass("150ms")
        assert replies == []
        replica.go_on()
        await sim.let_pass("150ms")
        assert [isinstance(reply, GoQueueError) for reply in replies] == [False]
        replica.rest()
        keeper.broker.groups.submit(command, replies.append)
        await keeper.stop()
        assert isinstance(replies[1], NotTaken)
        assert not sim.loop.exceptions

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="2m")

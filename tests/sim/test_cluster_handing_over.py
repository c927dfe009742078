"""A leader that hands over lets nobody fail who comes meanwhile: appends and commands wait, and then go where the next
leader is.
"""

from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

from goqueue.broker.shards import shard_of_group
from goqueue.client.admin import Admin
from goqueue.client.producer import Producer
from goqueue.cluster import handing_over
from goqueue.machines.groups import commands
from goqueue.model.errors import GoQueueError, NotTaken
from goqueue.model.topics import TopicsChange
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


def test_a_partition_of_a_node_that_stops_takes_writes_until_its_own_group_is_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    per_group, groups = 2, 2
    monkeypatch.setattr(handing_over, "AT_ONCE_WHEN_LEAVING", per_group)
    monkeypatch.setattr(handing_over, "SIDE_BY_SIDE", groups)

    async def scenario(sim: Simulation) -> None:
        assert sim.etcd is not None
        me = sim.process("me")
        await sim.let_pass("8s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic(ORDERS, partitions=18)
        await sim.let_pass("1s")
        leader = sim.nodes[1]
        placements = sim.nodes[0].broker.topics.image.topics[ORDERS].placements
        mine = [number for number, one in enumerate(placements) if one.leader == leader.number]
        assert len(mine) > per_group * groups
        async with AsyncExitStack() as stack:
            producers: dict[int, Producer] = {}  # one for each: what comes behind a request that waits has to wait too
            for number in mine:
                producer = Producer([node.kafka for node in sim.nodes], linger_ms=0, **me.ports)
                producers[number] = await stack.enter_async_context(producer)
                await producers[number].send(ORDERS, b"before", partition=number)
            expands = sim.nodes[0].broker.cluster.isr_expands
            sim.etcd.pause()
            stopping = me.spawn(leader.stop())
            await sim.let_pass("100ms")
            resting = [number for number in mine if replica_of(leader, ORDERS, number).is_resting]
            assert len(resting) == per_group * groups, "so many transactions are under way, and nothing else rests"
            sending = {
                number: me.spawn(producer.send(ORDERS, b"meanwhile", partition=number))
                for number, producer in producers.items()
            }
            await sim.let_pass("100ms")
            assert [number for number in mine if not sending[number].done()] == resting
            sim.etcd.weather.delay_ms = 40.0, 60.0  # so that heirs have time to look at their ISRs
            sim.etcd.go_on()
            for one in sending.values():
                assert (await one).offset == 1
            await stopping
            assert sim.nodes[0].broker.cluster.isr_expands == expands, "no heir takes it into its ISR again"
        after = sim.nodes[0].broker.topics.image.topics[ORDERS].placements
        assert all(leader.number not in (after[number].leader, *after[number].isr) for number in mine)
        assert not sim.loop.exceptions

    Simulation(seed=4, nodes=3, cluster=True).run(scenario, limit="2m")


def test_what_is_written_to_is_handed_over_first_and_followers_leave_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_over, "AT_ONCE_WHEN_LEAVING", 2)

    async def scenario(sim: Simulation) -> None:
        assert sim.etcd is not None
        me = sim.process("me")
        await sim.let_pass("8s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic(ORDERS, partitions=30)
        await sim.let_pass("4s")
        leader, other = sim.nodes[1], sim.nodes[0]
        placements = other.broker.topics.image.topics[ORDERS].placements
        mine = [number for number, one in enumerate(placements) if one.leader == leader.number]
        busy = mine[-3:]
        async with Producer([node.kafka for node in sim.nodes], linger_ms=0, **me.ports) as producer:
            for number in busy:
                await producer.send(ORDERS, b"before", partition=number)
        moved: list[int] = []
        still_led: list[int] = []

        def look(change: TopicsChange) -> None:
            was, now = change.before.topics[ORDERS].placements, change.image.topics[ORDERS].placements
            moved.extend(number for number in mine if was[number].leader == leader.number != now[number].leader)
            if any(leader.number in was[number].isr and leader.number not in now[number].isr for number in followed):
                still_led.append(sum(one.leader == leader.number for one in now))

        followed = [number for number in range(30) if number not in mine]
        other.broker.topics.on_change.append(look)
        sim.etcd.weather.delay_ms = 40.0, 60.0  # so that leaders hear that it leaves before it has handed over all
        await leader.stop()
        assert sorted(moved[:3]) == busy
        assert sorted(moved) == mine
        assert still_led, "it has left the ISRs of what it followed"
        assert not any(still_led), "and not before it had handed over all that it led"
        assert not sim.loop.exceptions

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="2m")


def test_what_nobody_writes_to_is_handed_over_slowly_when_clients_have_found_the_next_leaders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handing_over, "AT_ONCE_WHEN_IDLE", 10)

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("8s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic(ORDERS, partitions=90)
        await sim.let_pass("4s")
        leader, other = sim.nodes[1], sim.nodes[0]
        placements = other.broker.topics.image.topics[ORDERS].placements
        mine = [number for number, one in enumerate(placements) if one.leader == leader.number]
        async with Producer([node.kafka for node in sim.nodes], linger_ms=0, **me.ports) as producer:
            await producer.send(ORDERS, b"before", partition=mine[-1])
        moved_s: dict[int, float] = {}

        def look(change: TopicsChange) -> None:
            was, now = change.before.topics[ORDERS].placements, change.image.topics[ORDERS].placements
            changed = [number for number in mine if was[number].leader == leader.number != now[number].leader]
            moved_s.update(dict.fromkeys(changed, sim.loop.time()))

        other.broker.topics.on_change.append(look)
        began_s = sim.loop.time()
        await leader.stop()
        assert sorted(moved_s) == mine
        first_s, *idle_s = sorted(set(moved_s.values()))
        assert moved_s[mine[-1]] == first_s <= began_s + 0.1
        assert idle_s[0] >= first_s + handing_over.SETTLING_S
        assert all(after - before > 0.1 for before, after in pairwise(idle_s)), "there is time, and few groups"
        assert idle_s[-1] <= began_s + 2.6, "half of drain_ms"
        assert not sim.loop.exceptions

    Simulation(seed=6, nodes=3, cluster=True).run(scenario, limit="2m")

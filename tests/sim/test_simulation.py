"""What a test does to the nodes of a simulation happens to them, and to nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from goqueue.client import Admin, Consumer, DeliveryTimeout, Producer
from goqueue.testing import Process, Simulation
from goqueue.testing.virtual_loop import let_pass

T = TypeVar("T")


def simulate(scenario: Callable[[Simulation, Process], Awaitable[T]], seed: int = 1, nodes: int = 1) -> T:
    """A scenario of one program."""

    async def main(sim: Simulation) -> T:
        async def work() -> T:
            return await scenario(sim, me)

        me = sim.process("me")
        return await me.spawn(work())

    return Simulation(seed, nodes).run(main)


async def values(me: Process, address: str, topic: str) -> list[bytes | None]:
    async with Consumer(address, topic, **me.ports) as consumer:
        found = []
        while messages := await consumer.poll(timeout="2s"):
            found += [message.value for message in messages]
        return found


@pytest.mark.parametrize("kind", ["kill", "power"])
def test_what_was_acknowledged_outlives_a_crash(kind: str) -> None:
    async def scenario(sim: Simulation, me: Process) -> list[bytes | None]:
        (node,) = sim.nodes
        async with Producer(node.kafka, **me.ports) as producer:
            await producer.send("orders", b"before", partition=0)
            node.crash(kind)  # type: ignore[arg-type]
            assert not node.is_up
            await node.start()
            await producer.send("orders", b"after", partition=0)
        return await values(me, node.kafka, "orders")

    assert simulate(scenario) == [b"before", b"after"]


def test_power_that_is_lost_in_the_midst_of_a_write_takes_the_node_down_and_no_reply_gets_out() -> None:
    async def scenario(sim: Simulation, me: Process) -> list[bytes | None]:
        (node,) = sim.nodes
        async with Producer(node.kafka, request_timeout="2s", delivery_timeout="5s", **me.ports) as producer:
            await producer.send("orders", b"kept", partition=0)
            node.crash_at(1)
            with pytest.raises(DeliveryTimeout):
                await producer.send("orders", b"not known", partition=0)
            assert not node.is_up
        await node.start()
        return await values(me, node.kafka, "orders")

    assert simulate(scenario)[:1] == [b"kept"]


def test_nodes_are_machines_of_their_own() -> None:
    async def scenario(sim: Simulation, me: Process) -> None:
        for number, node in enumerate(sim.nodes):
            async with Producer(node.kafka, **me.ports) as producer:
                await producer.send("orders", b"of %d" % number, partition=0)
        first, second, third = sim.nodes
        sim.network.cut("me", second.name)
        first.crash("power")
        assert await values(me, third.kafka, "orders") == [b"of 2"]
        sim.network.heal()
        assert await values(me, second.kafka, "orders") == [b"of 1"]
        await first.start()
        assert await values(me, first.kafka, "orders") == [b"of 0"]

    simulate(scenario, nodes=3)


def test_a_clock_that_is_set_moves_delayed_messages_and_no_time_passes() -> None:
    async def scenario(sim: Simulation, me: Process) -> float:
        (node,) = sim.nodes
        async with Producer(node.kafka, **me.ports) as producer:
            await producer.send("orders", b"tomorrow", delay="1d", partition=0)
        node.set_clock("2d")
        begin_s = sim.loop.time()
        async with Consumer(node.kafka, "orders", **me.ports) as consumer:
            message = await anext(consumer)
        assert message.value == b"tomorrow"
        return sim.loop.time() - begin_s

    assert simulate(scenario) < 10


def test_http_is_served_over_the_same_network() -> None:
    async def scenario(sim: Simulation, me: Process) -> list[str]:
        (node,) = sim.nodes
        async with Admin(node.http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=2)
            sim.network.reset(node.name)
            return await admin.topics()

    assert simulate(scenario) == ["orders"]


def test_a_stopped_node_has_answered_what_it_took() -> None:
    async def scenario(sim: Simulation, me: Process) -> list[bytes | None]:
        (node,) = sim.nodes
        async with Producer(node.kafka, linger_ms=0, **me.ports) as producer:
            sending = [await producer.post("orders", b"%d" % number, partition=0) for number in range(20)]
            await node.restart()
            await asyncio.gather(*sending)
        return await values(me, node.kafka, "orders")

    assert simulate(scenario) == [b"%d" % number for number in range(20)]


def test_the_first_message_to_a_topic_waits_for_a_broker_as_long_as_its_delivery_may_take() -> None:
    async def scenario(sim: Simulation, me: Process) -> list[bytes | None]:
        (node,) = sim.nodes
        async with Producer(node.kafka, request_timeout="2s", delivery_timeout="2m", **me.ports) as producer:
            node.crash("power")
            sending = me.spawn(_as_coroutine(producer.send("orders", b"patient", partition=0)))
            await let_pass(60)
            await node.start()
            await sending
        return await values(me, node.kafka, "orders")

    assert simulate(scenario) == [b"patient"]


async def _as_coroutine(work: Awaitable[T]) -> T:
    return await work


def test_who_waits_longer_than_the_limit_is_told() -> None:
    async def for_ever(sim: Simulation) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(TimeoutError):
        Simulation(1).run(for_ever, limit="10m")


def test_seeds_differ() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("1s")
        node = sim.nodes[0]
        sim.note("id", node.broker.identity.cluster_id)

    def digest(seed: int) -> str:
        simulation = Simulation(seed)
        simulation.run(scenario)
        return simulation.trace.digest

    assert digest(1) == digest(1) != digest(2)


def test_a_node_that_loses_power_while_it_starts_is_down_and_starts_again() -> None:
    async def scenario(sim: Simulation, me: Process) -> list[bytes | None]:
        (node,) = sim.nodes
        async with Producer(node.kafka, **me.ports) as producer:
            await producer.send("orders", b"kept", partition=0)
        node.crash("power")
        node.crash_at(3)
        await node.start()
        assert not node.is_up
        await node.start()
        return await values(me, node.kafka, "orders")

    assert simulate(scenario) == [b"kept"]

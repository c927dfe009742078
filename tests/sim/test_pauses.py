"""A node that stands still while time goes on, and then goes on itself: with old beliefs, and with all that was sent to
it meanwhile.
"""

import asyncio

import pytest

from goqueue.client import Admin, ClientError, Producer
from goqueue.testing.simulation import Simulation
from goqueue.testing.virtual_loop import Life, VirtualLoop, let_pass


def test_what_was_due_happens_when_a_process_goes_on_but_for_what_is_cancelled_by_then() -> None:
    loop, life, heard = VirtualLoop(), Life("one"), list[str]()

    async def main() -> None:
        late = loop.call_later(2, heard.append, "never", context=life.context())

        def first() -> None:
            heard.append("first")
            late.cancel()

        loop.call_later(1, first, context=life.context())
        loop.pause(life)
        await let_pass(5)
        assert heard == []
        loop.go_on(life)
        await let_pass(0)
        assert heard == ["first"]

    loop.run_until_complete(main())
    loop.close()


def test_a_node_that_is_paused_answers_when_it_goes_on() -> None:
    async def scenario(sim: Simulation) -> None:
        (node,), me = sim.nodes, sim.process("me")
        async with Producer(node.kafka, **me.ports) as producer:
            await producer.send("orders", b"one", partition=0)
            node.pause()
            sending = asyncio.ensure_future(producer.send("orders", b"two", partition=0))
            await sim.let_pass("5s")
            assert not sending.done()
            node.resume()
            assert (await sending).offset == 1

    Simulation(seed=1).run(scenario)


def test_a_leader_that_stood_still_for_longer_than_its_session_leads_no_more() -> None:
    """Though it believes so for a moment, and a client that knows no better asks it."""

    async def scenario(sim: Simulation) -> None:
        me = sim.process("me")
        await sim.let_pass("2s")
        async with Admin(sim.nodes[0].http, **me.ports) as admin:
            await admin.create_topic("orders", partitions=1)
        await sim.let_pass("1s")
        leader = sim.nodes[0].broker.topics.image.topics["orders"].placements[0].leader
        old, others = sim.nodes[leader - 1], [node for node in sim.nodes if node.number != leader]
        async with (
            Producer(old.kafka, delivery_timeout="1s", **me.ports) as late,
            Producer([node.kafka for node in others], **me.ports) as producer,
        ):
            await late.send("orders", b"before", partition=0)
            old.pause()
            await sim.let_pass("7s")
            assert (await producer.send("orders", b"after", partition=0)).offset == 1
            for node in others:
                sim.network.cut(node.name, old.name)
            assert sim.etcd is not None
            sim.etcd.cut(old.name)
            old.resume()
            for node in others:
                sim.network.cut(me.name, node.name)
            with pytest.raises(ClientError):
                await late.send("orders", b"lost", partition=0)

    Simulation(seed=2, nodes=3, cluster=True).run(scenario, limit="2m")

"""A group takes over from its fork, whose places are led by three nodes: all of it, whatever happens meanwhile."""

from typing import Any

import pytest

from goqueue.client.errors import ConnectionLost
from goqueue.client.http import HttpRefused
from goqueue.testing.simulation import Simulation
from tests.sim.test_cluster_doors import Caller, publish, receive_all, run

MESSAGES = 12
OPTIONS = {"attempts.max": "7"}
PROMOTION = {"group": "workers", "fork": "copy"}


async def made(sim: Simulation, nodes: list[Caller]) -> None:
    """A group that has settled all, and a fork of it that has settled nothing and has an option of its own."""
    await publish(nodes[0], MESSAGES)
    receipts = [each["receipt_handle"] for each in await receive_all(nodes[0])]
    assert (await nodes[1]("settle_all", receipt_handles=receipts))["succeeded"] == MESSAGES
    await nodes[1]("fork", group="workers", name="copy")
    await nodes[2]("configure_group", group="copy", options=OPTIONS)
    await nodes[2]("seek", group="copy", topic="orders", to="earliest")
    await sim.let_pass("1s")
    assert await is_whole(sim, nodes[0])


def options(sim: Simulation, group: str) -> dict[str, str]:
    return dict(sim.nodes[0].broker.queues.options(group))


async def is_whole(sim: Simulation, node: Caller) -> bool:
    """The fork still has all that it was given."""
    told = (await node("list_forks", group="workers"))["forks"]
    return told == [{"fork": "copy", "only_group": MESSAGES, "only_fork": 0}] and options(sim, "copy") == OPTIONS


async def check_taken_over(sim: Simulation, node: Caller) -> None:
    await sim.let_pass("1s")
    assert (options(sim, "workers"), options(sim, "copy")) == (OPTIONS, {})
    assert len(await receive_all(node)) == MESSAGES
    with pytest.raises(HttpRefused) as refused:
        await node("describe_group", group="copy")
    assert refused.value.status == 404


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_group_takes_over_what_its_fork_has_on_all_nodes(seed: int) -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await made(sim, nodes)
        told: Any = await nodes[seed % 3]("promote", **PROMOTION)
        assert told == {"promoted": True, **PROMOTION}
        with pytest.raises(HttpRefused) as refused:
            await nodes[0]("promote", **PROMOTION)
        assert (refused.value.status, refused.value.code) == (404, "GROUP_ID_NOT_FOUND")
        await check_taken_over(sim, nodes[2])

    run(scenario, seed)


def test_a_fork_stays_whole_where_one_node_cannot_be_asked() -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await made(sim, nodes)
        sim.network.cut(sim.nodes[0].name, sim.nodes[1].name)
        with pytest.raises(HttpRefused) as refused:
            await nodes[0]("promote", **PROMOTION)
        assert refused.value.status in (503, 504)
        sim.network.heal()
        await sim.let_pass("5s")
        assert await is_whole(sim, nodes[1])
        await nodes[2]("promote", **PROMOTION)
        await check_taken_over(sim, nodes[0])

    run(scenario)


@pytest.mark.parametrize("after_ms", [2, 5, 8, 11, 14])
@pytest.mark.parametrize("who", [0, 1])
def test_a_promotion_whose_node_dies_may_be_asked_for_again(who: int, after_ms: int) -> None:
    """Node 0 is asked; it dies, or another one does. Until all is taken over the fork keeps all that is not."""

    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await made(sim, nodes)
        asked = sim.process("asked").spawn(outcome(nodes[0]))
        await sim.let_pass(f"{after_ms}ms")
        sim.nodes[who].crash("kill")
        await sim.let_pass("1s")
        await sim.nodes[who].start()
        await sim.let_pass("20s")
        assert asked.done()
        assert await outcome(nodes[2]) in ("promoted", "GROUP_ID_NOT_FOUND")
        assert await outcome(nodes[1]) == "GROUP_ID_NOT_FOUND"
        assert len(await receive_all(nodes[1])) == MESSAGES
        assert options(sim, "workers") == OPTIONS

    run(scenario)


async def outcome(node: Caller) -> str:
    try:
        await node("promote", **PROMOTION)
    except HttpRefused as refused:
        return refused.code
    except ConnectionLost:
        return "lost"
    return "promoted"

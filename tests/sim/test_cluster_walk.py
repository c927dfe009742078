"""All operations of the HTTP API, asked of nodes that have only a part of what they are about, or nothing."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from goqueue.records.redrives import GROUP as REDRIVES
from goqueue.testing.simulation import Simulation
from tests.layers import in_layers
from tests.sim.cluster_walk import ASKED_AT_THE_END, BY_NAME, OF_THE_NODE, Asked, walk, walk_as_tenant

OF_ALL_TENANTS = {
    *("reliability_stats", "delay_stats", "transaction_stats", "trace_stats", "list_coordinators", "schema_stats"),
}
"""Closed to tenants."""
Told = list[tuple[str, Any]]


def walked(asked: list[int], *, nodes: int) -> Told:
    """What the nodes that are asked, one after the other, tell on a walk."""

    async def inside(sim: Simulation) -> Told:
        await sim.let_pass("2s")
        return await told_by(sim, asked)

    return simulated(inside, nodes)


async def told_by(sim: Simulation, asked: list[int], tenant: str | None = None) -> Told:
    ask = Asked(sim, asked, tenant)
    await (walk if tenant is None else walk_as_tenant)(ask)
    await ask.close()
    assert sim.loop.exceptions == [], sim.loop.exceptions
    return ask.told


def simulated(inside: Callable[[Simulation], Awaitable[Told]], nodes: int) -> Told:

    settings: dict[str, Any] = {"default_replication_factor": 1} if nodes > 1 else {}
    return Simulation(seed=11, nodes=nodes, cluster=nodes > 1, **settings).run(inside, limit="1h")


@pytest.fixture(scope="module")
def told_alone() -> Told:
    return walked([0], nodes=1)


def test_no_operation_is_left_out(told_alone: Told) -> None:
    assert {name for name, _ in told_alone} == BY_NAME.keys()


@pytest.mark.parametrize("asked", in_layers([[0, 1, 2], [0], [1], [2]], first=1), ids=str)
def test_every_operation_is_answered_as_by_one_node_alone(told_alone: Told, asked: list[int]) -> None:
    told = walked(asked, nodes=3)
    assert [name for name, _ in told] == [name for name, _ in told_alone]
    for (name, here), (_, alone) in zip(told, told_alone):
        if name not in OF_THE_NODE:
            assert here == alone, name


def without_redrives(told: Any) -> Any:
    """Those of all tenants are settled by one group, which only operators see; and records hold names as kept."""
    if isinstance(told, dict):
        return {name: without_redrives(each) for name, each in told.items()}
    if isinstance(told, list):
        seen = [each for each in told if REDRIVES not in ([*each.values()] if isinstance(each, dict) else [each])]
        return [without_redrives(each) for each in seen]
    return told.replace("acme~", "") if isinstance(told, str) else told


def test_every_operation_of_a_tenant_is_answered_as_by_one_node_alone(told_alone: Told) -> None:
    """Whichever node is asked. The tenant `default` has other topics with the same names, and each node leads others of
    their partitions: who looks for the leader of one of those comes to the wrong node."""

    async def together(sim: Simulation) -> Told:
        await sim.let_pass("2s")
        admin = Asked(sim, [0])
        await admin("create_tenant", id="acme", name="Acme")
        for topic in ("orders", "other"):
            await admin("create_topic", name=topic, num_partitions=1)
        await sim.let_pass("1s")
        await admin.close()
        return await told_by(sim, [0, 1, 2], "acme")

    told = simulated(together, 3)
    expected = [*told_alone[: len(told) - ASKED_AT_THE_END], *told_alone[-ASKED_AT_THE_END:]]
    assert [name for name, _ in told] == [name for name, _ in expected]
    for (name, here), (_, there) in zip(told, expected):
        if name in OF_ALL_TENANTS:
            assert here.get("refused") == 403, (name, here)
        elif name not in OF_THE_NODE | {"list_groups"}:  # in pages, of which the group of redrives takes a place
            assert without_redrives(here) == without_redrives(there), name

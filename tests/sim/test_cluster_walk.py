"""All operations of the HTTP API, asked of nodes that have only a part of what they are about, or nothing."""

from typing import Any

import pytest

from goqueue.testing.simulation import Simulation
from tests.sim.cluster_walk import BY_NAME, OF_THE_NODE, Asked, walk

Told = list[tuple[str, Any]]


def walked(asked: list[int], *, nodes: int) -> Told:
    """What the nodes that are asked, one after the other, tell on a walk."""

    async def inside(sim: Simulation) -> Told:
        await sim.let_pass("2s")
        ask = Asked(sim, asked)
        await walk(ask)
        await ask.close()
        assert sim.loop.exceptions == [], sim.loop.exceptions
        return ask.told

    settings: dict[str, Any] = {"default_replication_factor": 1} if nodes > 1 else {}
    return Simulation(seed=11, nodes=nodes, cluster=nodes > 1, **settings).run(inside, limit="1h")


@pytest.fixture(scope="module")
def told_alone() -> Told:
    return walked([0], nodes=1)


def test_no_operation_is_left_out(told_alone: Told) -> None:
    assert {name for name, _ in told_alone} == BY_NAME.keys()


@pytest.mark.parametrize("asked", [[0], [1], [2], [0, 1, 2]], ids=str)
def test_every_operation_is_answered_as_by_one_node_alone(told_alone: Told, asked: list[int]) -> None:
    told = walked(asked, nodes=3)
    assert [name for name, _ in told] == [name for name, _ in told_alone]
    for (name, here), (_, alone) in zip(told, told_alone):
        if name not in OF_THE_NODE:
            assert here == alone, name

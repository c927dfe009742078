"""The cluster's own ledgers: made by the first node alone, they get copies on the nodes that come later, and are led by
all of them; or whoever was there first would be the only one that knows groups and transactions.
"""

from collections import Counter

from goqueue.broker.shards import shard_of_group
from goqueue.machines.groups import commands
from goqueue.model.errors import GoQueueError
from goqueue.model.placements import Placement
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Simulation

GROUPS, TRANSACTIONS, SCHEMAS = "@groups", "@transactions", "@schemas"


def placements(node: SimulatedNode, name: str) -> tuple[Placement, ...]:
    return node.broker.topics.image.ledgers[name].placements


def leaders(node: SimulatedNode, name: str) -> Counter[int]:
    return Counter(one.leader for one in placements(node, name))


def commit(node: SimulatedNode, group_id: str, offset: int) -> list[object]:
    replies: list[object] = []
    command = commands.CommitOffsets(group_id, (commands.OffsetToCommit("orders", 0, offset),))
    node.broker.groups.submit(command, replies.append)
    return replies


def committed(node: SimulatedNode, group_id: str) -> list[int]:
    for each, offsets in node.broker.groups.measured():
        if each.group_id == group_id:
            return [one.offset for one in offsets.values()]
    return []


def coordinator(sim: Simulation, group_id: str, seen_by: SimulatedNode) -> SimulatedNode:
    return sim.nodes[placements(seen_by, GROUPS)[shard_of_group(group_id)].leader - 1]


def test_ledgers_that_one_node_made_get_three_copies_and_leaders_everywhere() -> None:
    sim = Simulation(seed=1, nodes=3, cluster=True)
    late = sim.nodes[1:]
    del sim.nodes[1:]  # they are started when the first has been alone for long

    async def scenario(sim: Simulation) -> None:
        (first,) = sim.nodes
        await sim.let_pass("60s")
        assert {one.replicas for one in placements(first, GROUPS)} == {(1,)}
        for node in late:
            sim.nodes.append(node)
            await node.start()
        await sim.let_pass("8s")
        for name in (GROUPS, TRANSACTIONS):
            assert {(len(one.replicas), len(one.isr)) for one in placements(first, name)} == {(3, 3)}, name
            counted = leaders(first, name)
            assert sorted(counted) == [1, 2, 3], f"{name} is led by {counted}"
            assert max(counted.values()) - min(counted.values()) <= 1, counted
        assert [len(one.isr) for one in placements(first, SCHEMAS)] == [3]
        assert not sim.loop.exceptions

    sim.run(scenario, limit="5m")


def test_a_group_is_not_lost_with_the_node_that_made_the_ledgers() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("8s")
        first, left = sim.nodes[0], sim.nodes[1:]
        groups = [f"flock-{number}" for number in range(16)]
        for group_id in groups:
            replies = commit(coordinator(sim, group_id, first), group_id, 3)
            await sim.let_pass("1s")
            assert replies
            assert not isinstance(replies[0], GoQueueError)
        first.crash("power")
        await sim.let_pass("8s")
        for group_id in groups:
            assert committed(coordinator(sim, group_id, left[0]), group_id) == [3], group_id
        assert not sim.loop.exceptions

    Simulation(seed=2, nodes=3, cluster=True).run(scenario, limit="5m")


def test_leaders_of_ledgers_do_not_wander_once_they_are_spread() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("8s")
        before = [one.epoch for one in placements(sim.nodes[0], GROUPS)]
        await sim.let_pass("60s")
        assert [one.epoch for one in placements(sim.nodes[0], GROUPS)] == before
        assert max(before) <= 2, "each was handed over once for each node that came"

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="3m")

"""Questions about a group or a message get the same whole answer from every node, whatever that node leads of it."""

from collections.abc import Sequence
from typing import Any

from goqueue.broker.shards import shard_of_group
from goqueue.machines.deliveries.commands import Place, Stand
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.testing.simulation import Simulation
from tests.sim.test_cluster_doors import PARTITIONS, Caller, publish, receive_all, run


def without_ages(told: Any) -> Any:
    """What passes between two questions is not compared."""
    if isinstance(told, dict):
        return {name: without_ages(each) for name, each in told.items() if "age" not in name}
    return [without_ages(each) for each in told] if isinstance(told, list) else told


async def committed(sim: Simulation, group: str, offset: int) -> None:
    """By a stream group, in all partitions."""
    owner = next(node for node in sim.nodes if node.broker.groups.is_led(shard_of_group(group)))
    offsets = tuple(commands.OffsetToCommit("orders", number, offset) for number in range(PARTITIONS))
    owner.broker.groups.submit(commands.CommitOffsets(group, offsets), lambda reply: None)
    await sim.let_pass("1s")


def test_every_node_tells_the_lag_of_a_queue_group_in_all_partitions() -> None:
    async def scenario(_sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0], 24)
        got = await receive_all(nodes[0])
        settled = [each["receipt_handle"] for each in got if each["partition"] == 0]
        await nodes[1]("settle_all", receipt_handles=settled)
        told = [without_ages(await node("group_lag", group="workers")) for node in nodes]
        assert told[1] == told[0] == told[2]
        partitions = told[0]["partitions"]
        assert [each["partition"] for each in partitions] == list(range(PARTITIONS))
        assert sum(sum(each["queue"]["leased"].values()) for each in partitions) == 24 - len(settled)
        assert told[0]["total_lag"] == 24 - len(settled)
        lags = [without_ages(await node("all_lags")) for node in nodes]
        assert lags[1] == lags[0] == lags[2]
        assert lags[0]["groups"] == [told[0]]

    run(scenario, seed=41)


def test_every_node_tells_the_lag_of_stream_groups_in_all_partitions() -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0], 24)
        for number in range(3):
            await committed(sim, f"flock-{number}", 1)
        for number in range(3):
            told = [await node("group_lag", group=f"flock-{number}") for node in nodes]
            assert told[1] == told[0] == told[2]
            assert told[0]["total_lag"] == 24 - PARTITIONS
        lags = [await node("all_lags") for node in nodes]
        assert lags[1] == lags[0] == lags[2]
        assert [each["total_lag"] for each in lags[0]["groups"]] == [24 - PARTITIONS] * 3

    run(scenario, seed=42)


def test_why_knows_of_all_groups_and_of_the_node_that_leads_the_message() -> None:
    """Whichever nodes coordinate the groups."""

    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0], 24)
        names = [f"flock-{number}" for number in range(6)]
        for name in names:
            await committed(sim, name, 1)
        await receive_all(nodes[0])
        image = sim.nodes[0].broker.topics.image
        coordinators = {image.placement("@groups", shard_of_group(name)).leader for name in names}
        leaders = [one.leader for one in image.topics["orders"].placements]
        assert set(leaders) - coordinators, "else nothing was tried"
        for partition in range(PARTITIONS):
            place = {"topic": "orders", "partition": partition, "offset": 0}
            told = [await node("where_is", **place) for node in nodes]
            for each in told:
                assert each["node"] == f"node-{leaders[partition]}"
                found = {one["group"]: one["state"] for one in each["groups"]}
                assert found == {**dict.fromkeys(names, "read"), "workers": "leased"}

    run(scenario, seed=43)


def test_every_node_tells_where_a_share_group_stands_in_all_partitions() -> None:
    """As DescribeShareGroupOffsets asks: of all that it reads, or of what is named, whoever leads it."""

    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        await publish(nodes[0], 24)
        got = await receive_all(nodes[0])
        settled = [each["receipt_handle"] for each in got if each["partition"] < 2]
        await nodes[1]("settle_all", receipt_handles=settled)
        named = [Place("workers", "orders", number) for number in range(PARTITIONS)]
        stands: list[Sequence[Stand]] = []
        kinds: list[bool | GoQueueError] = []
        for node in sim.nodes:
            for places in (None, named):
                node.broker.queues.stands("workers", places, stands.append)
            for name in ("workers", "nobody"):
                node.broker.groups.find_queue(name, kinds.append)
            await sim.let_pass("1s")
        assert stands == [stands[0]] * 6
        assert [(one.partition, one.code) for one in stands[0]] == [(n, Code.NONE) for n in range(PARTITIONS)]
        assert [one.lag for one in stands[0][:2]] == [0, 0]
        assert sum(one.lag for one in stands[0]) == 24 - len(settled)
        assert kinds == [True, False] * 3

    run(scenario, seed=44)

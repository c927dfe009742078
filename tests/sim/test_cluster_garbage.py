"""What nodes of a cluster do for each other leaves nothing to the cycle collector, which would stop their loops."""

from goqueue.testing.simulation import Simulation
from tests.garbage import garbage
from tests.sim.test_cluster_doors import Caller, publish, receive_all, run

TIMES = 6


async def one_round(sim: Simulation, node: Caller) -> None:
    """Asked of one node; the partitions and the group have other leaders too."""
    await publish(node, 6)
    await publish(node, 3, delay="50ms")
    held = await receive_all(node)
    receipts = [each["receipt_handle"] for each in held]
    await node("settle_all", receipt_handles=receipts[2:])
    await node("ack", receipt_handle=receipts[0])
    await node("nack", receipt_handle=receipts[1])
    positions = [{"topic": "orders", "partition": partition, "offset": 1} for partition in (0, 3)]
    await node("commit_offsets", group="readers", offsets=positions)
    for operation in ("group_lag", "group_offsets", "describe_group"):
        await node(operation, group="readers")
    await node("list_groups")
    writer = await node("init_producer", transactional_id="writer")
    producer = {"producer_id": writer["producer_id"], "epoch": writer["epoch"], "transactional_id": "writer"}
    await node("begin_transaction", **producer)
    await node("publish_in_transaction", **producer, topic="orders", partition=4, value="in")
    await node("commit_transaction", **producer)
    await sim.let_pass("200ms")


def test_requests_that_are_forwarded_and_copies_that_are_made_leave_no_garbage() -> None:
    async def scenario(sim: Simulation, nodes: list[Caller]) -> None:
        for node in nodes:  # what is made once, as decoders are
            await one_round(sim, node)
        with garbage() as found:
            for number in range(TIMES):
                await one_round(sim, nodes[number % 3])
        assert dict(found) == {}

    run(scenario, copies=3)

"""A pause holds on all nodes, whichever was asked for it."""

from goqueue.client import Admin
from goqueue.testing import Cluster, cluster
from goqueue.wire.rest import operations as on

PARTITIONS = 6


async def receive(admin: Admin, group: str = "workers") -> set[tuple[int, int]]:
    """All that there is: one answer may be of one node alone."""
    found: set[tuple[int, int]] = set()
    while True:
        told = await admin.call(on.groups.RECEIVE_MESSAGES, topic="orders", group=group, max_messages=100)
        if not told.messages:
            return found
        for each in told.messages:
            await admin.call(on.acks.ACK, receipt_handle=each.receipt_handle)
            found.add((each.partition, each.offset))


async def publish(admin: Admin) -> None:
    messages = [{"value": "x", "partition": number} for number in range(PARTITIONS)]
    await admin.call(on.messages.PUBLISH, topic="orders", messages=messages)


def test_a_group_that_one_node_was_told_to_pause_gets_nothing_from_the_others() -> None:
    async def scenario(c: Cluster) -> None:
        async with Admin(c.http, **c.ports) as admin:
            await admin.create_topic("orders", partitions=PARTITIONS)
            await c.settled()
            leaders = {each.leader for each in c.node(1).broker.topics.image.topics["orders"].placements}
            assert len(leaders) > 1, "else this shows nothing"
            await publish(admin)
            assert len(await receive(admin)) == PARTITIONS
            await admin.set_group_options("workers", delivery="paused")
            await c.advance("1s")
            await publish(admin)
            assert await receive(admin) == set()
            assert len(await receive(admin, "others")) == 2 * PARTITIONS
            await admin.set_group_options("workers", delivery=None)
            await c.advance("1s")
            assert len(await receive(admin)) == PARTITIONS

    cluster().run(scenario)

"""Administration over HTTP."""

from zlib import crc32

from tests.unit.doors.http.door_client import Client, served


@served
async def test_a_topic_gets_more_partitions(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    tried = await client.post("/admin/topics/orders/partitions", count=4, dry_run=True)
    assert tried["partitions_added"] == [2, 3]
    assert (await client.get("/topics/orders"))["partitions"] == 2
    assert await client.post("/admin/topics/orders/partitions", count=4, replica_assignments=None) == {
        "success": True,
        "topic_name": "orders",
        "old_partition_count": 2,
        "new_partition_count": 4,
        "partitions_added": [2, 3],
        "dry_run": False,
    }
    await client.b.publish("orders", b"x", partition=3)
    status = await client.get("/admin/topics/orders/scaling-status")
    assert status == {"topic": "orders", "scaling_in_progress": False, "partitions": 4}


@served
async def test_partitions_that_a_topic_cannot_have(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    for count in (0, 1, 2, 10_001):
        await client.post("/admin/topics/orders/partitions", count=count, status=400)
    await client.post("/admin/topics/orders/partitions", status=400)
    await client.post("/admin/topics/none/partitions", count=4, status=404)
    await client.get("/admin/topics/none/scaling-status", status=404)


@served
async def test_every_group_has_a_coordinator(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.receive("orders", group="packers")
    found = await client.get("/admin/coordinators")
    assert (found["internal_topic"], found["partition_count"], len(found["coordinators"])) == ("__groups", 4, 8)
    assert {each["node"] for each in found["coordinators"]} == {"node-1"}
    busy = [each for each in found["coordinators"] if each["groups"]]
    partition = crc32(b"packers") % 4
    assert [(each["internal_topic"], each["partition"]) for each in busy] == [("__deliveries", partition)]
    told = await client.get("/admin/coordinators/groups/packers")
    assert (told["internal_topic"], told["coordinator_partition"]) == ("__deliveries", partition)
    told = await client.get("/admin/coordinators/groups/unknown")
    assert (told["internal_topic"], told["coordinator_node"]) == ("__groups", "node-1")
    assert told["routing_info"] == {"hash": crc32(b"unknown"), "partition_count": 4}

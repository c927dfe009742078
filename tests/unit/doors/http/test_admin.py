"""Administration over HTTP."""

import errno
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
    assert (found["internal_topic"], found["partition_count"], len(found["coordinators"])) == ("@groups", 16, 17)
    assert {each["node"] for each in found["coordinators"]} == {"node-1"}
    busy = [each for each in found["coordinators"] if each["groups"]]
    assert [(each["internal_topic"], each["partition"]) for each in busy] == [("@deliveries/orders", 0)]
    told = await client.get("/admin/coordinators/groups/packers")
    assert (told["internal_topic"], told["coordinator_partition"]) == ("@deliveries/orders", 0)
    told = await client.get("/admin/coordinators/groups/unknown")
    assert (told["internal_topic"], told["coordinator_node"]) == ("@groups", "node-1")
    assert told["routing_info"] == {"hash": crc32(b"unknown"), "partition_count": 16}


@served
async def test_a_topic_is_compacted_at_once(client: Client) -> None:
    await client.b.create_topic("prices", partitions=2, cleanup_policy="compact")
    for number in range(10):
        await client.b.publish("prices", b"%d" % number, key=b"k%d" % (number % 2), partition=0)
    tried = await client.post("/admin/topics/prices/compact", dry_run=True, partitions=[0, 0])
    assert tried == {
        "success": True,
        "topic": "prices",
        "dry_run": True,
        "results": [
            {
                "partition": 0,
                "compacted": False,
                "records_before": 10,
                "records_after": 2,
                "records_removed": 8,
                "dirty_ratio": 1.0,
            }
        ],
    }
    assert len(await client.b.read("prices")) == 10
    first, second = (await client.post("/admin/topics/prices/compact"))["results"]
    assert (first["compacted"], first["records_removed"], second["compacted"]) == (True, 8, False)
    assert [each.value for each in await client.b.read("prices")] == [b"8", b"9"]
    await client.b.publish("prices", b"10", key=b"k0", partition=0)
    first, _ = (await client.post("/admin/topics/prices/compact"))["results"]
    assert (first["records_before"], first["records_after"], 0 < first["dirty_ratio"] < 1) == (3, 2, True)
    await client.b.crash()
    await client.restart()
    assert [each.value for each in await client.b.read("prices")] == [b"9", b"10"]
    first, _ = (await client.post("/admin/topics/prices/compact"))["results"]
    assert (first["compacted"], first["records_removed"]) == (False, 0)


@served
async def test_what_cannot_be_compacted(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.create_topic("prices", cleanup_policy="compact")
    assert (await client.post("/admin/topics/orders/compact", status=400))["code"] == "INVALID_CONFIG"
    await client.post("/admin/topics/prices/compact", partitions=[1], status=404)
    await client.post("/admin/topics/prices/compact", partitions=[], status=400)
    await client.post("/admin/topics/none/compact", status=404)
    await client.b.publish("prices", b"x", key=b"k")
    client.b.faults.add("sync", errno.EIO)
    reply = await client.post("/admin/topics/prices/compact")
    assert reply["success"] is False
    assert reply["results"][0]["error"]

"""Priorities over HTTP."""

from tests.unit.doors.http.door_client import Client, served

LANES = ["critical", "high", "normal", "low", "background"]


async def with_lanes(client: Client) -> None:
    await client.b.create_topic("orders", partitions=2)
    for partition, priority in ((0, "high"), (1, "high"), (1, "low")):
        await client.b.publish("orders", b"x", priority=priority, partition=partition)
        await client.b.advance("1s")
    await client.b.receive("orders", group="packers", partition=0, max_messages=1)
    await client.b.receive("orders", group="packers", partition=1, max_messages=1)


@served
async def test_lanes_tell_what_is_ready_and_in_flight_and_how_fast_it_goes(client: Client) -> None:
    await with_lanes(client)
    found = await client.get("/topics/orders/lanes", group="packers")
    assert [each["lane"] for each in found["lanes"]] == LANES
    assert [(each["ready"], each["in_flight"]) for each in found["lanes"]] == [(0, 0), (0, 2), (0, 0), (1, 0), (0, 0)]
    assert [each["oldest_ready_ms"] for each in found["lanes"]] == [None, None, None, 1000, None]
    assert [each["partition"] for each in found["partitions"]] == [0, 1]
    assert found["partitions"][0]["lanes"][1]["in_flight"] == 1
    await client.b.publish_many("orders", [{"value": b"y", "priority": "critical", "partition": 0}] * 10)
    await client.b.advance("2s")
    found = await client.get("/topics/orders/lanes", group="packers")
    assert (found["lanes"][0]["enqueue_rate"], found["lanes"][0]["dequeue_rate"]) == (5.0, 0.0)
    await client.b.receive("orders", group="packers", max_messages=10)
    await client.b.advance("2s")
    assert (await client.get("/topics/orders/lanes", group="packers"))["lanes"][0]["dequeue_rate"] > 0


@served
async def test_priorities_are_counted_for_all_groups(client: Client) -> None:
    assert (await client.get("/priority/stats"))["topics"] == {}
    await with_lanes(client)
    await client.b.receive("orders", group="billing", max_messages=1, partition=1)
    found = await client.get("/priority/stats")
    assert found["total_by_priority"] == [0, 2, 0, 1, 0]
    assert found["messages_by_priority"] == dict(zip(LANES, [0, 2, 0, 1, 0]))
    assert found["avg_wait_time_by_priority"] == dict.fromkeys(LANES)
    second = found["topics"]["orders"]["partitions"]["1"]
    assert second == {
        "pending": [0, 0, 0, 2, 0],
        "consumed": [0, 2, 0, 0, 0],
        "total": [0, 1, 0, 1, 0],
        "oldest_pending": [None, None, None, 1000, None],
    }
    assert found["topics"]["orders"]["total_by_priority"] == [0, 2, 0, 1, 0]


@served
async def test_lanes_of_nobody_and_nothing(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.get("/topics/orders/lanes", status=400)
    await client.get("/topics/orders/lanes", group="packers", status=404)
    await client.get("/topics/none/lanes", group="packers", status=404)

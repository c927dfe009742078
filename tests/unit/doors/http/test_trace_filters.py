"""Filters of the list of traces: each chooses, and none is passed over."""

from typing import Any

from tests.unit.doors.http.door_client import Client, served

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@served
async def test_a_list_of_traces_keeps_to_its_filters(client: Client) -> None:
    await client.b.create_topic("orders", 2)
    await client.b.create_topic("bills")
    for number in range(4):
        await client.b.publish("orders", b"v", key=b"k%d" % number, partition=number % 2)
    await client.b.publish("bills", b"v", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01".encode()})

    async def found(**query: Any) -> list[tuple[str, int, int]]:
        listed = await client.get("/traces", **query)
        assert listed["total"] == len(listed["traces"])
        return [(each["topic"], each["partition"], each["offset"]) for each in listed["traces"]]

    assert await found(trace_id=TRACE) == [("bills", 0, 0)]
    assert await found(trace_id="e" * 32) == []
    assert await found(topic="orders", partition=1) == [("orders", 1, 1), ("orders", 1, 0)]
    assert await found(topic="orders", partition=1, offset=0) == [("orders", 1, 0)]
    assert await found(topic="orders", key="k2") == [("orders", 0, 1)]
    assert await found(topic="orders", trace_id=TRACE) == []
    assert (await client.ask("GET", "/traces", params={"status": "error"}))["traces"] == []
    await client.get("/traces", offset=1, status=400)
    await client.get("/traces", key="k2", status=400)

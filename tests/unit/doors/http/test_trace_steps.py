"""All that is kept of journeys, over HTTP, as runs of messages."""

from typing import Any

from tests.unit.doors.http.door_client import Client, served


@served
async def test_steps_tell_what_happened_to_which_messages(client: Client) -> None:
    await client.b.create_topic("orders")
    await client.b.create_topic("bills")
    await client.b.publish("orders", b"v", delay="1s")
    await client.b.publish("orders", b"v")
    await client.b.publish("bills", b"v")
    await client.b.advance("2s")
    for message in await client.b.receive("orders", consumer="w3"):
        await message.reject("no")
    page = await client.get("/traces/steps", topic="orders")
    assert page["next"] is None
    told = [(each["event_type"], each["first_offset"], each["last_offset"]) for each in page["steps"]]
    assert {(name, first) for name, first, _ in told} >= {
        ("delay.scheduled", 0),
        ("delay.due", 0),
        ("publish.received", 1),
        ("dead_letter.written", 1),
        ("dead_letter.written", 2),
    }
    assert all(first <= last for _, first, last in told)
    (due,) = [each for each in page["steps"] if each["event_type"] == "delay.due"]
    assert (due["moved_to"], due["every"], "detail" in due) == (2, 1, False)
    leased = next(each for each in page["steps"] if each["event_type"] == "consume.leased")
    assert (leased["consumer_group"], leased["consumer_id"], leased["topic"]) == ("workers", "w3", "orders")


@served
async def test_steps_are_read_in_parts(client: Client) -> None:
    await client.b.create_topic("orders")
    for _ in range(4):
        await client.b.publish("orders", b"v")
    whole = await client.get("/traces/steps")
    assert (whole["first"], whole["end"], len(whole["steps"])) == (0, 8, 8)
    nothing = await client.get("/traces/steps", until=0)
    assert (nothing["steps"], nothing["next"], nothing["end"]) == ([], None, 8)

    async def part(**query: Any) -> Any:
        return (await client.get("/traces/steps", **query))["steps"]

    assert await part(until=3) + await part(cursor=3) == whole["steps"]
    assert await part(cursor=8) == []
    assert await part(topic="bills") == []
    await client.get("/traces/steps", cursor=-1, status=400)


@served
async def test_a_sample_says_which_messages_it_is_about(client: Client) -> None:
    client.b.broker.tracing.journeys.sampling = 0.5
    await client.b.create_topic("orders")
    await client.b.publish("orders", b"v")
    (received, _persisted) = (await client.get("/traces/steps"))["steps"]
    assert (received["first_offset"], received["every"]) == (0, 2)

"""Seek, replay and forks over HTTP."""

from typing import Any

from goqueue.machines.groups import commands
from tests.unit.doors.http.door_client import Client, served


async def with_settled(client: Client, *values: str, partitions: int = 1) -> None:
    """A topic of which the group `packers` has acked all."""
    await client.b.create_topic("orders", partitions=partitions)
    for number, value in enumerate(values):
        await client.b.publish("orders", value.encode(), key=value.encode(), partition=number % partitions)
        await client.b.advance("1m")
    await ack_all(client, "packers")


async def ack_all(client: Client, group: str) -> list[str]:
    found = []
    while some := await client.b.receive("orders", group=group):
        for message in some:
            found.append((message.value or b"").decode())
            await message.ack()
    return found


async def compared(client: Client, other: str, status: int = 200) -> Any:
    return await client.ask("GET", "/groups/packers/compare", status=status, params={"with": other})


@served
async def test_a_part_of_a_topic_is_delivered_once_more(client: Client) -> None:
    await with_settled(client, *"abcd")
    wanted: dict[str, Any] = {"topic": "orders", "from": 1, "to": 3}
    tried = await client.post("/groups/packers/replay", **wanted, dry_run=True)
    assert (tried["messages"], tried["dry_run"]) == (2, True)
    assert await ack_all(client, "packers") == []
    done = await client.post("/groups/packers/replay", **wanted)
    assert done["partitions"] == [{"partition": 0, "from_offset": 1, "to_offset": 3, "messages": 2}]
    assert await ack_all(client, "packers") == ["b", "c"]
    await client.post("/groups/packers/replay", **(wanted | {"from": "-2m", "to": "latest"}))
    assert await ack_all(client, "packers") == ["c", "d"]
    wanted = {"topic": "orders", "from": "earliest", "filter": {"key": "b"}}
    assert (await client.post("/groups/packers/replay", **wanted))["messages"] == 1
    assert await ack_all(client, "packers") == ["b"]


@served
async def test_a_fork_that_has_not_begun_keeps_nobody_from_asking_why(client: Client) -> None:
    await with_settled(client, "a")
    await client.post("/groups/packers/fork", name="try", status=201)
    answer = await client.ask("GET", "/topics/orders/partitions/0/messages/0/why")
    assert {each["group"]: each["state"] for each in answer["groups"]} == {
        "packers": "settled",
        "try": "not looked at yet",
    }
    assert "try: this group has not begun to read here" in answer["answer"]


@served
async def test_a_replay_may_go_to_a_fork_that_is_compared_and_promoted(client: Client) -> None:
    await with_settled(client, *"abcd", partitions=2)
    body: dict[str, Any] = {
        "topic": "orders",
        "from": "2026-01-01T00:00:00Z",
        "to": "latest",
        "fork_as": "again",
        "partitions": [1, 1],
    }
    done = await client.post("/groups/packers/replay", **body)
    assert (done["group"], done["messages"]) == ("again", 2)
    assert await ack_all(client, "packers") == []
    assert await compared(client, "again") == {
        "group": "packers",
        "with": "again",
        "is_equal": False,
        "differences": [{"topic": "orders", "partition": 1, "only_group": [[0, 1]], "only_with": []}],
    }
    (first,) = await client.b.receive("orders", group="again", max_messages=1)
    await first.ack()
    assert await client.post("/groups/packers/promote", fork="again") == {
        "promoted": True,
        "group": "packers",
        "fork": "again",
    }
    assert await ack_all(client, "packers") == ["d"]
    await client.post("/groups/packers/promote", fork="again", status=404)


@served
async def test_a_fork_goes_its_own_way_and_is_dropped(client: Client) -> None:
    await with_settled(client, "a")
    assert (await client.post("/groups/packers/fork", name="try", status=201))["forked"]
    assert (await compared(client, "try"))["is_equal"]
    await client.post("/groups/packers/fork", name="try", status=409)
    await client.b.publish("orders", b"b")
    assert await ack_all(client, "try") == ["b"]
    assert await client.delete("/groups/packers/fork/try") == {"deleted": True, "group": "packers", "fork": "try"}
    await client.delete("/groups/packers/fork/try", status=404)
    await client.delete("/groups/packers/fork/packers", status=400)
    assert await ack_all(client, "packers") == ["b"]


@served
async def test_forks_of_a_group_are_listed_with_what_differs(client: Client) -> None:
    async def forks(group: str = "packers", **query: Any) -> list[tuple[str, int, int]]:
        found = (await client.get(f"/groups/{group}/forks", **query))["forks"]
        return [(each["fork"], each["only_group"], each["only_fork"]) for each in found]

    await with_settled(client, *"abcd", partitions=2)
    assert await forks() == []
    await client.post("/groups/packers/fork", name="try", status=201)
    wanted: dict[str, Any] = {"topic": "orders", "from": "earliest", "fork_as": "again"}
    await client.post("/groups/packers/replay", **wanted)
    assert await forks() == [("again", 4, 0), ("try", 0, 0)]
    (first,) = await client.b.receive("orders", group="again", max_messages=1)
    await first.ack()
    await client.b.publish("orders", b"e", partition=0)
    assert await ack_all(client, "try") == ["e"]
    assert await forks() == [("again", 3, 0), ("try", 0, 1)]
    page = await client.get("/groups/packers/forks", limit=1)
    assert ([each["fork"] for each in page["forks"]], page["next"]) == (["again"], "again")
    assert await forks(cursor="again") == [("try", 0, 1)]
    assert (await client.get("/groups/packers/forks", cursor="again"))["next"] is None
    await client.post("/groups/try/fork", name="try-2", status=201)
    assert await forks("try") == [("try-2", 0, 0)], "a fork of a fork is the fork's"
    await client.b.restart()
    await client.restart()
    assert [each for each, *_ in await forks()] == ["again", "try"]
    await client.post("/groups/try/promote", fork="try-2")
    await client.delete("/groups/packers/fork/again")
    assert (await forks("try"), await forks()) == ([], [("try", 0, 1)]), "who takes over from its fork stays a fork"
    await client.post("/groups/packers/promote", fork="try")
    assert await forks() == []
    await client.get("/groups/nobody/forks", status=404)
    await client.get("/groups/packers/forks", limit=0, status=400)


@served
async def test_where_a_fork_comes_from_is_no_option(client: Client) -> None:
    await with_settled(client, "a")
    await client.ask("PATCH", "/groups/packers/options", json={"options": {"lease.ms": "5000"}})
    await client.post("/groups/packers/fork", name="try", status=201)
    assert (await client.get("/groups/try/options"))["options"] == {"lease.ms": "5000"}
    await client.ask("PATCH", "/groups/try/options", json={"options": {"lease.ms": None}})
    assert (await client.get("/groups/try/options"))["options"] == {}
    for value in ("packers", None):
        await client.ask("PATCH", "/groups/try/options", json={"options": {"fork.of": value}}, status=400)
    assert len((await client.get("/groups/packers/forks"))["forks"]) == 1
    await client.delete("/groups/try")
    assert (await client.get("/groups/packers/forks"))["forks"] == []
    await client.b.receive("orders", group="try")
    assert (await client.get("/groups/packers/forks"))["forks"] == [], "another group of this name is no fork"


@served
async def test_a_queue_group_is_sent_elsewhere(client: Client) -> None:
    await with_settled(client, *"abcd", partitions=2)
    tried = await client.post("/groups/packers/seek", topic="orders", to="earliest", dry_run=True)
    assert tried["partitions"] == [{"partition": each, "before": 2, "after": 0} for each in (0, 1)]
    assert (await client.post("/groups/packers/seek", topic="orders", to=1, partitions=[1]))["mode"] == "queue"
    assert await ack_all(client, "packers") == ["d"]
    await client.post("/groups/packers/seek", topic="orders", to="-90s")
    assert await ack_all(client, "packers") == ["d"]
    await client.post("/groups/new/seek", topic="orders", to="latest", status=404)
    await client.post("/groups/new/seek", topic="orders", to="latest", mode="queue")
    assert await ack_all(client, "new") == []


@served
async def test_a_stream_group_is_sent_elsewhere(client: Client) -> None:
    await with_settled(client, *"abcd", partitions=2)
    seek = "/groups/readers/seek"
    made = await client.post(seek, topic="orders", to="latest", mode="stream")
    assert made["partitions"] == [{"partition": each, "before": -1, "after": 2} for each in (0, 1)]
    moved = await client.post(seek, topic="orders", to=1, partitions=[0])
    assert (moved["mode"], moved["partitions"]) == ("stream", [{"partition": 0, "before": 2, "after": 1}])
    committed: Any = await client.b.ask(
        lambda done: client.b.broker.groups.submit(commands.FetchOffsets("readers", None), done)
    )
    assert sorted((each.partition, each.offset) for each in committed.offsets) == [(0, 1), (1, 2)]
    refused = await client.post("/groups/packers/seek", topic="orders", to=0, mode="stream", status=404)
    assert refused["code"] == "GROUP_ID_NOT_FOUND", "it is a share group, and has no offsets"


@served
async def test_what_cannot_be_read_again(client: Client) -> None:
    await with_settled(client, "a")
    replay: dict[str, Any] = {"topic": "orders", "from": "earliest"}
    for change, status in (
        ({"topic": "none"}, 404),
        ({"from": 99}, 400),
        ({"from": -1}, 400),
        ({"from": "noon"}, 400),
        ({"to": None}, 400),
        ({"filter": {"lane": "x"}}, 400),
        ({"partitions": [7]}, 404),
        ({"partitions": []}, 400),
        ({"rate": -1}, 400),
        ({"fork_as": "packers"}, 409),
        ({"fork_as": "a/b"}, 400),
    ):
        await client.post("/groups/packers/replay", **(replay | change), status=status)
    await client.post("/groups/none/replay", **replay, fork_as="x", status=404)
    await client.post("/groups/packers/seek", topic="orders", to="sideways", status=400)
    await client.post("/groups/packers/seek", topic="orders", to=0, mode="both", status=400)
    await client.post("/groups/packers/seek", topic="none", to=0, status=404)
    await client.post("/groups/none/fork", name="x", status=404)
    await compared(client, "none", status=404)
    await client.get("/groups/packers/compare", status=400)
    await client.post("/groups/packers/promote", fork="none", status=404)
    await client.post("/groups/packers/promote", fork="packers", status=400)

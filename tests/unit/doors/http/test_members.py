"""Members over HTTP: joining, polling, leaving, and what happens to partitions and messages meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.gate import Gate
from goqueue.broker.groups.member_poll import PollRequest, poll
from goqueue.doors.http.call import Call
from goqueue.doors.http.leased import lease
from goqueue.doors.http.permissions import READS
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.credentials import Credentials
from goqueue.model.members import Who
from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.group_members import (
    GROUP,
    ack,
    join,
    numbered,
    publish,
    restarted,
    settle,
    started,
    topic,
)


@served
async def test_a_member_gets_all_partitions_and_says_so_in_both_shapes(client: Client) -> None:
    await topic(client, 2)
    joined = await client.post(f"{GROUP}/join", client_id="app", topics=["orders"], session_timeout="45s")
    assert joined == {
        "member_id": joined["member_id"],
        "generation": 1,
        "leader_id": joined["member_id"],
        "rebalance_required": False,
        "protocol": "eager",
        "assigned_partitions": ["orders-0", "orders-1"],
        "partitions": [0, 1],
        "assignment": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}],
        "members": [joined["member_id"]],
        "session_timeout_ms": 45_000,
    }
    assert joined["member_id"].startswith("app-")
    beat = await client.post(f"{GROUP}/heartbeat", member_id=joined["member_id"], generation=1)
    assert (beat["status"], beat["rebalance_required"], beat["state"]) == ("ok", False, "Stable")


@served
async def test_two_members_share_and_each_message_comes_once(client: Client) -> None:
    await topic(client, 4)
    everything = await numbered(client, 5, 4)
    first = await join(client)
    second = await join(client)
    assert (len(first.assigned), second.assigned) == (4, [])
    await settle(first, second)
    assert sorted(first.assigned + second.assigned) == [f"orders-{number}" for number in range(4)]
    assert len(first.assigned) == len(second.assigned) == 2
    got = [await first.values(), await second.values()]
    assert [len(each) for each in got] == [10, 10]
    assert {*got[0], *got[1]} == everything
    assert await first.values() == [], "what was polled is invisible until its lease ends"


@served
async def test_three_members_share_and_nobody_who_keeps_a_partition_stops(client: Client) -> None:
    await topic(client, 6)
    first, second = await join(client), await join(client)
    await settle(first, second)
    third = await join(client)
    kept = set(first.assigned)
    await numbered(client, 1, 6)
    values = await first.values()
    assert {f"orders-{each[0]}" for each in values} < kept, "it goes on with what it keeps"
    await settle(first, second, third)
    assert [len(member.assigned) for member in (first, second, third)] == [2, 2, 2]
    assert {*first.assigned, *second.assigned, *third.assigned} == {f"orders-{number}" for number in range(6)}
    assert set(first.assigned) < kept
    await second.leave()
    await settle(first, third)
    assert {*first.assigned, *third.assigned} == {f"orders-{number}" for number in range(6)}


@served
async def test_a_poll_brings_messages_of_all_topics_as_one_list(client: Client) -> None:
    await topic(client, 1)
    await topic(client, 1, name="bills")
    await publish(client, "a", "b", "c", key="k", headers={"h": "1"}, priority="high")
    await publish(client, "x", "y", name="bills")
    member = await join(client, "orders", "bills")
    reply = await member.poll(limit=2, max_messages=4)
    assert len(reply["messages"]) == 2, "a total limit, the smaller of the two"
    reply["messages"] += (await member.poll())["messages"]
    assert {(each["topic"], each["value"]) for each in reply["messages"]} == {
        ("orders", "a"),
        ("orders", "b"),
        ("orders", "c"),
        ("bills", "x"),
        ("bills", "y"),
    }
    message = next(each for each in reply["messages"] if each["value"] == "a")
    assert message.pop("receipt_handle")
    assert message == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": "2026-01-01T00:00:00Z",
        "key": "k",
        "value": "a",
        "headers": {"h": "1", "gq-priority": "high"},
        "priority": "high",
        "delivery_count": 1,
        "lease_until": "2026-01-01T00:00:30Z",
    }


@served
async def test_next_offset_never_passes_what_was_not_delivered(client: Client) -> None:
    await topic(client)
    await publish(client, "slow", "slow", priority="low")
    await publish(client, "fast", priority="critical")
    member = await join(client)
    reply = await member.poll(limit=1)
    assert [each["value"] for each in reply["messages"]] == ["fast"]
    assert reply["next_offset"] == {"orders": {"0": 0}}, "committing it must not settle what nobody has seen"
    assert (await member.poll())["next_offset"] == {"orders": {"0": 3}}


@served
async def test_a_long_poll_waits_and_keeps_its_member_alive(client: Client) -> None:
    await topic(client)
    member = await join(client, session_timeout="2s")
    waiting = await started(client, member.poll("30s"))
    await client.b.advance("20s")
    await publish(client, "late")
    await client.b.advance("1s")
    reply = await asyncio.wait_for(waiting, 5)
    assert [each["value"] for each in reply["messages"]] == ["late"]


@served
async def test_an_empty_poll_answers_with_no_messages(client: Client) -> None:
    await topic(client)
    member = await join(client)
    waiting = await started(client, client.get(f"{GROUP}/poll", member_id=member.id))
    await client.b.advance("29s")
    assert not waiting.done()
    await client.b.advance("1s")
    assert (await waiting)["messages"] == []
    waiting = await started(client, member.poll("10m"))
    await client.b.advance("60s")
    assert (await waiting)["messages"] == [], "cut to a minute"


@served
async def test_a_waiting_poll_follows_the_group(client: Client) -> None:
    """A member that waits gives up what it shall, and gets what becomes free, without asking again."""
    await topic(client, 2)
    first = await join(client)
    one = await started(client, first.poll("30s"))
    second = await join(client)
    two = await started(client, second.poll("30s"))
    await client.b.advance("1s")
    assert not one.done()
    assert [each["assigned_partitions"] for each in (await client.get(GROUP))["members"]] in ([[0], [1]], [[1], [0]])
    await numbered(client, 1, 2)
    await client.b.advance("1s")
    found = [each["value"] for reply in await asyncio.gather(one, two) for each in reply["messages"]]
    assert sorted(found) == ["0.0", "1.0"]


@served
async def test_a_client_that_left_does_not_take_messages_along(client: Client) -> None:
    await topic(client)
    member = await join(client)
    waiting = await started(client, member.poll("30s"))
    waiting.cancel()
    await client.b.advance("1s")
    await publish(client, "x")
    assert await member.values() == ["x"]


@served
async def test_what_a_member_holds_is_delivered_again_when_it_leaves(client: Client) -> None:
    await topic(client)
    await publish(client, "a", "b")
    first = await join(client)
    second = await join(client)
    (done, _) = (await first.poll())["messages"]
    await ack(client, done)
    await first.leave()
    await second.beat()
    (again,) = (await second.poll())["messages"]
    assert (again["value"], again["delivery_count"]) == ("b", 2)
    await client.post(f"{GROUP}/heartbeat", **first.who, status=404)


@served
async def test_what_a_silent_member_holds_is_delivered_again_when_its_session_ends(client: Client) -> None:
    await topic(client, lease_ms="600000")
    await publish(client, "a")
    silent = await join(client, session_timeout="5s")
    other = await join(client, session_timeout="10m")
    assert await silent.values() == ["a"]
    await client.b.advance("4s")
    assert await other.values() == []
    await client.b.advance("2s")
    assert await other.values() == ["a"]
    assert (await client.get(f"{GROUP}/poll", **silent.who, status=404))["code"] == "UNKNOWN_MEMBER_ID"
    await client.b.advance("9m")
    assert [each["member_id"] for each in (await client.get(GROUP))["members"]] == [other.id]


@served
async def test_a_lease_that_ends_is_delivered_again_to_the_same_member(client: Client) -> None:
    await topic(client)
    await publish(client, "a")
    member = await join(client, session_timeout="5m")
    assert await member.values(lease="10s") == ["a"]
    await client.b.advance("9s")
    assert await member.values() == []
    await client.b.advance("1s")
    (again,) = (await member.poll())["messages"]
    assert again["delivery_count"] == 2


@served
async def test_an_old_generation_is_refused(client: Client) -> None:
    await topic(client, 4)
    first = await join(client)
    old = first.generation
    others = []
    for _ in range(2):
        others.append(await join(client))
        await settle(first, *others)
    refused = await client.post(f"{GROUP}/heartbeat", member_id=first.id, generation=old, status=409)
    assert refused["code"] == "STALE_MEMBER_EPOCH"
    await client.get(f"{GROUP}/poll", member_id=first.id, generation=old, timeout="0s", status=409)
    await client.post(f"{GROUP}/heartbeat", member_id=first.id, generation=first.generation + 7, status=409)
    behind = await client.post(f"{GROUP}/heartbeat", member_id=first.id, generation=first.generation - 1)
    assert (behind["generation"], behind["rebalance_required"]) == (first.generation, True)
    back = await client.post(f"{GROUP}/join", client_id="app", topics=["orders"], member_id=first.id)
    assert back["member_id"] == first.id
    assert len(back["members"]) == 3


@served
async def test_what_is_wrong_is_said(client: Client) -> None:
    await topic(client)
    member = await join(client)
    post, get = client.post, client.get
    await post(f"{GROUP}/join", client_id="app", topics=["none"], status=404)
    await post(f"{GROUP}/join", client_id="app", topics=[], status=400)
    await post(f"{GROUP}/join", client_id="", topics=["orders"], status=400)
    await post(f"{GROUP}/join", topics=["orders"], status=400)
    for timeout in ("10ms", "1h", "soon", -1):
        await post(f"{GROUP}/join", client_id="app", topics=["orders"], session_timeout=timeout, status=400)
    assert (await post(f"{GROUP}/heartbeat", member_id="nobody", status=404))["code"] == "UNKNOWN_MEMBER_ID"
    assert (await post("/groups/none/heartbeat", member_id="nobody", status=404))["code"] == "GROUP_ID_NOT_FOUND"
    await post(f"{GROUP}/heartbeat", status=400)
    await post(f"{GROUP}/leave", member_id="nobody", status=404)
    await get(f"{GROUP}/poll", status=400)
    for wrong in (
        {"limit": 0},
        {"limit": 1001},
        {"max_messages": "x"},
        {"timeout": "x"},
        {"lease": "0s"},
        {"lease": "13h"},
    ):
        await get(f"{GROUP}/poll", member_id=member.id, status=400, **wrong)
    await post("/groups/a%00b/join", client_id="app", topics=["orders"], status=400)
    await post(f"/groups/{'x' * 256}/join", client_id="app", topics=["orders"], status=400)


@served
async def test_a_head_request_leases_nothing(client: Client) -> None:
    await topic(client)
    await publish(client, "a")
    member = await join(client)
    reply = await client.http.head(f"{GROUP}/poll", params={"member_id": member.id, "timeout": "0s"})
    assert reply.status_code == 405
    assert await member.values() == ["a"]


@served
async def test_a_restart_loses_no_member_and_no_partition(client: Client) -> None:
    await topic(client, 4)
    await numbered(client, 2, 4)
    first, second = await join(client, session_timeout="1m"), await join(client)
    await settle(first, second)
    (done, *_) = (await first.poll())["messages"]
    await ack(client, done)
    async with restarted(client) as again:
        first.client = second.client = again
        owned, generation = first.assigned, first.generation
        await first.beat()
        assert (first.assigned, first.generation) == (owned, generation)
        values = await first.values()
        assert len(values) == 3, "what was leased is free again, what was acknowledged is not"
        assert done["value"] not in values
        await again.b.advance("31s")
        await again.post(f"{GROUP}/heartbeat", **second.who, status=404)
        await first.beat()
        assert len(first.assigned) == 4, "sessions have the length that was asked for, after a restart too"


@served
async def test_receiving_needs_no_membership(client: Client) -> None:
    await topic(client, 2)
    everything = await numbered(client, 3, 2)
    receive = "/topics/orders/receive"
    got = (await client.post(receive, group="w", max_messages=4, consumer="a"))["messages"]
    got += (await client.post(receive, group="w", consumer="b"))["messages"]
    assert {each["value"] for each in got} == everything
    assert len(got) == len(everything)
    for message in got[1:]:
        await ack(client, message)
    await client.b.advance("30s")
    (again,) = (await client.post(receive, group="w"))["messages"]
    assert (again["value"], again["delivery_count"]) == (got[0]["value"], 2)
    other = (await client.post(receive, group="other"))["messages"]
    assert len(other) == 6, "what one group holds is free for another"
    waiting = await started(client, client.post(receive, group="w", wait="1m", partition=1))
    await publish(client, "late", partition=1)
    assert [each["value"] for each in (await waiting)["messages"]] == ["late"]


@served
async def test_receiving_says_what_is_wrong(client: Client) -> None:
    await topic(client)
    receive = "/topics/orders/receive"
    await client.post("/topics/none/receive", group="w", status=404)
    await client.post(receive, group="w", partition=7, status=404)
    for wrong in (
        {},
        {"group": ""},
        {"group": "w", "max_messages": 0},
        {"group": "w", "wait": "x"},
        {"group": "w", "start": "x"},
    ):
        await client.post(receive, status=400, **wrong)


@served
async def test_a_group_of_another_protocol_cannot_be_joined(client: Client) -> None:
    await topic(client)
    protocols = (commands.GroupProtocol("range", b""),)
    classic = commands.JoinGroup("g", "", "m", 10_000, 10_000, "consumer", protocols, knows_member_id_required=False)
    joined: Any = await client.b.ask(lambda done: client.b.broker.groups.submit(classic, done))
    assert joined.code is Code.NONE
    refused = await client.post(f"{GROUP}/join", client_id="app", topics=["orders"], status=409)
    assert refused["code"] == "INCONSISTENT_GROUP_PROTOCOL"
    await client.get(f"{GROUP}/poll", member_id="m", timeout="0s", status=404)


@served
async def test_a_topic_that_is_deleted_is_no_longer_polled(client: Client) -> None:
    await topic(client)
    await topic(client, name="bills")
    member = await join(client, "orders", "bills")
    waiting = await started(client, member.poll("30s"))
    await client.delete("/topics/bills")
    await publish(client, "a")
    await client.b.advance("1s")
    assert [each["value"] for each in (await waiting)["messages"]] == ["a"]
    await member.beat()
    assert member.assigned == ["orders-0"]


@served
async def test_what_was_leased_for_a_client_that_has_just_left_is_free_again(client: Client) -> None:
    """It left between the lease and the answer."""
    await topic(client)
    member = await join(client)
    call = Call(Gate(client.b.broker).admit(Credentials("http")).view(READS), 0, "")
    replies: list[Callable[[Any], None]] = []
    waiting = asyncio.ensure_future(lease(call, "g", replies.append, lambda reply: reply.found, None))
    await client.b.advance(0)
    await publish(client, "a")
    who = Who("g", member.id)
    polled: Any = await client.b.ask(
        lambda done: poll(client.b.broker.members, client.b.broker.receiver, PollRequest(who, 10), done)
    )
    assert len(polled.found) == 1
    replies[0](polled)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (message,) = (await member.poll())["messages"]
    assert message["delivery_count"] == 1, "it reached nobody"

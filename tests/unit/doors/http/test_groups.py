"""Groups over HTTP: listed, described, configured, deleted; and members that are asked before they lose anything."""

from typing import Any

from tests.unit.doors.http.door_client import Client, served
from tests.unit.doors.http.group_members import GROUP, Member, ack, join, numbered, publish, restarted, settle, topic


@served
async def test_groups_are_listed_by_name_and_in_detail(client: Client) -> None:
    assert await client.get("/groups") == {"groups": [], "details": [], "next": None}
    await topic(client, 2)
    await join(client)
    await client.post("/topics/orders/receive", group="queue")
    await client.post("/groups/stream/offsets", offsets={"orders": {"0": 0}})
    found = await client.get("/groups")
    assert found["groups"] == ["g", "queue", "stream"]
    empty = {"state": "Empty", "members": 0, "generation": 0}
    assert found["details"] == [
        {"id": "g", "type": "consumer", "state": "Stable", "members": 1, "generation": 1, "topics": ["orders"]},
        {"id": "queue", "type": "share", "topics": ["orders"], **empty},
        {"id": "stream", "type": "classic", "topics": [], **empty},
    ]
    assert await client.get("/v1/groups") == found


@served
async def test_a_group_is_described_in_both_shapes(client: Client) -> None:
    await topic(client, 2)
    member = await join(client, name="app")
    await client.b.advance("10s")
    await member.beat()
    found = await client.get(GROUP)
    partitions = [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]
    assert found == {
        "id": "g",
        "group_id": "g",
        "type": "consumer",
        "protocol": "consumer",
        "state": "Stable",
        "generation": 1,
        "assignor": "uniform",
        "leader_id": member.id,
        "topics": ["orders"],
        "created_at": "2026-01-01T00:00:00Z",
        "members": [
            {
                "id": member.id,
                "member_id": member.id,
                "client_id": "app",
                "host": "",
                "generation": 1,
                "assigned_partitions": [0, 1],
                "partitions": partitions,
                "last_heartbeat": "2026-01-01T00:00:10Z",
                "joined_at": "2026-01-01T00:00:00Z",
            }
        ],
    }
    await client.get("/groups/none", status=404)
    async with restarted(client) as again:
        after = await again.get(GROUP)
        assert (after["created_at"], after["members"][0]["joined_at"]) == (found["created_at"],) * 2
        second = await join(again)
        assert (await again.get(GROUP))["state"] == "Rebalancing"
        await settle(second)
        assert (await again.get(GROUP))["leader_id"] == member.id


@served
async def test_a_group_is_deleted_with_all_that_it_knows(client: Client) -> None:
    await topic(client)
    await publish(client, "a")
    member = await join(client)
    (message,) = (await member.poll())["messages"]
    await ack(client, message)
    assert (await client.delete(GROUP, status=409))["code"] == "NON_EMPTY_GROUP"
    assert await client.ask("DELETE", GROUP, params={"force": "true"}) == {"deleted": True, "group": "g"}
    await client.get(GROUP, status=404)
    await client.delete(GROUP, status=404)
    assert (await client.get(f"{GROUP}/offsets"))["offsets"] == {}
    again = await join(client)
    assert await again.values() == ["a"], "a group of that name begins anew"
    await client.post("/topics/orders/receive", group="queue")
    assert await client.delete("/groups/queue") == {"deleted": True, "group": "queue"}


@served
async def test_options_of_a_group_are_set_and_taken_back(client: Client) -> None:
    await topic(client)
    await publish(client, "a")
    options = f"{GROUP}/options"
    assert await client.get(options) == {"group": "g", "options": {}}
    changed = await client.patch(options, options={"lease.ms": 1000, "session.ms": "5000"})
    assert changed == {"group": "g", "options": {"lease.ms": "1000", "session.ms": "5000"}}
    joined = await client.post(f"{GROUP}/join", client_id="app", topics=["orders"])
    assert joined["session_timeout_ms"] == 5000
    member = Member(client, joined)
    (message,) = (await member.poll())["messages"]
    assert message["lease_until"] == "2026-01-01T00:00:01Z"
    assert (await client.patch(options, options={"lease.ms": None}))["options"] == {"session.ms": "5000"}
    for wrong in ({"lease.ms": "soon"}, {"none": "1"}, {"start": "middle"}):
        assert (await client.patch(options, options=wrong, status=400))["code"] == "INVALID_CONFIG"


# -- cooperative members


def places(*numbers: int) -> list[dict[str, Any]]:
    return [{"topic": "orders", "partition": number} for number in numbers]


async def ask_to_revoke(client: Client, member: Member) -> list[dict[str, Any]]:
    beat = await client.post(f"{GROUP}/heartbeat/cooperative", **member.who)
    assert (beat["rebalance_required"], beat["protocol"], beat["error"]) == (True, "cooperative", None)
    assert beat["revocation_deadline"] == "2026-01-01T00:01:00Z"
    revoking: list[dict[str, Any]] = beat["partitions_to_revoke"]
    return revoking


@served
async def test_a_cooperative_member_gives_up_when_it_is_ready(client: Client) -> None:
    await topic(client, 4)
    await numbered(client, 1, 4)
    first = await join(client, way="join/cooperative", session_timeout="10m")
    held = {each["partition"]: each for each in (await first.poll())["messages"]}
    assert sorted(held) == [0, 1, 2, 3]
    second = await join(client, way="join/cooperative", session_timeout="10m")
    revoking = await ask_to_revoke(client, first)
    assert len(revoking) == 2
    assert await ask_to_revoke(client, first) == revoking, "asked until it is done"
    assert (await first.poll())["partitions_to_revoke"] == revoking, "a poll gives nothing up by itself"
    assert (await client.post(f"{GROUP}/heartbeat/cooperative", **second.who))["partitions_assigned"] == []

    done, left = (held[each["partition"]] for each in revoking)
    await ack(client, done)
    partial = await client.post(f"{GROUP}/revoke", **first.who, revoked_partitions=revoking[:1])
    assert (partial["status"], partial["pending_count"], partial["rebalance_state"]) == (
        "acknowledged",
        2,
        "Rebalancing",
    )
    revoked = await client.post(f"{GROUP}/revoke", **first.who, revoked_partitions=revoking)
    assert (revoked["pending_count"], len(revoked["partitions_assigned"])) == (0, 2)
    beat = await client.post(f"{GROUP}/heartbeat/cooperative", **second.who)
    assert (beat["partitions_assigned"], beat["state"]) == (revoking, "Stable")
    assert await second.values() == [left["value"]], "what was not done is delivered to the next at once"
    assignment = await client.get(f"{GROUP}/assignment", member_id=second.id)
    assert assignment == {"member_id": second.id, "generation": 2, "partitions": revoking}
    assert await client.post(f"{GROUP}/leave/cooperative", member_id=first.id) == {"status": "left", "left": True}


@served
async def test_who_does_not_give_up_in_time_is_turned_out(client: Client) -> None:
    await topic(client, 2)
    first = await join(client, way="join/cooperative", session_timeout="10m")
    second = await join(client, session_timeout="10m")
    await ask_to_revoke(client, first)
    await client.b.advance("61s")
    await client.post(f"{GROUP}/heartbeat/cooperative", **first.who, status=404)
    await settle(second)
    assert second.assigned == ["orders-0", "orders-1"]
    stats = await client.get(f"{GROUP}/rebalance/stats")
    assert (stats["total_revocation_timeouts"], stats["failed_rebalances"]) == (1, 1)
    assert stats["rebalances_by_reason"] == {"joined": 2, "slow to revoke": 1}


@served
async def test_rebalances_are_counted_and_timed(client: Client) -> None:
    await topic(client, 4)
    first = await join(client)
    await client.b.advance("2s")
    second = await join(client)
    await client.b.advance("300ms")
    await settle(first, second)
    expected = {
        "total_rebalances": 2,
        "successful_rebalances": 2,
        "failed_rebalances": 0,
        "total_partitions_revoked": 2,
        "total_partitions_assigned": 6,
        "total_revocation_timeouts": 0,
        "last_rebalance_duration_ms": 300,
        "average_rebalance_duration_ms": 150.0,
        "last_rebalance_at": "2026-01-01T00:00:02Z",
        "rebalances_by_reason": {"joined": 2},
    }
    assert await client.get(f"{GROUP}/rebalance/stats") == expected
    assert await client.get("/rebalance/stats") == expected
    found = await client.get(f"{GROUP}/cooperative")
    assert (found["assignment_strategy"], found["rebalance_state"], found["protocol"]) == (
        "uniform",
        "Stable",
        "cooperative",
    )
    assert {member: len(each) for member, each in found["member_assignments"].items()} == {first.id: 2, second.id: 2}
    assert found["rebalance_metrics"] == expected
    for path in ("rebalance/stats", "cooperative", "lag"):
        await client.get(f"/groups/none/{path}", status=404)
    await client.get(f"{GROUP}/assignment", member_id="nobody", status=404)
    await client.get(f"{GROUP}/assignment", status=400)


@served
async def test_revoking_says_what_is_wrong(client: Client) -> None:
    await topic(client, 2)
    member = await join(client, way="join/cooperative")
    nothing = await client.post(f"{GROUP}/revoke", **member.who, revoked_partitions=places(0))
    assert (nothing["pending_count"], nothing["partitions_assigned"]) == (0, places(0, 1))
    await client.post(f"{GROUP}/revoke", member_id="nobody", status=404)
    await client.post(f"{GROUP}/revoke", member_id=member.id, generation=9, status=409)
    await client.post(f"{GROUP}/join/cooperative", client_id="app", topics=["orders"], protocol="x", status=400)

"""A recurring schedule runs while whoever has stored it may write to its topic."""

import base64
from typing import Any

from goqueue.broker.tenants.owners import may_still_write
from goqueue.model.accounts import ANONYMOUS
from goqueue.model.recurring import Recurring
from goqueue.testing import broker
from tests.unit.doors.http.session_door import Door, in_door
from tests.unit.doors.http.test_credentials import done_of
from tests.unit.testing.loops import in_loop

MINUTE_MS = 60_000
EVERY_MINUTE = {"topic": "orders", "cron": "* * * * *", "value": "tick"}


def basic(user: str, password: str = "secret") -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


async def store(door: Door, user: str, **headers: str) -> Any:
    reply = await door.ask("PUT", "/schedules/tick", {**basic(user), **headers}, EVERY_MINUTE)
    return reply.status_code


async def count(door: Door, minutes: int, topic: str = "orders") -> int:
    """Messages, when so many minutes have passed."""
    await door.advance(minutes * MINUTE_MS)
    await door.settle()
    replica = door.b.broker.topics.replica(topic, 0)
    return replica.end_offset - replica.start_offset


async def furnish(door: Door) -> None:
    await door.as_admin("POST", "/topics", name="orders", num_partitions=1)
    await door.as_admin("PATCH", "/admin/users/alice", roles=["producer"])


@in_door
async def test_it_waits_while_its_owner_may_not_write_and_goes_on_when_they_may(door: Door) -> None:
    await furnish(door)
    assert await store(door, "alice") in (200, 201)
    assert await count(door, 2) == 2
    await door.as_admin("PATCH", "/admin/users/alice", roles=["viewer"])
    assert await count(door, 5) == 2
    await door.as_admin("PATCH", "/admin/users/alice", roles=["producer:orders*"])
    assert await count(door, 1) in (3, 4), "what was missed runs once"
    before = await count(door, 0)
    acl = {"principal": "User:alice", "resource_type": "topic", "resource_name": "orders", "operation": "write"}
    await door.as_admin("POST", "/admin/acls", **acl, effect="deny")
    assert await count(door, 3) == before
    assert await store(door, "alice") == 403


@in_door
async def test_it_waits_when_its_owner_is_deleted_and_another_may_take_it_over(door: Door) -> None:
    await furnish(door)
    assert await store(door, "alice") in (200, 201)
    assert await count(door, 1) == 1
    await door.as_admin("DELETE", "/admin/users/alice")
    assert await count(door, 5) == 1
    await door.as_admin("POST", "/admin/users", name="bob", password="secret", roles=["producer"])
    assert await store(door, "bob") in (200, 201)
    assert await count(door, 2) == 3


@in_door
async def test_it_waits_while_its_tenant_is_suspended(door: Door) -> None:
    await door.as_admin("POST", "/admin/tenants", id="acme", name="acme")
    acting = {"x-api-key": door.key, "x-goqueue-tenant": "acme"}
    anna = {"name": "anna", "password": "secret", "roles": ["producer"]}
    assert (await door.ask("POST", "/admin/users", acting, anna)).status_code == 201
    made = await door.ask("POST", "/topics", acting, {"name": "orders", "num_partitions": 1})
    assert made.status_code == 201
    assert await store(door, "acme~anna") in (200, 201)
    assert await count(door, 2, "acme~orders") == 2
    await door.as_admin("POST", "/admin/tenants/acme/suspend", reason="unpaid")
    assert await count(door, 5, "acme~orders") == 2
    await door.as_admin("POST", "/admin/tenants/acme/activate")
    assert await count(door, 1, "acme~orders") in (3, 4)


@in_door
async def test_an_operator_who_acts_for_a_tenant_owns_it_as_long_as_they_may_act(door: Door) -> None:
    await door.as_admin("POST", "/admin/tenants", id="acme", name="acme")
    await door.as_admin("POST", "/admin/users", name="root", password="secret", roles=["admin"])
    acting = {**basic("root"), "x-goqueue-tenant": "acme"}
    made = await door.ask("POST", "/topics", acting, {"name": "orders", "num_partitions": 1})
    assert made.status_code == 201
    assert await store(door, "root", **{"x-goqueue-tenant": "acme"}) in (200, 201)
    assert await count(door, 2, "acme~orders") == 2
    await door.as_admin("PATCH", "/admin/users/root", roles=["producer"])
    assert await count(door, 3, "acme~orders") == 2


@in_door
async def test_whoever_is_not_noted_or_nobody_in_particular_may(door: Door) -> None:
    """On an open node, or of a schedule of an earlier version."""
    image = door.b.broker.accounts.image
    assert may_still_write(image, "", "", "orders")
    assert may_still_write(image, ANONYMOUS, "", "orders")
    assert not may_still_write(image, "User:nobody", "", "orders")
    assert not may_still_write(image, "Key:k0000000000000000", "", "orders")
    assert not may_still_write(image, f"tenant/gone;{ANONYMOUS}", "", "gone~orders")
    assert may_still_write(image, "producer@User:zoe", "", "orders"), "roles that a token gave"


@in_loop
async def test_it_still_waits_after_a_restart() -> None:
    async with broker() as b:
        for topic, owner in (("shut", "User:gone"), ("open", "producer@User:zoe")):
            await b.create_topic(topic)
            wanted = Recurring(topic, topic, "* * * * *", b"tick", owner=owner)
            await done_of(lambda done, wanted=wanted: b.broker.recurring.store(wanted, done))  # type: ignore[misc]
        await b.advance("2m")
        assert [len(await b.read(topic)) for topic in ("shut", "open")] == [0, 2]
        await b.restart()
        await b.advance("3m")
        assert [len(await b.read(topic)) for topic in ("shut", "open")] == [0, 5]

"""Sessions of people of tenants: each works for its own tenant, for as long as there is that one."""

from typing import Any

import pytest

from goqueue.model.credentials import Principal, SessionOver
from goqueue.model.listener import IN_PROCESS
from tests.unit.doors.http.session_door import Door, in_door

ORIGIN = "https://mq.example.org"


async def furnish(door: Door, *tenants: str) -> None:
    for tenant in tenants:
        await door.as_admin("POST", "/admin/tenants", id=tenant, name=tenant)
        said = {"x-api-key": door.key, "x-goqueue-tenant": tenant}
        anna = {"name": "anna", "password": "secret", "roles": ["admin"]}
        assert (await door.ask("POST", "/admin/users", said, anna)).status_code == 201
        topic = {"name": f"of-{tenant}"}
        assert (await door.ask("POST", "/topics", said, topic)).status_code == 201


async def log_in(door: Door, user: str) -> dict[str, str]:
    """What its requests show beside the cookie."""
    reply = await door.log_in(user)
    assert reply.status_code == 200, reply.text
    return {"origin": ORIGIN, "x-goqueue-csrf": reply.json()["csrf_token"]}


async def topics(door: Door, **headers: str) -> Any:
    reply = await door.ask("GET", "/topics", {name.replace("_", "-"): each for name, each in headers.items()})
    return reply.json()["topics"] if reply.status_code == 200 else reply.status_code


@in_door
async def test_a_session_of_one_tenant_is_of_no_use_for_another(door: Door) -> None:
    await furnish(door, "acme", "bolt")
    acmes = await log_in(door, "acme~anna")
    me = (await door.get("/session")).json()
    assert (me["principal"], me["tenant"], me["roles"]) == ("User:anna", "acme", ["admin"])
    assert await topics(door) == ["of-acme"]
    assert await topics(door, x_goqueue_tenant="acme") == ["of-acme"]
    for other in ("bolt", "default", "nobody"):
        assert await topics(door, x_goqueue_tenant=other) == 403, other
        said = {**acmes, "x-goqueue-tenant": other}
        assert (await door.ask("POST", "/topics", said, {"name": "theirs"})).status_code == 403
    cookies = dict(door.cookies)
    bolts = await log_in(door, "bolt~anna")
    assert await topics(door) == ["of-bolt"]
    assert (await door.ask("POST", "/topics", acmes, {"name": "mixed"})).status_code == 403, "it is another's token"
    assert (await door.ask("DELETE", "/session?all=true", bolts)).status_code == 200
    door.cookies = cookies
    assert await topics(door) == ["of-acme"], "whose user has the same name"


@in_door
async def test_an_operator_acts_for_a_tenant_with_a_session_and_nobody_else_does(door: Door) -> None:
    await furnish(door, "acme")
    await door.as_admin("POST", "/admin/users", name="root", password="secret", roles=["admin"])
    said = await log_in(door, "root")
    assert await topics(door, x_goqueue_tenant="acme") == ["of-acme"]
    made = await door.ask("POST", "/topics", {**said, "x-goqueue-tenant": "acme"}, {"name": "made"})
    assert made.status_code == 201
    assert await topics(door) == []
    await log_in(door, "alice")
    assert await topics(door, x_goqueue_tenant="acme") == 403


@in_door
async def test_a_session_knows_what_becomes_of_its_tenant(door: Door) -> None:
    await furnish(door, "acme")
    await log_in(door, "acme~anna")
    await door.as_admin("POST", "/admin/tenants/acme/suspend", reason="unpaid")
    reply = await door.get("/topics/of-acme")
    assert (reply.status_code, "unpaid" in reply.text) == (403, True)
    await door.as_admin("POST", "/admin/tenants/acme/activate")
    assert await topics(door) == ["of-acme"]
    await door.as_admin("POST", "/admin/tenants/acme/disable")
    assert await topics(door) == 401


@in_door
async def test_a_session_ends_with_its_tenant_also_if_another_gets_its_id(door: Door) -> None:
    """Of somebody of whom nothing is stored, but what a token has said."""
    gate = door.gate
    assert gate.logins is not None
    zoe = Principal("User:acme~zoe", roles=("admin",))
    await furnish(door, "acme")
    access = gate.start_session(zoe, IN_PROCESS)
    assert access.session is not None
    door.cookies = {"__Host-gq": gate.logins.sessions.text(access.session).reveal()}
    assert await topics(door) == ["of-acme"]
    await door.advance(1000)
    await door.as_admin("DELETE", "/admin/tenants/acme?force=true")
    while "acme" in door.b.broker.tenants.all():
        await door.advance(1000)
    assert access.is_over
    await furnish(door, "acme")
    with pytest.raises(SessionOver):
        gate._in_session(access.session, "", "")
    assert await topics(door) == 401
    assert gate.start_session(zoe, IN_PROCESS).tenancy.tenant == "acme"

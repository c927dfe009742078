"""What all tenants share: one that takes all it can get leaves the others theirs."""

from typing import Any

import pytest

from goqueue.broker.tenants.seats import Seats
from goqueue.broker.transactions import steps
from goqueue.doors.kafka.fetch_sessions import STALE_MS, FetchSessions
from goqueue.doors.kafka.share_sessions import ShareSessions
from goqueue.doors.kafka.waiting import who_goes
from goqueue.machines import accounts
from goqueue.machines.controller import Controller
from goqueue.machines.controller_commands import CreateTopic, Result
from goqueue.machines.schemas import machine as schemas
from goqueue.machines.tenants import TenantStored
from goqueue.model.codes import Code
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.quotas import QuotaExceeded
from goqueue.model.tenancy import Tenant
from goqueue.wire.kafka.apis import APIS
from tests.unit.doors.kafka.every_api import sample
from tests.unit.doors.kafka.fetch_readers import Reader
from tests.unit.doors.kafka.share_members import Guest, topic_id
from tests.unit.doors.kafka.test_share_tenants import Houses, OfTenant
from tests.unit.doors.tenant_node import TenantNode, tenant_node
from tests.unit.testing.loops import in_loop


async def statuses(node: TenantNode, *asked: tuple[str, str, Any]) -> list[int]:
    return [(await node.http(*each)).status for each in asked]


def schedule(name: str) -> tuple[str, str, Any]:
    return "PUT", f"/schedules/{name}", {"topic": "orders", "cron": "0 7 * * *", "value": "x"}


@in_loop
async def test_recurring_schedules_of_a_tenant_are_limited() -> None:
    async with tenant_node(max_recurring_schedules=2) as node:
        assert await statuses(node, schedule("a"), schedule("b"), schedule("c")) == [200, 200, 403]
        told = await node.http(*schedule("c"))
        assert b"the quota max_recurring_schedules of the tenant is 2" in told.body
        assert (await node.http("GET", "/schedules/c")).status == 404, "nothing of it is left"
        assert await statuses(node, schedule("b")) == [200], "one that it has may be changed"
        await node.of_default("POST", "/topics", {"name": "orders"})
        assert [(await node.of_default(*schedule(name))).status for name in "abc"] == [200] * 3
        assert (await node.http("DELETE", "/schedules/a")).status < 300
        assert await statuses(node, schedule("c")) == [200]
        await node.limit(max_recurring_schedules=None)
        assert await statuses(node, schedule("d")) == [200], "its share is larger than that"


def version(subject: str, field: str) -> tuple[str, str, Any]:
    text = f'{{"type":"record","name":"r","fields":[{{"name":"{field}","type":"int","default":0}}]}}'
    return "POST", f"/subjects/{subject}/versions", {"schema": text}


@in_loop
async def test_a_tenant_registers_as_many_schemas_as_its_share_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "SCHEMAS_MAX", 8)
    async with tenant_node() as node:
        assert await statuses(node, version("s", "a"), version("s", "b"), version("s", "c")) == [200, 200, 422]
        assert await statuses(node, version("t", "a"), version("s", "a")) == [422, 200], "what it has it is told again"
        assert [(await node.of_default(*version("s", name))).status for name in "abcde"] == [200] * 5
        await node.limit(max_schemas=3)
        assert await statuses(node, version("s", "c"), version("s", "d")) == [200, 422]
        for suffix in ("", "?permanent=true"):
            assert (await node.http("DELETE", f"/subjects/s{suffix}")).status == 200
        assert await statuses(node, version("s", "d")) == [200], "there is room again"


def user(name: str) -> tuple[str, str, Any]:
    return "POST", "/admin/users", {"name": name, "password": "a pass word", "roles": []}


def key(name: str) -> tuple[str, str, Any]:
    return "POST", "/admin/keys", {"name": name, "roles": ["viewer"]}


def rule(name: str) -> tuple[str, str, Any]:
    fields = {"principal": "User:a", "operation": "read", "resource_type": "topic", "resource_name": name}
    return "POST", "/admin/acls", fields


@in_loop
@pytest.mark.parametrize("make", [user, key, rule])
async def test_a_tenant_makes_as_many_accounts_as_its_share_has(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "ACCOUNTS_MAX", 8)
    async with tenant_node() as node:
        assert await statuses(node, make("a"), make("b"), make("c")) == [201, 201, 403]
        assert [(await node.of_default(*make(name))).status for name in "abcd"] == [201] * 4
        await node.limit(max_accounts=3)
        assert await statuses(node, make("c"), make("d")) == [201, 403]


async def begun(node: TenantNode, name: str, *, is_default: bool = False) -> int:
    ask = node.of_default if is_default else node.http
    producer = (await ask("POST", "/producers/init", {"transactional_id": name})).json
    body = {"producer_id": producer["producer_id"], "epoch": producer["epoch"]}
    return (await ask("POST", "/transactions/begin", body)).status


@in_loop
async def test_a_tenant_has_as_many_transactions_open_as_its_share_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BEGUN_MAX", 8)
    async with tenant_node() as node:
        assert [await begun(node, name) for name in "abc"] == [200, 200, 409]
        assert [await begun(node, name, is_default=True) for name in "abcd"] == [200] * 4
        await node.limit(max_open_transactions=3)
        assert [await begun(node, name) for name in "cd"] == [200, 409]
        await node.b.advance("1h")
        assert await begun(node, "d") == 200, "those that nobody used make room"


@in_loop
async def test_transactions_that_others_have_left_lying_make_room_for_a_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BEGUN_MAX", 8)
    async with tenant_node() as node:
        assert [await begun(node, name, is_default=True) for name in "abcdefgh"] == [200] * 8
        assert await begun(node, "a") == 409
        await node.b.advance("1h")
        assert [await begun(node, name) for name in "abc"] == [200, 200, 409]


def created(controller: Controller, name: str, partitions: int) -> Result:
    outcome = controller.decide(CreateTopic(name, name.encode().ljust(16), partitions), 0, 0)
    for fact in outcome.facts:
        controller.apply(fact)
    (_, result), *_ = outcome.replies
    assert isinstance(result, Result)
    return result


def test_a_tenant_has_as_many_partitions_as_its_share_has() -> None:
    controller = Controller(PartitionLimits(in_all=40))
    controller.apply(TenantStored(Tenant("acme", "acme")))
    assert created(controller, "theirs", 5).code is Code.NONE
    refused = created(controller, "acme~many", 11)
    assert (refused.code, "max_total_partitions of the tenant is 10" in refused.message) == (
        Code.POLICY_VIOLATION,
        True,
    )
    assert created(controller, "acme~many", 10).code is Code.NONE
    assert created(controller, "acme~more", 1).code is Code.POLICY_VIOLATION
    assert created(controller, "others", 25).code is Code.NONE


def test_connections_of_a_tenant_without_a_limit_leave_places_for_others() -> None:
    seats = Seats()
    seats.renew({name: Tenant(name, name) for name in ("acme", "beta")})
    for _ in range(2500):
        seats.enter("acme")
    with pytest.raises(QuotaExceeded, match="max_connections"):
        seats.enter("acme")
    assert seats.enter("beta") is not None


def test_share_sessions_of_a_tenant_leave_places_for_others() -> None:
    house = Houses()
    house.door.sessions.share = ShareSessions(8, house.door._gate.tenants)
    ours = [OfTenant(house, "acme", f"m{number}") for number in range(3)]
    assert [each.fetch().error_code for each in ours] == [0, 0, Code.SHARE_SESSION_LIMIT_REACHED]
    theirs = [OfTenant(house, "beta", f"m{number}") for number in range(2)]
    assert [each.fetch().error_code for each in theirs] == [0, 0]
    ours[0].lose_connection()
    ours[2].epoch = 0
    assert ours[2].fetch().error_code == 0
    assert house.door.sessions.share._counts == {"acme": 2, "beta": 2}


def test_fetch_sessions_of_a_tenant_leave_places_for_others() -> None:
    house = Houses()
    kept = house.door.sessions.fetch = FetchSessions(house.door._clock, house.door._gate.tenants, 8, 64)
    readers = {"acme": [Reader(house) for _ in range(3)], "beta": [Reader(house) for _ in range(2)]}
    for tenant, own in readers.items():
        for reader in own:
            house.door._set_access(reader._connection, house.door._gate.trusted_in(tenant))
            assert reader.fetch({0: 0}).error_code == 0
    assert [reader.session > 0 for reader in readers["acme"]] == [True, True, False]
    assert [reader.session > 0 for reader in readers["beta"]] == [True, True]
    house.advance(STALE_MS + 1)
    readers["acme"][2].fetch({0: 0})
    assert (readers["acme"][2].session > 0, kept.evictions) == (True, 1)
    assert readers["acme"][0].fetch().error_code == Code.FETCH_SESSION_ID_NOT_FOUND, "its own tenant makes room"
    assert [reader.fetch().error_code for reader in readers["beta"]] == [0, 0]


def test_what_one_tenant_keeps_waiting_costs_no_other_its_connection() -> None:
    house = Houses()
    api = APIS[1]
    last = api.versions.last
    request = sample(api.request, last)
    request.topics[0].partitions *= 1000
    for each in request.topics[0].partitions:
        each.partition, each.fetch_offset, each.current_leader_epoch = 0, 2, -1
    greedy, modest = [Guest(house) for _ in range(3)], Guest(house)
    for guest, tenant in ((greedy[0], "acme"), (greedy[1], "acme"), (greedy[2], "acme"), (modest, "beta")):
        house.door._set_access(guest._connection, house.door._gate.trusted_in(tenant))
    size = len(modest.encode(request, last)) - 4
    house.door._limits.waiting_bytes_max = 3 * size
    for guest, tenant in ((greedy[0], "acme"), (greedy[1], "acme"), (greedy[2], "acme"), (modest, "beta")):
        request.topics[0].topic_id = topic_id(f"{tenant}~orders")
        guest.send(request, last)
    assert [guest._transport.closed for guest in (*greedy, modest)] == [True, False, False, False]
    greedy[0]._connection.connection_lost(None)
    request.topics[0].topic_id = topic_id("acme~orders")
    greedy[1].send(request, last)
    assert greedy[1]._transport.closed, "who is of the same tenant goes itself"
    assert who_goes([greedy[1]._connection], greedy[1]._connection) is greedy[1]._connection, "it is closed already"

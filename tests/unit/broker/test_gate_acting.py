"""Who acts for a tenant, and for how long; and roles that are for some names only."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from goqueue.broker.access import Access
from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.model.access import Kind, Operation, Permission, Rule
from goqueue.model.codes import Code
from goqueue.model.credentials import NotAuthenticated, Principal
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import IN_PROCESS
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import Tenant
from goqueue.testing import MemoryBroker, broker
from tests.unit.doors.http.test_credentials import done_of
from tests.unit.testing.loops import in_loop

LOOKS = Permission({Kind.TOPIC: (Operation.DESCRIBE, Operation.READ, Operation.WRITE)})


class House:
    def __init__(self, b: MemoryBroker) -> None:
        self.node = b.broker
        self.gate = Gate(
            self.node, logins=Logins(self.node.accounts, self.node.clock, self.node.dice, b"x"), is_closed=True
        )

    async def ask(self, submit: Callable[[Any], object]) -> Any:
        reply = await done_of(submit)
        if isinstance(reply, GoQueueError):
            raise reply
        return reply

    async def user(self, name: str, *roles: str) -> None:
        await self.ask(lambda done: self.node.accounts.create_user(name, "x", roles, done))

    async def roles(self, name: str, *roles: str) -> None:
        await self.ask(lambda done: self.node.accounts.change_user(name, None, roles, done))

    def access(self, name: str, tenant: str = "") -> Access:
        return self.gate.access(Principal(f"User:{name}"), IN_PROCESS, tenant)

    def may(self, name: str, operation: Operation, topic: str, tenant: str = "") -> bool:
        return bool(self.access(name, tenant).view(LOOKS).allowed(Kind.TOPIC, topic, [operation]))


@asynccontextmanager
async def house() -> AsyncIterator[House]:
    async with broker() as b:
        made = House(b)
        for each in ("acme", "other"):
            await made.ask(lambda done, each=each: made.node.tenants.create(Tenant(each, each), done))  # type: ignore[misc]
        yield made


@in_loop
async def test_who_is_no_admin_any_more_acts_for_nobody_at_once() -> None:
    async with house() as h:
        await h.user("root", "admin")
        await h.user("boss", "admin")
        acting, own = h.access("root", "acme"), h.access("root")
        await h.roles("root", "viewer")
        assert (acting.is_over, own.is_over) == (True, False)
        with pytest.raises(NotAuthenticated):
            acting.view(LOOKS)
        assert not h.access("boss", "acme").is_over


@in_loop
async def test_a_rule_lets_somebody_act_for_one_tenant_with_the_rights_that_they_have() -> None:
    async with house() as h:
        await h.user("helper", "viewer")
        with pytest.raises(Refused) as refused:
            h.access("helper", "acme")
        assert refused.value.code is Code.CLUSTER_AUTHORIZATION_FAILED
        rule = Rule("r1", "User:helper", Kind.TENANT, "acme", Operation.DESCRIBE)
        await h.ask(lambda done: h.node.accounts.create_rules([rule], done))
        assert h.may("helper", Operation.DESCRIBE, "orders", "acme")
        assert not h.may("helper", Operation.READ, "orders", "acme")
        with pytest.raises(Refused):
            h.access("helper", "other")
        acting = h.access("helper", "acme")
        await h.ask(lambda done: h.node.accounts.delete_rules(["r1"], done))
        assert acting.is_over


@in_loop
async def test_a_role_with_a_prefix_is_for_names_that_begin_so() -> None:
    async with house() as h:
        await h.user("shop", "producer:orders-*", "consumer:mail-*")
        asked = [(Operation.WRITE, "orders-1"), (Operation.WRITE, "mail-1"), (Operation.READ, "mail-1")]
        assert [h.may("shop", *each) for each in asked] == [True, False, True]
        await h.roles("shop", "readonly:orders-*")
        assert h.node.accounts.image.users["shop"].roles == ("viewer:orders-*",)
        assert [h.may("shop", *each) for each in asked] == [False, False, False]
        assert h.may("shop", Operation.DESCRIBE, "orders-1")
        for role in (
            "admin:x*",
            "metrics:x*",
            "king:x*",
            "producer:",
            "producer:*",
            "producer:a*b",
            "producer:a",
            "viewer:a**",
        ):
            with pytest.raises(Refused) as refused:
                await h.user("wrong", role)
            assert refused.value.code is Code.INVALID_REQUEST

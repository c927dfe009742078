"""What the gate makes of tokens: roles beside those of an account, also on the node that a request is passed on to."""

import pytest

from goqueue.broker.access import Access
from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.model.access import Kind, Operation, Permission
from goqueue.model.credentials import Credentials, NotAuthenticated, Principal
from goqueue.model.listener import IN_PROCESS
from goqueue.model.refusal import Refused
from goqueue.model.secret import Secret
from goqueue.testing import broker
from tests.tokens import token, tokens
from tests.unit.testing.loops import in_loop

READS = Permission({Kind.TOPIC: Operation.READ})
WRITES = Permission({Kind.CLUSTER: Operation.IDEMPOTENT_WRITE})


def may_write(access: Access) -> bool:
    try:
        access.view(WRITES)
    except Refused:
        return False
    return True


@in_loop
async def test_roles_of_a_token_hold_on_the_node_that_is_told_of_it() -> None:
    async with broker(clock="real") as b:
        node = b.broker
        logins = Logins(node.accounts, node.clock, node.dice, b"x", tokens(node.clock, roles_claim="roles"))
        gate = Gate(node, logins=logins, is_closed=True)
        for roles, expected in ((["producer", "viewer"], "producer,viewer@User:a@b"), ([], "User:a@b")):
            text = token(node.clock.now_ms(), sub="a@b", roles=roles)
            access = await gate.admit_request(Credentials("http", key=Secret(text)))
            told = gate.admit(Credentials("http", principal=access.told))
            assert access.told == told.told == expected
            assert (may_write(access), may_write(told), told.principal) == (bool(roles), bool(roles), "User:a@b")


@in_loop
async def test_what_goes_on_with_a_token_or_a_key_ends_with_it() -> None:
    async with broker() as b:
        node = b.broker
        gate = Gate(node, logins=Logins(node.accounts, node.clock, node.dice, b"x"), is_closed=True)
        ends_ms = node.clock.now_ms() + 60_000
        ending = gate.access(Principal("User:alice", ends_ms, ("admin",)), IN_PROCESS)
        lasting = gate.access(Principal("User:alice", 0, ("admin",)), IN_PROCESS)
        view = ending.view(READS)
        assert view.allowed(Kind.TOPIC, "orders", [Operation.READ])
        await b.advance(60_000)
        assert (ending.is_over, lasting.is_over) == (True, False)
        assert not view.allowed(Kind.TOPIC, "orders", [Operation.READ])
        with pytest.raises(NotAuthenticated, match="credentials have ended"):
            ending.view(READS)


@in_loop
async def test_nobody_is_anonymous_but_who_has_shown_nothing() -> None:
    """Another node would let it in as the guest of an open node, who may do everything."""
    async with broker(clock="real") as b:
        node = b.broker
        gate = Gate(node, logins=Logins(node.accounts, node.clock, node.dice, b"x"), is_closed=True)
        with pytest.raises(NotAuthenticated, match="nobody in particular"):
            gate.access(Principal("User:ANONYMOUS"), IN_PROCESS)
        with pytest.raises(Refused, match="those who have shown nothing"):
            node.accounts.create_user("ANONYMOUS", "x", (), lambda _: None)

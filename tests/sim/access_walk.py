"""The part of the walk through all operations that is about accounts, rules, quotas and tenants."""

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from tests.sim.cluster_walk import Asked


async def accounts(ask: "Asked") -> None:
    await ask("create_user", name="anna", password="pencil", roles=["viewer"])
    await ask.sim.let_pass("1s")
    await ask("create_user", name="anna", password="other")
    await ask("list_users")
    await ask("change_user", user="anna", password="crayon", roles=["producer", "consumer"])
    await ask("change_user", user="nobody", roles=["viewer"])
    await ask.sim.let_pass("1s")
    await ask("list_users")
    await sessions(ask)
    for _ in range(2):
        await ask("delete_user", user="anna")
        await ask.sim.let_pass("1s")
    await ask("list_users")
    key = await ask.quietly("create_key", name="ci", roles=["metrics"], expires_in="1h", metadata={"team": "a"})
    drawn = {key["key"]: "key", key["id"]: "id"}
    ask.tell("create_key", renamed(key, drawn))
    await ask.sim.let_pass("1s")
    for name, given in (("rotate_key", {"overlap": "1h"}), ("list_keys", {}), ("delete_key", {}), ("delete_key", {})):
        about = {} if name == "list_keys" else {"key": key["id"]}
        answer = await ask.quietly(name, **about, **given)
        ask.tell(name, renamed(answer, {str(answer.get("key")): "another key", **drawn}))
        await ask.sim.let_pass("1s")
    await ask("list_keys")
    await ask("rekey")


async def sessions(ask: "Asked") -> None:
    """Of browsers: not over plain HTTP, and this client keeps no cookies."""
    await ask("log_in", user="anna", password="crayon")
    await ask("who_am_i")
    await ask("log_out")
    await ask("log_in_elsewhere")
    await ask("logged_in_elsewhere", code="a", state="b")


async def rules(ask: "Asked") -> None:
    rule = {"principal": "User:anna", "resource_type": "topic", "resource_name": "orders-*", "operation": "read"}
    made = await ask("create_acl", **rule)
    await ask.sim.let_pass("1s")
    assert (await ask("create_acl", **rule))["id"] == made["id"], "it says the same"
    await ask("list_acls")
    for _ in range(2):
        ask.tell("delete_acl", renamed(await ask.quietly("delete_acl", rule=made["id"]), {made["id"]: "id"}))
        await ask.sim.let_pass("1s")
    await ask("list_acls")


async def quotas(ask: "Asked") -> None:
    anna, others = {"user": "anna"}, {"client_id": "<default>"}
    sets = (("set_quota", {**anna, "producer_byte_rate": 1_000_000}), ("set_quota", {**others, "request_rate": 1000}))
    looks: Any = (("list_quotas", {}), ("describe_quota", {**anna, "client_id": "app"}), ("read_audit", {}))
    for name, given in (*sets, *looks, *(("delete_quota", each) for each in (anna, anna, others)), looks[0]):
        await ask(name, **given)
        await ask.sim.let_pass("1s")


async def tenants(ask: "Asked") -> None:
    acme = {"tenant": "acme"}
    await ask("create_tenant", id="acme", name="Acme")
    await ask.sim.let_pass("1s")
    for name in ("describe_tenant", "change_tenant", "suspend_tenant", "activate_tenant", "disable_tenant"):
        await ask(name, **acme, **({"reason": "unpaid"} if name == "suspend_tenant" else {}))
        await ask.sim.let_pass("1s")
    await ask("set_tenant_quotas", **acme, max_topics=5)
    await ask.sim.let_pass("1s")
    for name in ("tenant_quotas", "tenant_usage", "list_tenants"):
        await ask(name, **({} if name == "list_tenants" else acme))
    for _ in range(2):
        await ask("delete_tenant", **acme)
        await ask.sim.let_pass("1s")
    await ask("list_tenants")


def renamed(answer: Any, drawn: dict[str, str]) -> Any:
    """With names in place of what dice have made, wherever it is found."""
    text = msgspec.json.encode(answer).decode()
    for value, name in drawn.items():
        text = text.replace(value, name)
    return msgspec.json.decode(text)

"""Rules about who may do what."""

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_CLUSTER, MANAGES_ACCESS
from goqueue.model.access import EVERY_NAME, THE_CLUSTER, Kind, Operation, Rule
from goqueue.model.accounts import check_principal
from goqueue.wire.rest.accounts import AccountDeleted, NewRule, RuleFacts, RulePath, Rules
from goqueue.wire.rest.operations import accounts as operations

acls = Handlers()

KINDS = {kind.name.lower(): kind for kind in Kind}
OPERATIONS = {operation.name.lower(): operation for operation in Operation}
T = TypeVar("T")
EFFECTS = {"allow": True, "deny": False}


@acls.handles(operations.CREATE_ACL, MANAGES_ACCESS)
async def create_rule(call: Call, body: NewRule) -> RuleFacts:
    accounts = call.broker.accounts
    rule = _rule(accounts.new_rule_id(), body)
    await call.ask(partial(accounts.create_rules, [rule]))
    known = (each for each in accounts.image.rules.values() if rule_facts(each, "") == rule_facts(rule, ""))
    return rule_facts(next(known, rule))


@acls.handles(operations.LIST_ACLS, DESCRIBES_CLUSTER)
async def list_rules(call: Call) -> Rules:
    known = call.broker.accounts.image.rules
    return Rules(acls=[rule_facts(known[rule_id]) for rule_id in sorted(known)], count=len(known))


@acls.handles(operations.DELETE_ACL, MANAGES_ACCESS)
async def delete_rule(call: Call, path: RulePath) -> AccountDeleted:
    await call.ask(partial(call.broker.accounts.delete_rules, [path.rule]))
    return AccountDeleted(success=True, deleted=path.rule)


def _rule(rule_id: str, body: NewRule) -> Rule:
    check_principal(body.principal)
    kind = _one("resource_type", KINDS, body.resource_type)
    operation, is_allowed = _one("operation", OPERATIONS, body.operation), _one("effect", EFFECTS, body.effect)
    name, is_prefix = body.resource_name, body.resource_name != EVERY_NAME and body.resource_name.endswith("*")
    name = name.removesuffix("*") if is_prefix else name
    if name != EVERY_NAME and any(sign in name for sign in "*?["):
        message = f"resource_name is a name, what names begin with and a *, or *; not {body.resource_name!r}"
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", message)
    if kind is Kind.CLUSTER:
        name, is_prefix = THE_CLUSTER, False
    return Rule(rule_id, body.principal, kind, name, operation, is_allowed, is_prefix, body.host)


def _one(field: str, known: Mapping[str, T], given: str) -> T:
    found = known.get(given.lower())
    if found is None:
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", f"{field} is one of {', '.join(known)}; not {given[:100]!r}")
    return found


def rule_facts(rule: Rule, rule_id: str | None = None) -> RuleFacts:
    return RuleFacts(
        id=rule.rule_id if rule_id is None else rule_id,
        principal=rule.principal,
        resource_type=rule.kind.name.lower(),
        resource_name=f"{rule.name}*" if rule.is_prefix else rule.name,
        operation=rule.operation.name.lower(),
        effect="allow" if rule.is_allowed else "deny",
        host=rule.host,
    )

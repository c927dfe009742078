"""DescribeAcls, CreateAcls and DeleteAcls, as kafka-acls uses them. Rules about subjects of the schema registry are not
told here: Kafka has no word for them.
"""

from collections.abc import Sequence
from functools import partial

from goqueue.doors.kafka.request import Request
from goqueue.model.access import ANY_HOST, EVERY_NAME, THE_CLUSTER, Kind, Operation, Rule
from goqueue.model.accounts import check_principal
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.wire.kafka.messages import acls as wire

ANY = 1
KINDS = {2: Kind.TOPIC, 3: Kind.GROUP, 4: Kind.CLUSTER, 5: Kind.TRANSACTIONAL_ID}
OF_TOKENS = (6, 7)
"""DELEGATION_TOKEN and USER: who may see delegation tokens, and make them for others. There are none here."""
NUMBERS = {kind: number for number, kind in KINDS.items()}
MATCH, LITERAL, PREFIXED = 2, 3, 4
DENY, ALLOW = 2, 3
Filter = wire.DescribeAclsRequest | wire.DeleteAclsFilter


def handle_describe_acls(request: Request) -> None:
    asked: wire.DescribeAclsRequest = request.message
    response = wire.DescribeAclsResponse(error_message=None)
    try:
        _check(asked)
    except Refused as error:
        request.answer(wire.DescribeAclsResponse(0, error.code, str(error)))
        return
    resources: dict[tuple[int, str, int], list[wire.AclDescription]] = {}
    for rule in _matching(request, asked):
        of = NUMBERS[rule.kind], rule.name, PREFIXED if rule.is_prefix else LITERAL
        told = wire.AclDescription(rule.principal, rule.host, rule.operation, ALLOW if rule.is_allowed else DENY)
        resources.setdefault(of, []).append(told)
    response.resources = [wire.DescribeAclsResource(*of, each) for of, each in sorted(resources.items())]
    request.answer(response)


def handle_create_acls(request: Request) -> None:
    asked: wire.CreateAclsRequest = request.message
    results: list[wire.AclCreationResult] = []
    rules: list[Rule] = []
    for each in asked.creations:
        try:
            rules.append(_rule(request.broker.accounts.new_rule_id(), each))
            results.append(wire.AclCreationResult(Code.NONE, None))
        except Refused as error:
            results.append(wire.AclCreationResult(error.code, str(error)))

    def done(reply: object) -> None:
        if isinstance(reply, GoQueueError):
            code, words = code_of(reply), str(reply)
            for result in results:
                if not result.error_code:
                    result.error_code, result.error_message = code, words
        request.answer(wire.CreateAclsResponse(0, results))

    request.broker.accounts.create_rules(rules, done)


def handle_delete_acls(request: Request) -> None:
    asked: wire.DeleteAclsRequest = request.message
    results: list[wire.DeleteAclsFilterResult] = []
    gone: dict[str, None] = {}
    for each in asked.filters:
        try:
            _check(each)
        except Refused as error:
            results.append(wire.DeleteAclsFilterResult(error.code, str(error)))
            continue
        found = _matching(request, each)
        gone |= dict.fromkeys(rule.rule_id for rule in found)
        results.append(wire.DeleteAclsFilterResult(Code.NONE, None, [_told(rule) for rule in found]))
    if gone:
        request.broker.accounts.delete_rules(list(gone), partial(_deleted, request, results))
    else:
        request.answer(wire.DeleteAclsResponse(0, results))


def _deleted(request: Request, results: list[wire.DeleteAclsFilterResult], reply: object) -> None:
    if isinstance(reply, GoQueueError):
        for each in results:
            if each.matching_acls:
                each.error_code, each.error_message, each.matching_acls = code_of(reply), str(reply), []
    request.answer(wire.DeleteAclsResponse(0, results))


def _told(rule: Rule) -> wire.DeleteAclsMatchingAcl:
    pattern, permission = PREFIXED if rule.is_prefix else LITERAL, ALLOW if rule.is_allowed else DENY
    of = NUMBERS[rule.kind], rule.name, pattern
    return wire.DeleteAclsMatchingAcl(Code.NONE, None, *of, rule.principal, rule.host, rule.operation, permission)


def _rule(rule_id: str, each: wire.AclCreation) -> Rule:
    if each.resource_type in OF_TOKENS:
        words = "there are no delegation tokens here, so rules about them (of users, or of tokens) would allow nothing"
        raise Refused(Code.INVALID_REQUEST, words)
    kind = KINDS.get(each.resource_type)
    is_known = kind is not None and each.operation in Operation.__members__.values()
    if kind is None or not is_known or each.permission_type not in (DENY, ALLOW):
        words = "a rule allows or denies an operation on a topic, a group, the cluster or a transactional id"
        raise Refused(Code.INVALID_REQUEST, words)
    if each.resource_pattern_type not in (LITERAL, PREFIXED) or not each.resource_name or not each.host:
        raise Refused(Code.INVALID_REQUEST, "a rule has a name, literal or prefixed, and a host or *")
    if kind is Kind.CLUSTER and each.resource_name not in (THE_CLUSTER, EVERY_NAME):
        raise Refused(Code.INVALID_REQUEST, f"the cluster is called {THE_CLUSTER}")
    check_principal(each.principal)
    is_prefix, is_allowed = each.resource_pattern_type == PREFIXED, each.permission_type == ALLOW
    operation = Operation(each.operation)
    return Rule(rule_id, each.principal, kind, each.resource_name, operation, is_allowed, is_prefix, each.host)


def _check(asked: Filter) -> None:
    if not 1 <= asked.pattern_type_filter <= PREFIXED or not asked.resource_type_filter or not asked.operation:
        raise Refused(Code.INVALID_REQUEST, "this filter has a part that is unknown here")


def _matching(request: Request, asked: Filter) -> Sequence[Rule]:
    rules = request.broker.accounts.image.rules.values()
    return [rule for rule in rules if rule.kind in NUMBERS and _matches(asked, rule)]


def _matches(asked: Filter, rule: Rule) -> bool:
    permission = ALLOW if rule.is_allowed else DENY
    return (
        asked.resource_type_filter in (ANY, NUMBERS[rule.kind])
        and asked.principal_filter in (None, rule.principal)
        and asked.host_filter in (None, rule.host)
        and asked.operation in (ANY, rule.operation)
        and asked.permission_type in (ANY, permission)
        and _matches_name(asked, rule)
    )


def _matches_name(asked: Filter, rule: Rule) -> bool:
    """MATCH is whatever counts for a name: itself, `*`, and what it begins with."""
    name, pattern = asked.resource_name_filter, PREFIXED if rule.is_prefix else LITERAL
    if asked.pattern_type_filter in (LITERAL, PREFIXED) and asked.pattern_type_filter != pattern:
        return False
    if name is None:
        return True
    if asked.pattern_type_filter == MATCH:
        return name.startswith(rule.name) if rule.is_prefix else rule.name in (name, EVERY_NAME)
    return name == rule.name


assert ANY_HOST == "*", "Kafka's word for any host"

"""Quotas, as kafka-configs shows and sets them (KIP-546)."""

from functools import partial

from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import DEFAULT, Quota, check_entity, check_limit, check_limits
from goqueue.model.refusal import Refused
from goqueue.wire.kafka.messages import quotas as wire

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, IS_DEFAULT, ANY = 0, 1, 2
Entity = dict[str, str]


def handle_describe_client_quotas(request: Request) -> None:
    message: wire.DescribeClientQuotasRequest = request.message
    response = wire.DescribeClientQuotasResponse(error_message=None)
    try:
        _check(message)
    except Refused as error:
        request.answer(wire.DescribeClientQuotasResponse(0, error.code, str(error), None))
        return
    known = request.broker.accounts.image.quotas
    assert response.entries is not None
    for name in sorted(known):
        entity = _entity_of(known[name])
        if _matches(message, entity):
            values = [wire.QuotaValue(key, value) for key, value in sorted(known[name].limits.items())]
            response.entries.append(wire.QuotaEntry(_shown(entity), values))
    request.answer(response)


def _check(message: wire.DescribeClientQuotasRequest) -> None:
    seen = set()
    for each in message.components:
        if each.entity_type not in (USER, CLIENT_ID, IP):
            raise Refused(
                Code.UNSUPPORTED_VERSION, f"entities are user, client-id and ip, not {each.entity_type[:40]!r}"
            )
        if each.entity_type in seen or each.match_type not in (EXACT, IS_DEFAULT, ANY):
            raise Refused(Code.INVALID_REQUEST, f"{each.entity_type} is named once, with one of three kinds of match")
        if (each.match is not None) != (each.match_type == EXACT):
            raise Refused(Code.INVALID_REQUEST, "an exact match has a name, and others have none")
        seen.add(each.entity_type)


def _matches(message: wire.DescribeClientQuotasRequest, entity: Entity) -> bool:
    if message.strict and len(entity) != len(message.components):
        return False
    for each in message.components:
        name = entity.get(each.entity_type)
        if name is None:
            return False
        if each.match_type == EXACT and (name == DEFAULT or name != each.match):
            return False
        if each.match_type == IS_DEFAULT and name != DEFAULT:
            return False
    return True


def _entity_of(quota: Quota) -> Entity:
    named = ((USER, quota.user), (CLIENT_ID, quota.client_id), (IP, quota.ip))
    return {kind: name for kind, name in named if name is not None}


def _shown(entity: Entity) -> list[wire.QuotaEntity]:
    return [wire.QuotaEntity(kind, None if name == DEFAULT else name) for kind, name in entity.items()]


def handle_alter_client_quotas(request: Request) -> None:
    message: wire.AlterClientQuotasRequest = request.message
    results: dict[int, wire.AlteredQuota] = {}

    def done(number: int, reply: object) -> None:
        code, words = (code_of(reply), str(reply)) if isinstance(reply, GoQueueError) else (Code.NONE, None)
        results[number] = wire.AlteredQuota(code, words, message.entries[number].entity)
        if len(results) == len(message.entries):
            request.answer(wire.AlterClientQuotasResponse(0, [results[each] for each in sorted(results)]))

    if not message.entries:
        request.answer(wire.AlterClientQuotasResponse())
    for number, entry in enumerate(message.entries):
        try:
            user, client_id, ip = _named(entry.entity)
            changes = _changes(entry.ops)
            if message.validate_only:
                check_entity(user, client_id, ip)
                check_limits(changes, ip)
                done(number, None)
            else:
                request.broker.accounts.set_quota(user, client_id, changes, partial(done, number), ip=ip)
        except GoQueueError as error:
            done(number, error)


def _named(entity: list[wire.QuotaEntity]) -> tuple[str | None, str | None, str | None]:
    found: Entity = {}
    for each in entity:
        if each.entity_type not in (USER, CLIENT_ID, IP) or each.entity_type in found or each.entity_name == "":
            words = "an entity has a user, a client-id, both, or an ip, each with a name or null"
            raise Refused(Code.INVALID_REQUEST, words)
        found[each.entity_type] = DEFAULT if each.entity_name is None else each.entity_name
    return found.get(USER), found.get(CLIENT_ID), found.get(IP)


def _changes(ops: list[wire.AlterQuotaOp]) -> dict[str, float | None]:
    changes: dict[str, float | None] = {}
    for each in ops:
        if each.key in changes:
            raise Refused(Code.INVALID_REQUEST, f"{each.key[:40]!r} was named twice")
        changes[each.key] = None if each.remove else each.value
        check_limit(each.key, changes[each.key])
    return changes

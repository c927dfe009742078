"""Quotas of users, clients and addresses."""

from functools import partial

from msgspec import UNSET

from goqueue.doors.http.call import Call
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import ALTERS_QUOTAS, DESCRIBES_QUOTAS
from goqueue.model.quotas import (
    CONNECTIONS,
    DEFAULT,
    Quota,
    QuotaKey,
    address_limit,
    check_entity,
    limit_of,
    quota_id,
)
from goqueue.wire.rest.operations import quotas as operations
from goqueue.wire.rest.quotas import QuotaChange, QuotaDeleted, QuotaFacts, QuotaQuery, Quotas

quotas = Handlers()

SHOWN_DEFAULT = "<default>"
"""As Kafka's tools write it."""


@quotas.handles(operations.SET_QUOTA, ALTERS_QUOTAS)
async def set_quota(call: Call, body: QuotaChange) -> QuotaFacts:
    user, client_id, ip = _named(body.user), _named(body.client_id), _named(body.ip)
    given = {str(key): getattr(body, key) for key in QuotaKey}
    changes = {key: value for key, value in given.items() if value is not UNSET}
    accounts = call.broker.accounts
    await call.ask(partial(accounts.set_quota, user, client_id, changes, ip=ip))
    return _facts(accounts.image.quotas.get(quota_id(user, client_id, ip)) or Quota(user, client_id, {}, ip))


@quotas.handles(operations.LIST_QUOTAS, DESCRIBES_QUOTAS)
async def list_quotas(call: Call) -> Quotas:
    known = call.broker.accounts.image.quotas
    return Quotas(quotas=[_facts(known[name]) for name in sorted(known)], count=len(known))


@quotas.handles(operations.DESCRIBE_QUOTA, DESCRIBES_QUOTAS)
async def describe_quota(call: Call, query: QuotaQuery) -> QuotaFacts:
    known = call.broker.accounts.image.quotas
    if query.ip is not None:
        check_entity(_named(query.user), _named(query.client_id), _named(query.ip))
        rate = address_limit(known, _named(query.ip) or DEFAULT)
        return _facts(Quota(None, None, {} if rate is None else {CONNECTIONS: rate}, _named(query.ip)))
    user, client_id = _named(query.user) or DEFAULT, _named(query.client_id) or DEFAULT
    found = {key: limit_of(known, key, user, client_id) for key in QuotaKey}
    limits = {str(key): limit[0] for key, limit in found.items() if limit is not None}
    return _facts(Quota(_named(query.user), _named(query.client_id), limits))


@quotas.handles(operations.DELETE_QUOTA, ALTERS_QUOTAS)
async def delete_quota(call: Call, query: QuotaQuery) -> QuotaDeleted:
    user, client_id, ip = _named(query.user), _named(query.client_id), _named(query.ip)
    await call.ask(partial(call.broker.accounts.delete_quota, user, client_id, ip=ip))
    return QuotaDeleted(success=True, user=query.user, client_id=query.client_id, ip=query.ip)


def _named(given: str | None) -> str | None:
    return DEFAULT if given == SHOWN_DEFAULT else given


def _facts(quota: Quota) -> QuotaFacts:
    return QuotaFacts(
        user=SHOWN_DEFAULT if quota.user == DEFAULT else quota.user,
        client_id=SHOWN_DEFAULT if quota.client_id == DEFAULT else quota.client_id,
        ip=SHOWN_DEFAULT if quota.ip == DEFAULT else quota.ip,
        **{str(key): quota.limits.get(key) for key in QuotaKey},
    )

"""Tenants."""

from functools import partial

from msgspec import UNSET

from goqueue.broker.tenants.belongings import Found
from goqueue.broker.tenants.tenants import Usage, said
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, CONFLICT, FORBIDDEN, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import DESCRIBES_CLUSTER, MANAGES_ACCESS
from goqueue.machines.tenant_commands import ChangeTenant
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import DEFAULT_TENANT, RESERVED, Tenant, TenantLimit, TenantStatus
from goqueue.wire.rest.operations import tenants as operations
from goqueue.wire.rest.tenants import (
    NewTenant,
    Suspension,
    TenantChange,
    TenantDeletion,
    TenantFacts,
    TenantGoing,
    TenantPath,
    TenantQuery,
    TenantQuotaChange,
    TenantQuotas,
    Tenants,
    TenantUsage,
)

tenants = Handlers()

_DEFAULT = Tenant(DEFAULT_TENANT, DEFAULT_TENANT, "the tenant that there always is")


@tenants.handles(operations.CREATE_TENANT, MANAGES_ACCESS)
async def create_tenant(call: Call, body: NewTenant) -> TenantFacts:
    made = Tenant(body.id, body.name, body.description, metadata=body.metadata, created_ms=call.now_ms)
    await call.ask(partial(call.broker.tenants.create, made))
    return _facts(_known(call, body.id))


@tenants.handles(operations.LIST_TENANTS, DESCRIBES_CLUSTER)
async def list_tenants(call: Call, query: TenantQuery) -> Tenants:
    if query.status is not None and query.status not in set(TenantStatus):
        words = f"status is one of {', '.join(TenantStatus)}; not {query.status[:40]!r}"
        raise HttpError(BAD_REQUEST, "INVALID_REQUEST", words)
    known = [_DEFAULT, *call.broker.tenants.all().values()]
    shown = [each for each in known if query.status in (None, each.status)]
    return Tenants(tenants=[_facts(each) for each in sorted(shown, key=lambda each: each.tenant_id)], count=len(shown))


@tenants.handles(operations.DESCRIBE_TENANT, DESCRIBES_CLUSTER)
async def describe_tenant(call: Call, path: TenantPath) -> TenantFacts:
    return _facts(_DEFAULT if path.tenant == DEFAULT_TENANT else _known(call, path.tenant))


@tenants.handles(operations.CHANGE_TENANT, MANAGES_ACCESS)
async def change_tenant(call: Call, path: TenantPath, body: TenantChange) -> TenantFacts:
    _check_is_ordinary(path.tenant)
    command = ChangeTenant(path.tenant, body.name, body.description, body.metadata)
    return await _changed(call, command, path.tenant)


@tenants.handles(operations.SUSPEND_TENANT, MANAGES_ACCESS)
async def suspend_tenant(call: Call, path: TenantPath, body: Suspension) -> TenantFacts:
    return await _set_status(call, path.tenant, TenantStatus.SUSPENDED, body.reason)


@tenants.handles(operations.ACTIVATE_TENANT, MANAGES_ACCESS)
async def activate_tenant(call: Call, path: TenantPath) -> TenantFacts:
    return await _set_status(call, path.tenant, TenantStatus.ACTIVE)


@tenants.handles(operations.DISABLE_TENANT, MANAGES_ACCESS)
async def disable_tenant(call: Call, path: TenantPath) -> TenantFacts:
    return await _set_status(call, path.tenant, TenantStatus.DISABLED)


@tenants.handles(operations.DELETE_TENANT, MANAGES_ACCESS)
async def delete_tenant(call: Call, path: TenantPath, query: TenantDeletion) -> TenantGoing:
    _check_is_ordinary(path.tenant)
    _known(call, path.tenant)
    if not query.force:
        found: Found = await call.ask(partial(call.broker.tenants.find, path.tenant))
        if found:
            words = f"tenant {path.tenant!r} is not empty; force=true deletes it with all that it has: {said(found)}"
            raise HttpError(CONFLICT, "TENANT_NOT_EMPTY", words)
    await call.ask(partial(call.broker.tenants.delete, path.tenant))
    return TenantGoing(tenant_id=path.tenant, status=TenantStatus.DELETING)


@tenants.handles(operations.TENANT_QUOTAS, DESCRIBES_CLUSTER)
async def tenant_quotas(call: Call, path: TenantPath) -> TenantQuotas:
    return _quotas(_DEFAULT if path.tenant == DEFAULT_TENANT else _known(call, path.tenant))


@tenants.handles(operations.SET_TENANT_QUOTAS, MANAGES_ACCESS)
async def set_tenant_quotas(call: Call, path: TenantPath, body: TenantQuotaChange) -> TenantQuotas:
    _check_is_ordinary(path.tenant)
    given = {str(key): getattr(body, key) for key in TenantLimit}
    changes = {key: value for key, value in given.items() if value is not UNSET}
    await _changed(call, ChangeTenant(path.tenant, quotas=changes), path.tenant)
    return _quotas(_known(call, path.tenant))


@tenants.handles(operations.TENANT_USAGE, DESCRIBES_CLUSTER)
async def tenant_usage(call: Call, path: TenantPath) -> TenantUsage:
    _check_is_ordinary(path.tenant)
    _known(call, path.tenant)
    used: Usage = await call.ask(partial(call.broker.tenants.usage, path.tenant))
    return TenantUsage(tenant_id=path.tenant, **used._asdict())


async def _set_status(call: Call, tenant_id: str, status: TenantStatus, reason: str = "") -> TenantFacts:
    _check_is_ordinary(tenant_id)
    return await _changed(call, ChangeTenant(tenant_id, status=status, reason=reason), tenant_id)


async def _changed(call: Call, command: ChangeTenant, tenant_id: str) -> TenantFacts:
    await call.ask(partial(call.broker.tenants.change, command))
    return _facts(_known(call, tenant_id))


def _check_is_ordinary(tenant_id: str) -> None:
    if tenant_id in RESERVED:
        raise HttpError(FORBIDDEN, "SYSTEM_TENANT", f"the tenant {tenant_id!r} always is, and stays as it is")


def _known(call: Call, tenant_id: str) -> Tenant:
    found = call.broker.tenants.all().get(tenant_id)
    if found is None:
        raise Refused(Code.RESOURCE_NOT_FOUND, f"there is no tenant {tenant_id!r}")
    return found


def _quotas(tenant: Tenant) -> TenantQuotas:
    return TenantQuotas(tenant_id=tenant.tenant_id, **{str(key): tenant.quotas.get(key) for key in TenantLimit})


def _facts(tenant: Tenant) -> TenantFacts:
    return TenantFacts(
        id=tenant.tenant_id,
        name=tenant.name,
        description=tenant.description,
        status=tenant.status,
        reason=tenant.reason,
        metadata=tenant.metadata,
        created_at=tenant.created_ms,
    )

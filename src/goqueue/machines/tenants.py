"""Tenants, as the controller keeps them: facts beside users and rules. A tenant that is deleted is `deleting` first, in
one fact, and forgotten once nothing of it is left.
"""

from collections.abc import Collection, Iterator
from typing import ClassVar

import msgspec

from goqueue.machines.account_result import AccountResult
from goqueue.machines.machine import Fact
from goqueue.machines.tenant_commands import ChangeTenant, CreateTenant, ForgetTenant
from goqueue.model.codes import Code
from goqueue.model.tenancy import DEFAULT_TENANT, MARK, RESERVED, Tenant, TenantStatus

TENANT_KEY = b"\0tenant/"  # no topic can be called that
TENANTS_MAX = 10_000


class TenantStored(Fact, frozen=True, tag="TenantStored"):
    tenant: Tenant

    def key(self) -> bytes:
        return TENANT_KEY + self.tenant.tenant_id.encode()


class TenantForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    tenant_id: str

    def key(self) -> bytes:
        return TENANT_KEY + self.tenant_id.encode()


TenantFact = TenantStored | TenantForgotten


class Tenants:
    def __init__(self) -> None:
        self.by_id: dict[str, Tenant] = {}

    def decide(self, command: object, users: Collection[str]) -> tuple[list[Fact], AccountResult]:
        """`users`: names of all that there are."""
        match command:
            case CreateTenant(tenant):
                return self._create(tenant, users)
            case ChangeTenant():
                return self._change(command)
            case ForgetTenant(tenant_id):
                return self._forget(tenant_id, users)
        raise TypeError(f"no command about tenants: {command!r}")

    def _create(self, tenant: Tenant, users: Collection[str]) -> tuple[list[Fact], AccountResult]:
        before = self.by_id.get(tenant.tenant_id)
        if before == tenant:  # its answer was lost
            return [], AccountResult()
        if before is not None or tenant.tenant_id in RESERVED:
            return [], AccountResult(Code.DUPLICATE_RESOURCE, f"tenant {tenant.tenant_id!r} already exists")
        taken = next((name for name in users if name.startswith(f"{tenant.tenant_id}{MARK}")), None)
        if taken is not None:
            words = f"the user {taken!r} of the tenant 'default' would belong to it"
            return [], AccountResult(Code.DUPLICATE_RESOURCE, words)
        if len(self.by_id) >= TENANTS_MAX:
            return [], AccountResult(Code.POLICY_VIOLATION, f"there are {TENANTS_MAX} tenants already")
        return [TenantStored(tenant)], AccountResult()

    def _forget(self, tenant_id: str, users: Collection[str]) -> tuple[list[Fact], AccountResult]:
        found = self.by_id.get(tenant_id)
        if found is not None and found.status is not TenantStatus.DELETING:
            return [], AccountResult(Code.INVALID_REQUEST, f"tenant {tenant_id!r} is not being deleted")
        left = next((name for name in users if name.startswith(f"{tenant_id}{MARK}")), None)
        if found is not None and left is not None:  # it would be one of the default tenant, with the roles that it has
            return [], AccountResult(Code.INVALID_REQUEST, f"tenant {tenant_id!r} still has the user {left!r}")
        return [] if found is None else [TenantForgotten(tenant_id)], AccountResult()

    def closed(self, tenant_id: str) -> AccountResult | None:
        """Why nothing can be made for it; None: it can."""
        found = self.by_id.get(tenant_id)
        if tenant_id == DEFAULT_TENANT or (found is not None and found.status is not TenantStatus.DELETING):
            return None
        is_gone = found is None
        words = f"there is no tenant {tenant_id!r}" if is_gone else f"tenant {tenant_id!r} is being deleted"
        return AccountResult(Code.RESOURCE_NOT_FOUND if is_gone else Code.DUPLICATE_RESOURCE, words)

    def _change(self, command: ChangeTenant) -> tuple[list[Fact], AccountResult]:
        before = self.by_id.get(command.tenant_id)
        if before is None:
            return [], AccountResult(Code.RESOURCE_NOT_FOUND, f"there is no tenant {command.tenant_id!r}")
        if before.status is TenantStatus.DELETING:
            is_again = command.status is TenantStatus.DELETING
            words = "" if is_again else f"tenant {command.tenant_id!r} is being deleted"
            return [], AccountResult(Code.NONE if is_again else Code.DUPLICATE_RESOURCE, words)
        after = msgspec.structs.replace(
            before,
            name=before.name if command.name is None else command.name,
            description=before.description if command.description is None else command.description,
            metadata=before.metadata if command.metadata is None else dict(command.metadata),
            status=before.status if command.status is None else command.status,
            reason=before.reason if command.status is None else command.reason,
            quotas=_changed_quotas(before, command),
        )
        return [] if after == before else [TenantStored(after)], AccountResult()

    def apply(self, fact: TenantFact) -> None:
        match fact:
            case TenantStored(tenant):
                self.by_id[tenant.tenant_id] = tenant
            case TenantForgotten(tenant_id):
                self.by_id.pop(tenant_id, None)

    def forget(self, key: bytes) -> bool:
        """Replay of a tombstone. False: it is none of these."""
        if not key.startswith(TENANT_KEY):
            return False
        self.by_id.pop(key.removeprefix(TENANT_KEY).decode(), None)
        return True

    def facts(self) -> Iterator[Fact]:
        yield from (TenantStored(each) for each in self.by_id.values())


def _changed_quotas(before: Tenant, command: ChangeTenant) -> dict[str, int]:
    changed = {**before.quotas, **(command.quotas or {})}
    return {key: limit for key, limit in changed.items() if limit is not None}

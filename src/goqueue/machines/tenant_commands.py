"""What the controller is asked to do with tenants."""

from collections.abc import Mapping

from goqueue.machines.account_result import AccountResult
from goqueue.machines.machine import Command
from goqueue.model.tenancy import Tenant, TenantStatus


class CreateTenant(Command[AccountResult], frozen=True):
    tenant: Tenant


class ChangeTenant(Command[AccountResult], frozen=True):
    """None: as it is."""

    tenant_id: str
    name: str | None = None
    description: str | None = None
    metadata: Mapping[str, str] | None = None
    status: TenantStatus | None = None
    reason: str = ""
    """Kept with a status."""
    quotas: Mapping[str, int | None] | None = None
    """Those that change; None as a limit: there is none any more."""


class ForgetTenant(Command[AccountResult], frozen=True):
    """The last step of deleting it."""

    tenant_id: str


TENANT_COMMANDS = (CreateTenant, ChangeTenant, ForgetTenant)

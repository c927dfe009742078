"""Which tenant somebody belongs to or acts for, and with which rights."""

from goqueue.model.access import Kind, Operation, Rights, SuspendedRights
from goqueue.model.accounts import KEY, USER, AccessImage, ApiKey, User
from goqueue.model.grants import Grants
from goqueue.model.tenancy import DEFAULT_TENANT, MARK, TenantStatus, tenant_named, tenant_of

UNKNOWN = ""
"""The tenant of a key that is not known."""

_SHUT = (TenantStatus.DISABLED, TenantStatus.DELETING)


def account_of(image: AccessImage, principal: str) -> User | ApiKey | None:
    kind, _, name = principal.partition(":")
    return image.users.get(name) if kind == USER else image.keys.get(name) if kind == KEY else None


def home_of(image: AccessImage, principal: str) -> str:
    """The tenant that a principal belongs to: that of a key is stored with it, that of a user is in its name. One that
    is shut, if this node does not know the key or the tenant (any more): whoever was of another tenant must not become
    somebody of the default one."""
    kind, _, name = principal.partition(":")
    if kind == KEY:
        found = image.keys.get(name)
        return UNKNOWN if found is None else found.tenant
    return tenant_of(name, image.tenants) if name in image.users else tenant_named(name)


def is_shut(image: AccessImage, tenant: str) -> bool:
    """Nobody of it comes in."""
    if tenant == DEFAULT_TENANT:
        return False
    found = image.tenants.get(tenant)
    return found is None or found.status in _SHUT


def may_act_for(home: str, tenant: str, rights: Rights) -> bool:
    """Those who may alter the cluster may act for every tenant; others for those that a rule lets them describe."""
    if tenant == home or home != DEFAULT_TENANT:
        return tenant == home
    return rights.allows(Kind.CLUSTER, Operation.ALTER, "") or rights.allows(Kind.TENANT, Operation.DESCRIBE, tenant)


def rights_of(image: AccessImage, principal: str, host: str, tenant: str, roles: tuple[str, ...] = ()) -> Rights:
    """By the rules of the principal's own tenant, for names of the tenant that it acts for."""
    found = image.tenants.get(tenant)
    if found is not None and found.status is not TenantStatus.ACTIVE:
        return SuspendedRights(found.reason)
    account, home = account_of(image, principal), home_of(image, principal)
    known_as = principal if home == DEFAULT_TENANT else principal.replace(f"{home}{MARK}", "", 1)
    rules = [rule for rule in image.rules.values() if rule.tenant == home]
    return Grants(known_as, host, (*roles, *(() if account is None else account.roles)), rules)


def trusted_rights(image: AccessImage, tenant: str, given: Rights) -> Rights:
    """Of whoever comes in without showing anything."""
    found = image.tenants.get(tenant)
    is_open = found is None or found.status is TenantStatus.ACTIVE
    return given if is_open else SuspendedRights("" if found is None else found.reason)

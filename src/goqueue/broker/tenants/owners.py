"""Whether somebody who left something behind that goes on may still do it: asked of what is stored, long after they
have gone.
"""

from goqueue.broker.tenants.belonging import home_of, is_shut, may_act_for, rights_of
from goqueue.model.access import ROLES, Kind, Operation
from goqueue.model.accounts import ANONYMOUS, AccessImage
from goqueue.model.credentials import Principal
from goqueue.model.tenancy import ACTS, DEFAULT_TENANT, Tenancy, TenantStatus

ROLES_END = "@"
"""In what nodes tell each other of somebody: behind the roles of a token."""


def read_told(said: str) -> tuple[str, Principal]:
    """Who somebody is, as nodes of a cluster tell each other and as it is stored; with the tenant that they act for."""
    acts, _, who = said.removeprefix(ACTS).partition(";") if said.startswith(ACTS) else ("", "", said)
    roles, end, name = who.partition(ROLES_END)
    if end and not set(words := tuple(roles.split(","))) - set(ROLES):
        return acts, Principal(name, roles=words)
    return acts, Principal(who)


def may_still_write(image: AccessImage, owner: str, host: str, topic: str) -> bool:
    """To a topic that is kept under this name. `owner`: as `read_told` reads it; empty: nobody has noted it."""
    if not owner:
        return True
    acts, (name, _, roles) = read_told(owner)
    home = DEFAULT_TENANT if name == ANONYMOUS else home_of(image, name)
    tenant = acts or home
    if is_shut(image, home) or is_shut(image, tenant):
        return False
    if name == ANONYMOUS:
        found = image.tenants.get(tenant)
        return found is None or found.status is TenantStatus.ACTIVE
    if not may_act_for(home, tenant, rights_of(image, name, host, home, roles)):
        return False
    tenancy = Tenancy(tenant, image.tenants)
    rights = rights_of(image, name, host, tenant, roles)
    return tenancy.owns(topic) and rights.allows(Kind.TOPIC, Operation.WRITE, tenancy.plain(topic))

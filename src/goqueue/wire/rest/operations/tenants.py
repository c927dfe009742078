"""Operations on tenants."""

from goqueue.wire.home import HERE
from goqueue.wire.rest import tenants
from goqueue.wire.rest.operation import Resource

TENANTS = Resource("Tenants")

CREATE_TENANT = TENANTS.add(
    "create_tenant",
    "POST /admin/tenants",
    tenants.TenantFacts,
    """Make a tenant: a cluster of its own, to those who belong to it.

    Its topics, groups, schemas and accounts have names of their own. An admin acts for it with the header
    `X-GoQueue-Tenant`, and so makes its first user or key.
    """,
    body=tenants.NewTenant,
    status=201,
    errors=(409,),
    home=HERE,
)

LIST_TENANTS = TENANTS.add(
    "list_tenants", "GET /admin/tenants", tenants.Tenants, "All tenants.", query=tenants.TenantQuery, home=HERE
)

DESCRIBE_TENANT = TENANTS.add(
    "describe_tenant",
    "GET /admin/tenants/{tenant}",
    tenants.TenantFacts,
    "One tenant.",
    path=tenants.TenantPath,
    errors=(404,),
    home=HERE,
)

CHANGE_TENANT = TENANTS.add(
    "change_tenant",
    "PATCH /admin/tenants/{tenant}",
    tenants.TenantFacts,
    "Change what is said of a tenant.",
    path=tenants.TenantPath,
    body=tenants.TenantChange,
    errors=(404,),
    home=HERE,
)

SUSPEND_TENANT = TENANTS.add(
    "suspend_tenant",
    "POST /admin/tenants/{tenant}/suspend",
    tenants.TenantFacts,
    "Refuse all reads and writes of a tenant. Its users and keys may still log in.",
    path=tenants.TenantPath,
    body=tenants.Suspension,
    errors=(403, 404),
    home=HERE,
)

ACTIVATE_TENANT = TENANTS.add(
    "activate_tenant",
    "POST /admin/tenants/{tenant}/activate",
    tenants.TenantFacts,
    "Serve a tenant again.",
    path=tenants.TenantPath,
    errors=(403, 404),
    home=HERE,
)

DISABLE_TENANT = TENANTS.add(
    "disable_tenant",
    "POST /admin/tenants/{tenant}/disable",
    tenants.TenantFacts,
    "Refuse everything to a tenant, logins too. Its connections are closed.",
    path=tenants.TenantPath,
    errors=(403, 404),
    home=HERE,
)

DELETE_TENANT = TENANTS.add(
    "delete_tenant",
    "DELETE /admin/tenants/{tenant}",
    tenants.TenantGoing,
    """Delete a tenant with all that it has, for good.

    Its connections are closed at once and its keys are void. Topics, groups, transactions, schemas, users, keys and
    rules go one after the other, also if nodes are restarted meanwhile; then its id is free again.
    """,
    path=tenants.TenantPath,
    query=tenants.TenantDeletion,
    status=202,
    errors=(403, 404, 409),
    home=HERE,
)

TENANT_QUOTAS = TENANTS.add(
    "tenant_quotas",
    "GET /admin/tenants/{tenant}/quotas",
    tenants.TenantQuotas,
    "What a tenant may have at most.",
    path=tenants.TenantPath,
    errors=(404,),
    home=HERE,
)

SET_TENANT_QUOTAS = TENANTS.add(
    "set_tenant_quotas",
    "PUT /admin/tenants/{tenant}/quotas",
    tenants.TenantQuotas,
    """Limit what a tenant may have.

    Rates hold for all its users and clients together, beside their own. What a tenant has beyond a limit stays. Limits
    that are not named stay as they are; null takes one away.
    """,
    path=tenants.TenantPath,
    body=tenants.TenantQuotaChange,
    errors=(403, 404),
    home=HERE,
)

TENANT_USAGE = TENANTS.add(
    "tenant_usage",
    "GET /admin/tenants/{tenant}/usage",
    tenants.TenantUsage,
    "What a tenant has.",
    path=tenants.TenantPath,
    errors=(403, 404),
    home=HERE,
)

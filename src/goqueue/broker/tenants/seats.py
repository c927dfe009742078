"""How many connections each tenant has to this node: those of Kafka clients, and requests and calls of others while
they last, since a long poll or a stream takes a place as a connection does.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from goqueue.model.quotas import QuotaExceeded
from goqueue.model.tenancy import DEFAULT_TENANT, Tenant, TenantLimit

CONNECTIONS_SHARED = 10_000
"""As many as the HTTP and the gRPC listeners take of all together; Kafka takes twice as many."""
RETRY_MS = 1000
"""When somebody may have left."""

Leave = Callable[[], None]


class Seats:
    def __init__(self) -> None:
        self._limits: dict[str, int] = {}
        self._taken: Counter[str] = Counter()

    def renew(self, tenants: Mapping[str, Tenant]) -> None:
        """Whoever is there stays."""
        self._limits = {name: each.most(TenantLimit.CONNECTIONS, CONNECTIONS_SHARED) for name, each in tenants.items()}

    def taken(self, tenant_id: str) -> int:
        return self._taken[tenant_id]

    def enter(self, tenant_id: str) -> Leave | None:
        """Whoever leaves calls what is returned, once. None: nobody counts. QuotaExceeded: there is no room."""
        if tenant_id == DEFAULT_TENANT:
            return None
        limit = self._limits.get(tenant_id)
        if limit is not None and self._taken[tenant_id] >= limit:
            words = f"the quota {TenantLimit.CONNECTIONS} of the tenant is {limit}, and it has as many to this node"
            raise QuotaExceeded(TenantLimit.CONNECTIONS, limit, RETRY_MS, words)
        self._taken[tenant_id] += 1
        return partial(self._left, tenant_id)

    def _left(self, tenant_id: str) -> None:
        self._taken[tenant_id] -= 1
        if not self._taken[tenant_id]:
            del self._taken[tenant_id]

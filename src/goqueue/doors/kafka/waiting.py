"""When as much waits for replies as may, on all connections together: which of them has to go."""

from collections import Counter
from collections.abc import Iterable

from goqueue.doors.kafka.connection import Connection


def who_goes(connections: Iterable[Connection], latest: Connection) -> Connection:
    """The one that came on top, or, if another tenant has more waiting than its own, the largest of that tenant: nobody
    pays for what others keep waiting."""
    of_tenants: Counter[str] = Counter()
    largest: dict[str, Connection] = {}
    for each in connections:
        if not each.is_closing:
            tenant = _tenant(each)
            of_tenants[tenant] += each.waiting_bytes
            if tenant not in largest or each.waiting_bytes > largest[tenant].waiting_bytes:
                largest[tenant] = each
    if not of_tenants:
        return latest  # all are being closed
    tenant, most = of_tenants.most_common(1)[0]
    return latest if most == of_tenants[_tenant(latest)] else largest[tenant]


def _tenant(connection: Connection) -> str:
    return "" if connection.access is None else connection.access.tenancy.tenant

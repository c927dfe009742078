"""All operations, in the order of the documents."""

from typing import Any

from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations import (
    accounts,
    acks,
    admin,
    audit,
    cluster,
    dead_letters,
    delays,
    groups,
    infrastructure,
    lanes,
    leases,
    messages,
    quotas,
    replays,
    schemas,
    tenants,
    topics,
    traces,
    transactions,
)

OPERATIONS: tuple[Operation[Any], ...] = (
    *topics.TOPICS.all,
    *messages.MESSAGES.all,
    *dead_letters.DEAD_LETTERS.all,
    *delays.DELAYS.all,
    *delays.SCHEDULES.all,
    *lanes.PRIORITIES.all,
    *replays.REPLAYS.all,
    *transactions.TRANSACTIONS.all,
    *admin.ADMINISTRATION.all,
    *accounts.ACCOUNTS.all,
    *quotas.QUOTAS.all,
    *tenants.TENANTS.all,
    *audit.AUDIT.all,
    *groups.GROUPS.all,
    *groups.MEMBERS.all,
    *groups.COOPERATIVE.all,
    *groups.OFFSETS.all,
    *groups.LAG.all,
    *leases.LEASES.all,
    *acks.ACKNOWLEDGEMENTS.all,
    *traces.TRACES.all,
    *schemas.SCHEMAS.all,
    *cluster.CLUSTER.all,
    *infrastructure.NODE.all,
    *infrastructure.DOCUMENTS.all,
)

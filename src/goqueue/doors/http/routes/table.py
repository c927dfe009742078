"""All routes of the door: a handler for every operation of the table."""

from goqueue.doors.http.operation import Route
from goqueue.doors.http.routes.accounts import accounts
from goqueue.doors.http.routes.acks import acks
from goqueue.doors.http.routes.acls import acls
from goqueue.doors.http.routes.admin import admin
from goqueue.doors.http.routes.audit import audit
from goqueue.doors.http.routes.cluster import cluster
from goqueue.doors.http.routes.console import console
from goqueue.doors.http.routes.cooperative import cooperative
from goqueue.doors.http.routes.dead_letters import dead_letters
from goqueue.doors.http.routes.delays import delays
from goqueue.doors.http.routes.documents import documents
from goqueue.doors.http.routes.follow import follow
from goqueue.doors.http.routes.groups import groups
from goqueue.doors.http.routes.infrastructure import infrastructure
from goqueue.doors.http.routes.lag import lag
from goqueue.doors.http.routes.lanes import lanes
from goqueue.doors.http.routes.leases import leases
from goqueue.doors.http.routes.members import members
from goqueue.doors.http.routes.messages import messages
from goqueue.doors.http.routes.offsets import offsets
from goqueue.doors.http.routes.quotas import quotas
from goqueue.doors.http.routes.replays import replays
from goqueue.doors.http.routes.schedules import schedules
from goqueue.doors.http.routes.schema_config import schema_config
from goqueue.doors.http.routes.schemas import schemas
from goqueue.doors.http.routes.sessions import sessions
from goqueue.doors.http.routes.tenants import tenants
from goqueue.doors.http.routes.topics import topics
from goqueue.doors.http.routes.trace_steps import trace_steps
from goqueue.doors.http.routes.traces import traces
from goqueue.doors.http.routes.transactions import transactions
from goqueue.wire.rest.operations.table import OPERATIONS

RESOURCES = (
    topics,
    messages,
    follow,
    dead_letters,
    delays,
    schedules,
    lanes,
    replays,
    transactions,
    admin,
    accounts,
    acls,
    sessions,
    quotas,
    tenants,
    audit,
    groups,
    members,
    cooperative,
    offsets,
    lag,
    leases,
    acks,
    trace_steps,
    traces,
    schemas,
    schema_config,
    cluster,
    infrastructure,
    console,
    documents,
)
_BY_OPERATION = {route.operation: route for resource in RESOURCES for route in resource.all}
assert _BY_OPERATION.keys() == set(OPERATIONS), "an operation without a handler, or a handler without an operation"
ROUTES: list[Route] = [_BY_OPERATION[operation] for operation in OPERATIONS]

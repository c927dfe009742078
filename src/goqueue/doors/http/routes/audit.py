"""The audit trail."""

from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import NOT_FOUND, HttpError
from goqueue.doors.http.operation import Handlers
from goqueue.doors.http.permissions import MANAGES_ACCESS
from goqueue.model.audit import Recorded
from goqueue.wire.rest.audit import AuditEntry, AuditQuery, AuditTrail, NodeTrail
from goqueue.wire.rest.operations import audit as operations

audit = Handlers()


@audit.handles(operations.READ_AUDIT, MANAGES_ACCESS)
async def read_audit(call: Call, query: AuditQuery) -> AuditTrail:
    trail = call.broker.audit
    if trail is None:
        raise HttpError(NOT_FOUND, "NO_AUDIT", "this node is open to everybody: it has no audit trail")
    start, end, following, found = await trail.page(
        query.offset, query.limit, lambda record: query.principal in (None, record.principal)
    )
    entries = [_entry(each) for each in found]
    me = call.broker.identity.node_id
    others = [] if query.node is not None else [each for each in call.broker.cluster.known_nodes() if each != me]
    return AuditTrail(
        entries=entries,
        count=len(entries),
        start_offset=start,
        end_offset=end,
        trails=[NodeTrail(node=me, start_offset=start, end_offset=end, next_offset=following)],
        not_answered=others,  # what the others say is added to this
    )


def _entry(kept: Recorded) -> AuditEntry:
    record = kept.record
    return AuditEntry(
        offset=kept.offset,
        at_ms=record.at_ms,
        node=record.node,
        tenant=record.tenant,
        principal=record.principal,
        host=record.host,
        api=record.api,
        operation=record.operation,
        resource=record.resource,
        outcome=record.outcome,
        code=record.code,
        count=record.count,
        change=record.change,
        fields=list(record.fields),
        request_id=record.request_id,
        hash_ok=kept.is_chained,
    )

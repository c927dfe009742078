"""The audit trail."""

from goqueue.wire.home import NODE, Way, at
from goqueue.wire.rest import audit
from goqueue.wire.rest.operation import Resource

AUDIT = Resource("Audit")

READ_AUDIT = AUDIT.add(
    "read_audit",
    "GET /admin/audit",
    audit.AuditTrail,
    """Who changed what, who was refused, and who failed to log in; the oldest first.

    Each node has its own trail, of the requests that came to it; any node tells those of all, by time, and names those
    that did not answer. A node that is open to everybody has none.
    """,
    query=audit.AuditQuery,
    errors=(404,),
    home=at(NODE, "query.node", otherwise=Way.EVERYWHERE),
)

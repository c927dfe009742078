"""All operations of the door."""

from goqueue.doors.http.operation import Operation
from goqueue.doors.http.routes.acks import acks
from goqueue.doors.http.routes.cooperative import cooperative
from goqueue.doors.http.routes.documents import documents
from goqueue.doors.http.routes.groups import groups
from goqueue.doors.http.routes.infrastructure import infrastructure
from goqueue.doors.http.routes.lag import lag
from goqueue.doors.http.routes.members import members
from goqueue.doors.http.routes.messages import messages
from goqueue.doors.http.routes.offsets import offsets
from goqueue.doors.http.routes.topics import topics

RESOURCES = (
    topics,
    messages,
    groups,
    members,
    cooperative,
    offsets,
    lag,
    acks,
    infrastructure,
    documents,
)
OPERATIONS: list[Operation] = [operation for resource in RESOURCES for operation in resource.all]

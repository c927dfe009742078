"""All operations of the door."""

from goqueue.doors.http.operation import Operation
from goqueue.doors.http.routes.documents import documents
from goqueue.doors.http.routes.infrastructure import infrastructure
from goqueue.doors.http.routes.messages import messages
from goqueue.doors.http.routes.topics import topics

RESOURCES = (
    topics,
    messages,
    infrastructure,
    documents,
)
OPERATIONS: list[Operation] = [operation for resource in RESOURCES for operation in resource.all]

"""All operations of the door."""

from goqueue.doors.http.operation import Operation
from goqueue.doors.http.routes.documents import documents
from goqueue.doors.http.routes.infrastructure import infrastructure
from goqueue.doors.http.routes.messages import messages
from goqueue.doors.http.routes.schema_config import schema_config
from goqueue.doors.http.routes.schemas import schemas
from goqueue.doors.http.routes.topics import topics

RESOURCES = (
    topics,
    messages,
    schemas,
    schema_config,
    infrastructure,
    documents,
)
OPERATIONS: list[Operation] = [operation for resource in RESOURCES for operation in resource.all]

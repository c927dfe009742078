"""Authorised operations (KIP-430): a bit for each that the client may do. Nobody is refused anything yet."""

from goqueue.doors.kafka.request import Request
from goqueue.model.access import Operation
from goqueue.wire.kafka.notation import INT32_MIN


def _bits(*operations: Operation) -> int:
    return sum(1 << each for each in operations)


_ON_ALL = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
_CHANGES = (Operation.CREATE, Operation.ALTER)
TOPIC_OPERATIONS = _bits(Operation.READ, Operation.WRITE, Operation.DELETE, *_CHANGES, *_ON_ALL)
GROUP_OPERATIONS = _bits(Operation.READ, Operation.DELETE, *_ON_ALL)
CLUSTER_OPERATIONS = _bits(Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE, *_CHANGES, *_ON_ALL)
NOT_ASKED_FOR = INT32_MIN


def operations_on_group(request: Request) -> int:
    """For answers that describe groups, if their client wants to know."""
    return GROUP_OPERATIONS if request.message.include_authorized_operations else NOT_ASKED_FOR

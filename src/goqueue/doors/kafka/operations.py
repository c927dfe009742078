"""Authorised operations (KIP-430): a bit for each that the client may do. Nobody is refused anything yet."""

from goqueue.doors.kafka.request import Request
from goqueue.wire.kafka.notation import INT32_MIN

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12
"""The numbers are Kafka's."""


def _bits(*operations: int) -> int:
    return sum(1 << each for each in operations)


TOPIC_OPERATIONS = _bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
GROUP_OPERATIONS = _bits(READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)
NOT_ASKED_FOR = INT32_MIN


def operations_on_group(request: Request) -> int:
    """For answers that describe groups, if their client wants to know."""
    return GROUP_OPERATIONS if request.message.include_authorized_operations else NOT_ASKED_FOR

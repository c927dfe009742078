"""Authorised operations (KIP-430): a bit for each that the rules allow the client."""

from collections.abc import Iterable, Mapping

from goqueue.doors.kafka.request import Request
from goqueue.model.access import THE_CLUSTER, Kind, Operation
from goqueue.wire.kafka.notation import INT32_MIN

_ON_ALL = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
_CHANGES = (Operation.CREATE, Operation.ALTER)
OPERATIONS: Mapping[Kind, tuple[Operation, ...]] = {
    Kind.TOPIC: (Operation.READ, Operation.WRITE, Operation.DELETE, *_CHANGES, *_ON_ALL),
    Kind.GROUP: (Operation.READ, Operation.DELETE, *_ON_ALL),
    Kind.CLUSTER: (Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE, *_CHANGES, *_ON_ALL),
}
"""That there are for each kind."""
NOT_ASKED_FOR = INT32_MIN


def bits(operations: Iterable[Operation]) -> int:
    return sum(1 << each for each in operations)


def operations_on(request: Request, kind: Kind, name: str) -> int:
    return bits(request.broker.allowed(kind, name, OPERATIONS[kind]))


def operations_on_cluster(request: Request) -> int:
    """For answers that describe the cluster, if their client wants to know."""
    is_asked = request.message.include_cluster_authorized_operations
    return operations_on(request, Kind.CLUSTER, THE_CLUSTER) if is_asked else NOT_ASKED_FOR


def operations_on_group(request: Request, name: str) -> int:
    """For answers that describe groups, likewise."""
    is_asked = request.message.include_authorized_operations
    return operations_on(request, Kind.GROUP, name) if is_asked else NOT_ASKED_FOR

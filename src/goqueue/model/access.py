"""Who may do what: kinds of resources, operations on them, and what an operation of an API needs. The words and numbers
are Kafka's, and hold for every API.
"""

from collections.abc import Hashable, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Protocol

import msgspec

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.schemas import RegistryCode, RegistryRefused


class Kind(StrEnum):
    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional id"
    SUBJECT = "subject"
    """Of the schema registry; Kafka has none."""
    TENANT = "tenant"
    """To act for, as somebody of the default one; Kafka has none."""


class Operation(IntEnum):
    ALL = 2
    """In a rule: every one of them."""
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


EVERY_NAME = "*"
"""Stands for all names of a kind: what is asked for by whoever reads a total."""
THE_CLUSTER = "kafka-cluster"
"""Kafka's name of the one resource of its kind."""

CODES: Mapping[Kind, Code] = {
    Kind.TOPIC: Code.TOPIC_AUTHORIZATION_FAILED,
    Kind.GROUP: Code.GROUP_AUTHORIZATION_FAILED,
    Kind.CLUSTER: Code.CLUSTER_AUTHORIZATION_FAILED,
    Kind.TRANSACTIONAL_ID: Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Kind.TENANT: Code.CLUSTER_AUTHORIZATION_FAILED,
}
FORBIDDEN: frozenset[Code] = frozenset(CODES.values())
CHANGES = frozenset({Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS})


class Permission:
    """What an operation of an API needs: for each kind of name that it touches, the operations on it. The first is
    asked of every such name; the others where they are done. Compared by identity: each operation has one in its table.
    """

    __slots__ = ("is_change", "needs")

    def __init__(self, needs: Mapping[Kind, Operation | tuple[Operation, ...]], *, is_change: bool = False) -> None:
        """`is_change`: somebody will ask who did this, though reading or writing is all that it needs."""
        self.needs: Mapping[Kind, tuple[Operation, ...]] = MappingProxyType(
            {kind: each if isinstance(each, tuple) else (each,) for kind, each in needs.items()}
        )
        assert all(self.needs.values()), "a kind without an operation"
        self.is_change = is_change or any(needed[0] in CHANGES for needed in self.needs.values())
        """It is in the audit trail before it is done."""

    def __repr__(self) -> str:
        told = (f"{kind.name}: {'+'.join(each.name for each in needed)}" for kind, needed in self.needs.items())
        return f"Permission({', '.join(told)})"

    def operation(self, kind: Kind, wanted: Operation | None = None) -> Operation | None:
        """What to ask for of a name; None: this was not declared."""
        declared = self.needs.get(kind, ())
        if wanted is None:
            return declared[0] if declared else None
        return wanted if wanted in declared else None


class Rule(msgspec.Struct, frozen=True):
    """What somebody may do, or may not, with what has a name or begins with it. One of Kafka's access control lists."""

    rule_id: str
    principal: str
    """`User:alice`, `Key:k7f3...`; `User:*` is everybody."""
    kind: Kind
    name: str
    """`*` is every name."""
    operation: Operation
    is_allowed: bool = True
    is_prefix: bool = False
    host: str = "*"
    """The address that the client has; `*` is any."""
    tenant: str = "default"
    """Whose: it is about principals and names of this tenant, as they are known there."""


EVERYBODY = "User:*"
ANY_HOST = "*"
ROLES = ("admin", "operator", "producer", "consumer", "viewer", "metrics")
"""Sets of rules that a user or a key is given by name; `model/grants.py` says what is in them."""
PREFIXED_ROLES = ("operator", "producer", "consumer", "viewer")
"""Those that may be given for names that begin alike: `producer:orders-*`."""

OPEN = Permission({})
"""For what anybody may have: health, versions, documents. It touches no name."""
KNOWN = Permission({})
"""For whoever has shown who they are. It touches no name."""


class Rights(Protocol):
    """What one principal may do."""

    @property
    def are_all(self) -> bool:
        """Nothing needs to be asked, now or later."""

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool: ...

    def alike(self, kind: Kind, operation: Operation) -> Hashable:
        """Whoever has the same is allowed this with the same names. True: with all of them."""


class AllRights:
    are_all = True

    def alike(self, kind: Kind, operation: Operation) -> Hashable:  # noqa: ARG002  whatever it is
        return True

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool:  # noqa: ARG002  whatever it is
        return True


class NoRights:
    are_all = False

    def alike(self, kind: Kind, operation: Operation) -> Hashable:  # noqa: ARG002  whatever it is
        return False

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool:  # noqa: ARG002  whatever it is
        return False


class SuspendedRights(NoRights):
    """Of everybody in a tenant that is suspended."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def refusal(kind: Kind, operation: Operation | None, name: str) -> GoQueueError:
    """The same words whether or not there is such a thing."""
    asked = "this request" if operation is None else operation.name
    of = f"all of kind {kind}" if name == EVERY_NAME else "the cluster" if kind is Kind.CLUSTER else f"{kind} {name!r}"
    words = f"{asked} is not allowed on {of}"
    if kind is Kind.SUBJECT:
        return RegistryRefused(RegistryCode.FORBIDDEN, words)
    return Refused(CODES[kind], words)

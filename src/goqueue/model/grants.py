"""What one principal may do, compiled from its roles and from the rules about it: Kafka's model. A rule that forbids
wins; what no rule allows is forbidden.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from goqueue.model.access import (
    ANY_HOST,
    EVERY_NAME,
    EVERYBODY,
    PREFIXED_ROLES,
    THE_CLUSTER,
    Kind,
    Operation,
    Rule,
)

ASKED_MAX = 10_000
"""Answers that are remembered."""

_READ, _WRITE, _CREATE, _DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
_ALTER, _DESCRIBE = Operation.ALTER, Operation.DESCRIBE
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
_CHANGES = (_CREATE, _DELETE, _ALTER, _ALTER_CONFIGS)
_LOOKS = (_DESCRIBE, _DESCRIBE_CONFIGS)

IMPLIED: Mapping[Operation, tuple[Operation, ...]] = {
    Operation.ALL: tuple(each for each in Operation if each is not Operation.ALL),
    _READ: (_DESCRIBE,),
    _WRITE: (_DESCRIBE,),
    _DELETE: (_DESCRIBE,),
    _ALTER: (_DESCRIBE,),
    _ALTER_CONFIGS: (_DESCRIBE_CONFIGS,),
}
"""What a rule that allows an operation allows besides."""

ROLE_OPERATIONS: Mapping[str, Mapping[Kind, tuple[Operation, ...]]] = {
    "admin": dict.fromkeys(Kind, (Operation.ALL,)),
    "operator": {
        Kind.TOPIC: (*_CHANGES, *_LOOKS),
        Kind.GROUP: (_DELETE, _ALTER_CONFIGS, *_LOOKS),
        Kind.TRANSACTIONAL_ID: (_DESCRIBE,),
        Kind.SUBJECT: (_READ, _WRITE, _DELETE, _ALTER_CONFIGS),
        Kind.CLUSTER: _LOOKS,
    },
    "producer": {
        Kind.TOPIC: (_WRITE,),
        Kind.TRANSACTIONAL_ID: (_WRITE,),
        Kind.SUBJECT: (_READ, _WRITE),
        Kind.CLUSTER: (Operation.IDEMPOTENT_WRITE,),
    },
    "consumer": {Kind.TOPIC: (_READ,), Kind.GROUP: (_READ,), Kind.SUBJECT: (_READ,)},
    "viewer": {
        **dict.fromkeys((Kind.TOPIC, Kind.GROUP, Kind.CLUSTER, Kind.TRANSACTIONAL_ID), _LOOKS),
        Kind.SUBJECT: (_READ, *_LOOKS),
    },
    "metrics": {Kind.CLUSTER: (_DESCRIBE,)},
}
"""Nobody but an admin alters the cluster: whoever may do that may give rights."""


NAMED = frozenset({Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.SUBJECT})
"""What a prefix of names can be about."""


def rules_of_role(role: str, principal: str) -> Iterator[Rule]:
    """With a prefix (`producer:orders-*`) for names that begin so, and nothing about the cluster: what there is in it
    has other names, too. An unknown role has none."""
    word, _, pattern = role.partition(":")
    for kind, operations in ROLE_OPERATIONS.get(word, {}).items():
        for operation in operations:
            if not pattern:
                yield Rule("", principal, kind, EVERY_NAME, operation)
            elif kind in NAMED and word in PREFIXED_ROLES:
                yield Rule("", principal, kind, pattern.removesuffix("*"), operation, is_prefix=True)


class _Names:
    """Of one kind and operation."""

    __slots__ = ("every", "literals", "prefixes")

    def __init__(self) -> None:
        self.every = False
        self.literals: set[str] = set()
        self.prefixes: tuple[str, ...] = ()

    def add(self, name: str, *, is_prefix: bool) -> None:
        if is_prefix:
            self.prefixes = (*self.prefixes, name)
        elif name == EVERY_NAME:
            self.every = True
        else:
            self.literals.add(name)

    def has(self, name: str) -> bool:
        return self.every or name in self.literals or name.startswith(self.prefixes)

    @property
    def told(self) -> Hashable:
        """Those of two are equal only if they have the same names."""
        return self.every or (frozenset(self.literals), frozenset(self.prefixes))


class Grants:
    """The rights of one principal at one address."""

    are_all = False
    """An admin's too: they may be taken away while something goes on."""

    def __init__(self, principal: str, host: str, roles: Iterable[str], rules: Iterable[Rule]) -> None:
        self._allowed: dict[tuple[Kind, Operation], _Names] = {}
        self._denied: dict[tuple[Kind, Operation], _Names] = {}
        self._asked: dict[tuple[Kind, Operation, str], bool] = {}
        for role in roles:
            for rule in rules_of_role(role, principal):
                self._add(rule)
        for rule in rules:
            if rule.principal in (principal, EVERYBODY) and rule.host in (ANY_HOST, host):
                self._add(rule)

    def _add(self, rule: Rule) -> None:
        table = self._allowed if rule.is_allowed else self._denied
        if rule.is_allowed or rule.operation is Operation.ALL:
            operations = (rule.operation, *IMPLIED.get(rule.operation, ()))
        else:
            operations = (rule.operation,)
        for operation in operations:
            for implied in (operation, *(IMPLIED.get(operation, ()) if rule.is_allowed else ())):
                table.setdefault((rule.kind, implied), _Names()).add(rule.name, is_prefix=rule.is_prefix)

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool:
        asked = kind, operation, name
        found = self._asked.get(asked)
        if found is None:
            if len(self._asked) >= ASKED_MAX:
                self._asked.clear()
            found = self._asked[asked] = self._look_up(kind, operation, name)
        return found

    def alike(self, kind: Kind, operation: Operation) -> Hashable:
        asked = [(kind, operation), (Kind.CLUSTER, _CREATE)] if operation is _CREATE else [(kind, operation)]
        tables = [table.get(each) for each in asked for table in (self._allowed, self._denied)]
        told = tuple(False if names is None else names.told for names in tables)
        return True if told == (True, False) else told

    def _look_up(self, kind: Kind, operation: Operation, name: str) -> bool:
        if kind is Kind.CLUSTER:
            name = THE_CLUSTER  # there is one
        denied = self._denied.get((kind, operation))
        if denied is not None and (name == EVERY_NAME or denied.has(name)):
            return False  # a total of all names has those that are forbidden in it
        allowed = self._allowed.get((kind, operation))
        if allowed is not None and (allowed.every if name == EVERY_NAME else allowed.has(name)):
            return True
        if kind is Kind.TOPIC and operation is _CREATE:
            return self._look_up(Kind.CLUSTER, _CREATE, THE_CLUSTER)
        return (
            kind is Kind.CLUSTER and operation is Operation.IDEMPOTENT_WRITE and (Kind.TOPIC, _WRITE) in self._allowed
        )

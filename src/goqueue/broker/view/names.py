"""Names in what is passed to the broker: found by the words that parameters and fields have, which are the same in all
services. So a new command is checked like those before it, and one that says it otherwise is refused.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec

from goqueue.broker.view.scope import Scope
from goqueue.machines.controller import AddPartitions, CreateTopic, DeleteTopic, Reassign, SetOptions
from goqueue.machines.schemas.facts import DeleteSubject, DeleteVersion, SetLevel, SetMode
from goqueue.machines.transactions.commands import EndTogether
from goqueue.model.access import EVERY_NAME, Kind, Operation
from goqueue.model.moves import Move
from goqueue.model.transactions import Producer

TOPIC, GROUP, TRANSACTIONAL_ID, SUBJECT = Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.SUBJECT

WORDS: Mapping[str, Kind] = {
    "topic": TOPIC,
    "topics": TOPIC,
    "source": TOPIC,
    "to": TOPIC,
    "group": GROUP,
    "group_id": GROUP,
    "group_ids": GROUP,
    "first_id": GROUP,
    "second_id": GROUP,
    "fork_id": GROUP,
    "fork_as": GROUP,
    "transactional_id": TRANSACTIONAL_ID,
    "subject": SUBJECT,
}
"""Of parameters and fields that are names, or several."""
PLACES = frozenset({"place", "places", "partitions", "spot", "offsets", "revoked"})
"""Those with a topic and a partition of it: a pair, or a type that has both as fields."""
HOLDERS = frozenset({"command", "request", "wanted", "wants", "who", "producer", "writer", "key"})
"""Those whose fields have names."""

Visit = Callable[[Scope, Any], Any]


def _named(kind: Kind, operation: Operation | None = None, field: str = "") -> Visit:
    """The name itself, or that in a field."""

    def visit(scope: Scope, value: Any) -> Any:
        name = getattr(value, field) if field else value
        full = scope.admit(kind, name, operation)
        return value if full is name else _with(value, {field: full})

    return visit


def _end_together(scope: Scope, command: EndTogether) -> EndTogether:
    """The key is the writer's own."""
    for name, *_ in command.transactions:
        scope.admit(TRANSACTIONAL_ID, name)
    return command


def _producer(scope: Scope, producer: Producer) -> Producer:
    """One that is known by its number only might be anybody's."""
    scope.admit(TRANSACTIONAL_ID, producer.transactional_id or EVERY_NAME)
    return producer


BY_TYPE: Mapping[type, Visit] = {
    Move: _named(TOPIC, field="source"),
    Producer: _producer,
    AddPartitions: _named(TOPIC, Operation.ALTER, "name"),
    CreateTopic: _named(TOPIC, Operation.CREATE, "name"),
    DeleteTopic: _named(TOPIC, Operation.DELETE, "name"),
    Reassign: _named(TOPIC, Operation.ALTER, "name"),
    SetOptions: _named(TOPIC, Operation.ALTER_CONFIGS, "name"),
    DeleteSubject: _named(SUBJECT, Operation.DELETE, "subject"),
    DeleteVersion: _named(SUBJECT, Operation.DELETE, "subject"),
    SetLevel: _named(SUBJECT, Operation.ALTER_CONFIGS, "subject"),
    SetMode: _named(SUBJECT, Operation.ALTER_CONFIGS, "subject"),
    EndTogether: _end_together,
}
"""Commands that do something of their own to a name."""


def visitor(word: str) -> Visit | None:
    """How to treat an argument of this name; None: it names nothing."""
    kind = WORDS.get(word)
    if kind is not None:
        return lambda scope, value: _names(scope, kind, value)
    if word in PLACES:
        return lambda scope, value: _all(scope, value, _place)
    if word in HOLDERS:
        return lambda scope, value: _all(scope, value, _holder)
    return None


def _names(scope: Scope, kind: Kind, value: Any) -> Any:
    if value == "" and kind is SUBJECT:  # what holds for those that say nothing
        scope.admit(kind, EVERY_NAME)
    if not value or isinstance(value, int):
        return value
    return scope.admit(kind, value) if isinstance(value, str) else _each(value, lambda each: _names(scope, kind, each))


def _all(scope: Scope, value: Any, visit: Visit) -> Any:
    """One, or each of several."""
    is_one = isinstance(value, str | bytes) or not isinstance(value, Iterable) or _fields(value) or _is_pair(value)
    return visit(scope, value) if is_one else _each(value, lambda each: visit(scope, each))


def _each(value: Any, visit: Callable[[Any], Any]) -> Any:
    """As it was, if all of them are."""
    if isinstance(value, Mapping):
        changed = {visit(each): of for each, of in value.items()}
        return value if changed == value else changed
    several = value if isinstance(value, Collection) else list(value)
    visited = [visit(each) for each in several]
    return several if all(before is after for before, after in zip(several, visited)) else visited


def _place(scope: Scope, value: Any) -> Any:
    if isinstance(value, str):  # where a transaction may join: a group
        return scope.admit(GROUP, value)
    if _is_pair(value):
        scope.admit(TOPIC, value[0])
        return value
    return _holder(scope, value)


def _holder(scope: Scope, value: Any) -> Any:
    """Whatever has names in its fields. One without any is taken as it is: it may tell what is wanted of a name that
    stands beside it."""
    special = BY_TYPE.get(type(value))
    if special is not None:
        return special(scope, value)
    changes = {}
    for field in _fields(value):
        visit = visitor(field)
        if visit is not None:
            before = getattr(value, field)
            after = visit(scope, before)
            if after is not before:
                changes[field] = after
    return _with(value, changes) if changes else value


def _is_pair(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and isinstance(value[0], str)


def _fields(value: Any) -> tuple[str, ...]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if isinstance(value, tuple):
        return getattr(value, "_fields", ())
    return tuple(each.name for each in fields(value)) if is_dataclass(value) else ()


def _with(value: Any, changes: Mapping[str, Any]) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    changed: Any = replace(value, **changes) if not hasattr(value, "_replace") else value._replace(**changes)
    return changed

"""Names in what is passed to the broker: found by the words that parameters and fields have, which are the same in all
services. So a new command is checked like those before it, and one that says it otherwise is refused.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from goqueue.broker.view.fields import fields_of, with_fields
from goqueue.broker.view.scope import Scope
from goqueue.broker.view.shown import full_regex
from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic, Reassign, SetOptions
from goqueue.machines.groups.classic.payloads import renamed_assignment, renamed_subscription
from goqueue.machines.groups.commands import GroupProtocol, JoinGroup, SyncGroup
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat
from goqueue.machines.schemas.facts import DeleteSubject, DeleteVersion, SetLevel, SetMode
from goqueue.machines.transactions.commands import EndTogether
from goqueue.model.access import Kind, Operation
from goqueue.model.errors import InvalidOption
from goqueue.model.names import check_topic_name
from goqueue.model.recurring import Recurring
from goqueue.model.schemas import Reference
from goqueue.model.tenancy import MARK
from goqueue.model.topics import Topic
from goqueue.model.transactions import Producer
from goqueue.records.redrives import RedriveRequest

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
SCHEDULE = "schedule"
"""The name of one that recurs, on which there is no right: what counts is its topic."""
PLACES = frozenset({"place", "places", "partitions", "spot", "spots", "offsets", "revoked"})
"""Those with a topic and a partition of it: a pair, or a type that has both as fields."""
HOLDERS = frozenset(
    {"command", "given", "request", "references", "wanted", "wants", "who", "producer", "writer", "key"}
)
"""Those whose fields have names."""
WIDE_WORDS: Mapping[str, Kind] = {**WORDS, "subscribed_topic_names": TOPIC}
WIDE_HOLDERS = HOLDERS | {"leased"}
"""Where there are several tenants names are mapped that need no right of their own, too."""

OPTION_RIGHTS: Mapping[str, tuple[Kind, Operation]] = {
    "dead.letter.topic": (TOPIC, Operation.WRITE),
    "schema.subject": (SUBJECT, Operation.READ),
}
"""Options that name something else: what the broker does there for a topic, whoever sets them has to be allowed."""
OF_TOPIC = "{topic}"
"""In an option that names a subject."""

Visit = Callable[[Scope, Any], Any]


def _named(kind: Kind, operation: Operation | None = None, field: str = "") -> Visit:
    """The name itself, or that in a field."""

    def visit(scope: Scope, value: Any) -> Any:
        name = getattr(value, field) if field else value
        full = scope.admit(kind, name, operation)
        return value if full is name else with_fields(value, {field: full})

    return visit


def _topic(operation: Operation) -> Visit:
    """A topic that is made or changed. Names in its options are of the same tenant."""
    named = _named(TOPIC, operation, "name")

    def visit(scope: Scope, command: Any) -> Any:
        named_command = named(scope, command)
        if MARK in command.name:  # what is kept may have it, and what is asked for may not
            check_topic_name(command.name)
        field = "overrides" if operation is Operation.CREATE else "changes"
        options = getattr(command, field)
        given = {name: options[name] for name in OPTION_RIGHTS if isinstance(options.get(name), str)}
        for name, text in given.items():
            if text and OF_TOPIC not in text:
                kind, needed = OPTION_RIGHTS[name]
                scope.admit(kind, text, needed)
        full = {name: _full_option(scope, text) for name, text in given.items()}
        return named_command if full == given else with_fields(named_command, {field: {**options, **full}})

    return visit


def _full_option(scope: Scope, text: str) -> str:
    """A name, or how it is made of that of the topic, which is full already."""
    if not text or (text.startswith(OF_TOPIC) and not scope.tenancy.is_default):
        return text
    if OF_TOPIC in text and not scope.tenancy.is_default:
        raise InvalidOption(f"{text!r} has to begin with {OF_TOPIC}, or not to hold it")
    return scope.renamed(text)


def _redrive(scope: Scope, request: RedriveRequest) -> RedriveRequest:
    """Dead letters are read, and written to where they go."""
    topic = scope.admit(TOPIC, request.topic)
    target = scope.admit(TOPIC, request.to or request.topic, Operation.WRITE)
    changed: RedriveRequest = request._replace(topic=topic, to=None if request.to is None else target)
    return changed


def _end_together(scope: Scope, command: EndTogether) -> EndTogether:
    """The key is the writer's own."""
    full = tuple((scope.admit(TRANSACTIONAL_ID, name), *rest) for name, *rest in command.transactions)
    changed: EndTogether = with_fields(command, {"transactions": full, "key": scope.renamed(command.key)})
    return command if changed == command else changed


def _recurring(scope: Scope, wanted: Recurring) -> Recurring:
    """Its name is one of the tenant's, too."""
    changed: Recurring = with_fields(_by_fields(scope, wanted), {"name": scope.renamed(wanted.name)})
    return changed


def _producer(scope: Scope, producer: Producer) -> Producer:
    """One that is known by its number only might be anybody's. Whose it is a tenant's port has looked up before."""
    if not producer.transactional_id:
        scope.admit_total(TRANSACTIONAL_ID)
        return producer
    full = scope.admit(TRANSACTIONAL_ID, producer.transactional_id)
    changed: Producer = producer if full == producer.transactional_id else producer._replace(transactional_id=full)
    return changed


BY_TYPE: Mapping[type, Visit] = {
    Producer: _producer,
    AddPartitions: _named(TOPIC, Operation.ALTER, "name"),
    CreateTopic: _topic(Operation.CREATE),
    DeleteTopic: _named(TOPIC, Operation.DELETE, "name"),
    Reassign: _named(TOPIC, Operation.ALTER, "name"),
    SetOptions: _topic(Operation.ALTER_CONFIGS),
    DeleteSubject: _named(SUBJECT, Operation.DELETE, "subject"),
    DeleteVersion: _named(SUBJECT, Operation.DELETE, "subject"),
    SetLevel: _named(SUBJECT, Operation.ALTER_CONFIGS, "subject"),
    SetMode: _named(SUBJECT, Operation.ALTER_CONFIGS, "subject"),
    EndTogether: _end_together,
    RedriveRequest: _redrive,
    Reference: _named(SUBJECT, Operation.READ, "subject"),
}
"""Commands that do something of their own to a name."""


def _join(scope: Scope, command: JoinGroup) -> JoinGroup:
    """Topics stand in what members of a classic group tell each other: the broker reads that, too."""
    protocols = tuple(
        GroupProtocol(each.name, renamed_subscription(each.metadata, scope.renamed)) for each in command.protocols
    )
    changed: JoinGroup = with_fields(_by_fields(scope, command), {"protocols": protocols})
    return changed


def _sync(scope: Scope, command: SyncGroup) -> SyncGroup:
    assignments = tuple((member, renamed_assignment(each, scope.renamed)) for member, each in command.assignments)
    changed: SyncGroup = with_fields(_by_fields(scope, command), {"assignments": assignments})
    return changed


def _heartbeat(scope: Scope, command: ConsumerHeartbeat) -> ConsumerHeartbeat:
    regex = command.subscribed_topic_regex
    changes: dict[str, Any] = {}
    if regex:
        scope.renamed(regex)  # one that begins like another tenant's names would match them
        changes["subscribed_topic_regex"] = full_regex(scope.tenancy, regex)
    if command.classic_protocols:
        changes["classic_protocols"] = tuple(
            GroupProtocol(each.name, renamed_subscription(each.metadata, scope.renamed))
            for each in command.classic_protocols
        )
    changed: ConsumerHeartbeat = with_fields(_by_fields(scope, command), changes)
    return changed


WIDE_BY_TYPE: Mapping[type, Visit] = {
    **BY_TYPE,
    JoinGroup: _join,
    SyncGroup: _sync,
    ConsumerHeartbeat: _heartbeat,
    Recurring: _recurring,
}


def visitor(word: str, *, is_wide: bool = False) -> Visit | None:
    """How to treat an argument of this name; None: it names nothing. `is_wide`: there are several tenants."""
    kind = (WIDE_WORDS if is_wide else WORDS).get(word)
    if kind is not None:
        return lambda scope, value: _names(scope, kind, value)
    if word == SCHEDULE:
        return lambda scope, value: scope.renamed(value)
    if word in PLACES:
        return lambda scope, value: _all(scope, value, _place)
    if word in (WIDE_HOLDERS if is_wide else HOLDERS):
        return lambda scope, value: _all(scope, value, _holder)
    return None


def _names(scope: Scope, kind: Kind, value: Any) -> Any:
    if value == "" and kind is SUBJECT:  # what holds for those that say nothing
        scope.admit_total(kind)
        return scope.tenancy.prefix
    if not value or isinstance(value, int | Topic):
        return value
    return scope.admit(kind, value) if isinstance(value, str) else _each(value, lambda each: _names(scope, kind, each))


def _all(scope: Scope, value: Any, visit: Visit) -> Any:
    """One, or each of several."""
    is_one = isinstance(value, str | bytes) or not isinstance(value, Iterable) or fields_of(value) or _is_pair(value)
    return visit(scope, value) if is_one else _each(value, lambda each: visit(scope, each))


def _each(value: Any, visit: Callable[[Any], Any]) -> Any:
    """As it was, if all of them are."""
    if isinstance(value, Mapping):
        changed = {visit(each): of for each, of in value.items()}
        return value if changed == value else changed
    several = value if isinstance(value, Collection) else list(value)
    visited = [visit(each) for each in several]
    if all(before is after for before, after in zip(several, visited)):
        return several
    return type(several)(visited) if type(several) in (tuple, set, frozenset) else visited  # type: ignore[call-arg]


def _place(scope: Scope, value: Any) -> Any:
    if isinstance(value, str):  # where a transaction may join: a group
        return scope.admit(GROUP, value)
    if _is_pair(value):
        full = scope.admit(TOPIC, value[0])
        return value if full is value[0] else (full, value[1])
    return _holder(scope, value)


def _holder(scope: Scope, value: Any) -> Any:
    """Whatever has names in its fields. One without any is taken as it is: it may tell what is wanted of a name that
    stands beside it."""
    special = (BY_TYPE if scope.tenancy.is_all else WIDE_BY_TYPE).get(type(value))
    return _by_fields(scope, value) if special is None else special(scope, value)


def _by_fields(scope: Scope, value: Any) -> Any:
    changes = {}
    for field in fields_of(value):
        visit = visitor(field, is_wide=not scope.tenancy.is_all)
        if visit is not None:
            before = getattr(value, field)
            after = visit(scope, before)
            if after is not before:
                changes[field] = after
    return with_fields(value, changes) if changes else value


def _is_pair(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and isinstance(value[0], str)

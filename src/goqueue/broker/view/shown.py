"""Names on the way back: what a service tells one tenant has that tenant's names as they are kept, and is told with the
names that the tenant knows. Whose they are was decided on the way in: a service is asked about one tenant's names.
"""

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

import msgspec

from goqueue.broker.view.fields import fields_of, with_fields
from goqueue.machines.groups.classic.payloads import renamed_assignment, renamed_subscription
from goqueue.machines.groups.commands import DescribedMember, JoinedMember, SyncReply
from goqueue.machines.groups.consumer.facts import ConsumerMember
from goqueue.model.errors import GoQueueError
from goqueue.model.tenancy import Tenancy
from goqueue.model.topics import Topic

SAID_BY_CLIENTS = frozenset(
    {"client_id", "client_host", "consumer", "headers", "instance_id", "member_id", "metadata", "text"}
)
"""Fields with words of clients, which may look like names and are none."""
NAMING_RECORDS = frozenset({"goqueue.records.replays", "goqueue.records.redrives"})
SENTENCES = frozenset({"answer", "detail", "error", "message", "reason"})
"""Fields in which a name may stand among other words."""
NAMING_OPTIONS = ("dead.letter.topic", "schema.subject")
"""Options of topics that are names."""


def shown(tenancy: Tenancy, value: Any) -> Any:  # noqa: PLR0911  one for each
    """The same with plain names; what holds none is the same object."""
    match value:
        case str():
            return tenancy.plain(value) if type(value) is str and value.startswith(tenancy.prefix) else value
        case None | bool() | int() | float() | bytes() | memoryview() | Enum():
            return value
        case GoQueueError():
            return shown_error(tenancy, value)
        case list() | set() | frozenset():
            return _changed(value, [shown(tenancy, each) for each in value], type(value))
        case Mapping():
            pairs = {shown(tenancy, key): shown(tenancy, each) for key, each in value.items()}
            return value if pairs == value else pairs
        case JoinedMember() | SyncReply() | DescribedMember() | ConsumerMember() | Topic():
            return _special(tenancy, value)
    if type(value) is tuple:
        return _changed(value, [shown(tenancy, each) for each in value], tuple)
    return value if _is_of_records(value.__class__) else _shown_fields(tenancy, value)


@lru_cache(maxsize=1000)
def _is_of_records(kind: Hashable) -> bool:
    """What producers have written is theirs."""
    module = kind.__module__
    return module.startswith("goqueue.records.") and module not in NAMING_RECORDS


def shown_error(tenancy: Tenancy, error: GoQueueError) -> GoQueueError:
    text = str(error)
    if tenancy.prefix not in text:
        return error
    return said_otherwise(error, text.replace(tenancy.prefix, ""))


def said_otherwise(error: GoQueueError, text: str) -> GoQueueError:
    """The same error in other words."""
    other: GoQueueError = type(error).__new__(type(error), text)
    other.__dict__.update(vars(error))
    return other


def shown_topic(tenancy: Tenancy, topic: Topic) -> Topic:
    overrides = dict(topic.overrides)
    for name in NAMING_OPTIONS:
        if name in overrides:
            overrides[name] = overrides[name].removeprefix(tenancy.prefix)
    changed: Topic = with_fields(topic, {"name": tenancy.plain(topic.name), "overrides": overrides})
    return changed


def _shown_fields(tenancy: Tenancy, value: Any) -> Any:
    """Of a type that is made of fields. Anything else is a part of the broker, and holds what it holds."""
    changes = {}
    for field in fields_of(value):
        before = getattr(value, field)
        if field in SAID_BY_CLIENTS:
            continue
        is_sentence = field in SENTENCES and isinstance(before, str)
        after = before.replace(tenancy.prefix, "") if is_sentence else shown(tenancy, before)
        if after is not before and after != before:
            changes[field] = after
    return with_fields(value, changes) if changes else value


def _special(tenancy: Tenancy, value: Any) -> Any:
    """Types with names inside of something else."""
    plain = _plain(tenancy)
    match value:
        case Topic():
            return shown_topic(tenancy, value) if tenancy.owns(value.name) else value
        case JoinedMember():
            return with_fields(value, {"metadata": renamed_subscription(value.metadata, plain)})
        case SyncReply():
            return with_fields(value, {"assignment": renamed_assignment(value.assignment, plain)})
        case DescribedMember():
            metadata = renamed_subscription(value.metadata, plain)
            return with_fields(value, {"metadata": metadata, "assignment": renamed_assignment(value.assignment, plain)})
    names = tuple(plain(each) for each in value.topic_names)
    regex = None if value.topic_regex is None else plain_regex(tenancy, value.topic_regex)
    return msgspec.structs.replace(value, topic_names=names, topic_regex=regex)


def full_regex(tenancy: Tenancy, regex: str) -> str:
    """Matches names that are kept where `regex` matches plain ones."""
    return f"{tenancy.prefix}(?:{regex})" if regex and tenancy.prefix else regex


def plain_regex(tenancy: Tenancy, regex: str) -> str:
    return regex.removeprefix(f"{tenancy.prefix}(?:").removesuffix(")") if regex.startswith(tenancy.prefix) else regex


def _plain(tenancy: Tenancy) -> Callable[[str], str]:
    return lambda name: name.removeprefix(tenancy.prefix)


def _changed(value: Any, after: list[Any], kind: Callable[[list[Any]], Any]) -> Any:
    return value if all(was is now for was, now in zip(value, after)) else kind(after)

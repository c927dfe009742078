"""What the audit trail tells of a request: the names in it, and nothing that could be a secret."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

NAMES = frozenset({"name", "topic_name", "resource_name", "entity_name", "group_id", "principal", "transactional_id"})
NAMES_MAX = 100


def names_in(message: Any) -> list[str]:
    return list(islice(_names(message), NAMES_MAX))


def _names(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for each in part:
            yield from _names(each) if not isinstance(each, str) else (each,)
    elif isinstance(part, Struct):
        for field in fields(part):
            value = getattr(part, field.name)
            if field.name in NAMES and isinstance(value, str):
                yield value
            elif isinstance(value, list | Struct):
                yield from _names(value)

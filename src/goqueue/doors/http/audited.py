"""What the audit trail tells of a request: names, and nothing that could be a secret."""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import fields as fields_of

from goqueue.wire.asgi import Scope

NAMES = ("name", "topic", "group", "subject", "user", "client_id", "principal", "resource_name", "operation")
"""Fields whose values say what it is about."""


def named(parts: Iterable[Any]) -> list[str]:
    """Of a query and a body; a path is told as it is."""
    found = [getattr(part, each, None) for part in parts if isinstance(part, Struct) for each in NAMES]
    return [each for each in found if isinstance(each, str)]


def changed(body: Any) -> tuple[str, ...]:
    """Names of the fields that were given."""
    given = ((each.encode_name, getattr(body, each.name)) for each in fields_of(body))
    return tuple(name for name, value in given if value is not None and value is not UNSET)


def host_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""

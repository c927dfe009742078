"""Every operation of the HTTP API, a module for each noun; `table` has them all.

A module is imported when it is first asked for: a command that asks one question does not wait for the types of all.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goqueue.wire.rest.operations import (
        acks,
        admin,
        dead_letters,
        delays,
        groups,
        infrastructure,
        leases,
        messages,
        replays,
        schemas,
        topics,
        traces,
    )

__all__ = [
    "acks",
    "admin",
    "dead_letters",
    "delays",
    "groups",
    "infrastructure",
    "leases",
    "messages",
    "replays",
    "schemas",
    "topics",
    "traces",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")

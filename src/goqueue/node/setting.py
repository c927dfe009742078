"""How a setting is declared: its default, what may be said, and what it means."""

from dataclasses import field
from typing import TypeVar

from goqueue.node.values import Kind

T = TypeVar("T")


def setting(default: T, kind: Kind, help_text: str) -> T:
    made: T = field(default=default, metadata={"kind": kind, "help": help_text})
    return made

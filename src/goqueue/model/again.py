"""Repeating a closure without a reference cycle: one that names itself holds itself, and only the cycle collector would
free it and all that it holds.
"""

from collections.abc import Callable
from typing import Any


class Again:
    """`Again(step)(1)` calls `step(again, 1)`, where `again(2)` calls `step(again, 2)`, at once or later."""

    __slots__ = ("_step",)

    def __init__(self, step: Callable[..., Any]) -> None:
        self._step = step

    def __call__(self, *arguments: Any) -> Any:
        return self._step(self, *arguments)

"""Where the functions are that commands name. What is not asked for is not imported."""

from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

from goqueue.cli.call import Call

Runner = Callable[[Call], int | Coroutine[Any, Any, int | None] | None]


def runner(name: str) -> Runner:
    module, _, function = name.partition(".")
    found: Runner = getattr(import_module(f"goqueue.cli.run.{module}"), function)
    return found

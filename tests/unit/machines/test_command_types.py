"""Every command says what its reply is, so that mypy knows what a submit answers."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any, get_args

from goqueue import machines
from goqueue.broker.groups.groups import Groups
from goqueue.machines.groups.commands import CommitReply, Heartbeat
from goqueue.machines.machine import Command
from goqueue.model.errors import GoQueueError


def commands(of: type[Any] = Command) -> Iterator[type[Any]]:
    for each in of.__subclasses__():
        yield each
        yield from commands(each)


def test_every_command_names_the_type_of_its_reply() -> None:
    for module in pkgutil.walk_packages(machines.__path__, "goqueue.machines."):
        importlib.import_module(module.name)
    ours = [each for each in commands() if each.__module__.startswith("goqueue.machines.")]
    replies = {
        f"{each.__module__}.{each.__name__}": get_args(base)[0]
        for each in ours
        for base in each.__orig_bases__
        if each.__name__ not in ("GroupCommand", "PlaceCommand")
    }
    assert len(replies) > 40
    assert [name for name, reply in replies.items() if reply is Any] == []


def mypy_refuses(groups: Groups, told: Callable[[CommitReply | GoQueueError], None]) -> None:
    """Not to be run. If mypy took it, it would complain about a comment that nobody needs."""
    groups.submit(Heartbeat("g", 1, "m"), told)  # type: ignore[arg-type]

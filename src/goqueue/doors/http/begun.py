"""A coroutine that is begun before anybody prepares to wait for it: most need not wait, and preparing costs more than
they do."""

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Begun(NamedTuple):
    is_done: bool
    result: Any
    """Of one that is done; else what it waits for, which `go_on` needs."""


def begin(work: Coroutine[Any, Any, Any]) -> Begun:
    """As far as it goes without waiting, in the task that will wait for it."""
    try:
        return Begun(False, work.send(None))
    except StopIteration as end:
        return Begun(True, end.value)


@coroutine
def go_on(work: Coroutine[Any, Any, T], begun: Begun) -> Generator[Any, Any, T]:
    """What `await work` would do from there on."""
    waited = begun.result
    while True:
        try:
            try:
                sent = yield waited
            except BaseException as error:  # noqa: BLE001  whatever it is, it is for who waits
                waited = work.throw(error)  # not kept: its traceback has this frame, which would be a cycle
            else:
                waited = work.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result

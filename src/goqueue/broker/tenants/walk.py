"""A walk: questions and commands one after the other, each by callback, written as one function."""

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeAlias, TypeVar

from goqueue.model.errors import GoQueueError

T = TypeVar("T")
Submit: TypeAlias = Callable[[Callable[[Any], None]], None]
"""Something to be asked, given where to put its answer."""
Walk: TypeAlias = Generator[Submit, Any, T]
"""Yields what it asks and is sent the answer. An error of ours is thrown into it."""


class Walking(Generic[T]):
    """Many answers come at once: they are taken one after the other, and not from within each other."""

    def __init__(self, walk: Walk[T], on_end: Callable[[T | GoQueueError], None]) -> None:
        self._walk = walk
        self._on_end = on_end
        self._answers: list[Any] = [None]
        self._is_going = False

    def go_on(self) -> None:
        if self._is_going:
            return
        self._is_going = True
        try:
            while self._answers:
                self._take(self._answers.pop())
        finally:
            self._is_going = False

    def _take(self, answer: Any) -> None:
        try:
            failed = isinstance(answer, GoQueueError)
            submit = self._walk.throw(answer.kept()) if failed else self._walk.send(answer)
            submit(self._answered)
        except StopIteration as end:
            self._on_end(end.value)
        except GoQueueError as error:
            self._walk.close()
            self._on_end(error.kept())

    def _answered(self, answer: Any) -> None:
        self._answers.append(answer)
        self.go_on()


def walk(steps: Walk[T], on_end: Callable[[T | GoQueueError], None]) -> None:
    Walking(steps, on_end).go_on()

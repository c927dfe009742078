"""How long a request keeps the event loop from others: the time of its steps, without what it waits for in between."""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from goqueue.broker.accounts.quotas import PERCENT, Allowance
from goqueue.model.quotas import TIME

T = TypeVar("T")


Spent = Callable[[float, float], None]
"""Told when a step began and when it ended."""


class Steps(Generic[T]):
    """The same coroutine, each step of which is timed: whoever waits for it drives it, in the same task."""

    __slots__ = ("_now_s", "_spent", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], now_s: Callable[[], float], spent: Spent) -> None:
        self._work = work
        self._now_s = now_s
        self._spent = spent

    def __await__(self) -> Generator[Any, Any, T]:
        work, now_s, spent = self._work, self._now_s, self._spent
        given: Any = None
        failed: BaseException | None = None
        while True:
            began_s = now_s()
            try:
                waits_for = work.send(given) if failed is None else work.throw(failed)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                failed = None
                spent(began_s, now_s())
            try:
                given = yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001  it is the coroutine's own
                failed = error


async def awaited(work: Awaitable[T]) -> T:
    return await work


async def measured(work: Awaitable[T], allowance: Allowance | None, now_s: Callable[[], float]) -> T:
    """Its steps are charged as they are made: what lasts, such as a stream, owes while it goes on."""
    if allowance is None or not allowance.measures_time:
        return await work

    def spent(began_s: float, ended_s: float) -> None:
        allowance.use(TIME, (ended_s - began_s) * PERCENT)

    return await Steps(awaited(work), now_s, spent)

"""How long a request keeps the event loop from others: the time of its steps, without what it waits for in between."""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from goqueue.broker.accounts.quotas import PERCENT, Allowance
from goqueue.model.quotas import TIME

T = TypeVar("T")


class _Steps(Generic[T]):
    """The same coroutine, each step of which is timed: whoever waits for it drives it, in the same task."""

    def __init__(self, work: Coroutine[Any, Any, T], now_s: Callable[[], float], allowance: Allowance) -> None:
        self._work = work
        self._now_s = now_s
        self._allowance = allowance

    def __await__(self) -> Generator[Any, Any, T]:
        given: Any = None
        failed: BaseException | None = None
        while True:
            started_s = self._now_s()
            try:
                waits_for = self._work.send(given) if failed is None else self._work.throw(failed)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                failed = None
                self._allowance.use(TIME, (self._now_s() - started_s) * PERCENT)
            try:
                given = yield waits_for
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:  # noqa: BLE001  it is the coroutine's own
                failed = error


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def measured(work: Awaitable[T], allowance: Allowance | None, now_s: Callable[[], float]) -> T:
    """Its steps are charged as they are made: what lasts, such as a stream, owes while it goes on."""
    if allowance is None or not allowance.measures_time:
        return await work
    return await _Steps(_awaited(work), now_s, allowance)

"""Long work in turns: looking at 100,000 records takes up to a second, and nobody else may wait longer than a few
milliseconds. The work is a generator that yields where others may go first. Who cannot wait runs it at once.
"""

from collections import deque
from collections.abc import Callable, Generator, Hashable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from goqueue.model.errors import GoQueueError
from goqueue.runtime.aside import Aside, at_once
from goqueue.runtime.clock import Clock

T = TypeVar("T")
Work: TypeAlias = Callable[[], Any]


class Waiting(NamedTuple):
    """Somebody calls when it is time to go on. Who cannot wait goes on at once."""

    begin: Callable[[Callable[[], None]], None]


Steps: TypeAlias = Generator[Work | Waiting | None, Any, T]
"""Yields None: others may go first. Yields a function: it takes long, touches nothing of the broker's, and may run in
another thread; its result is what the yield gives."""
OnDone: TypeAlias = Callable[[Any], None]
"""Gets the result, or the error that the work ended with."""

ACTIVE_MAX = 4
"""Works under way at once; each may hold a batch of `max.unpacked.bytes` in memory. Others wait, with what they hold
after their first turn."""


def run_at_once(steps: Steps[T]) -> T:
    try:
        work = next(steps)
        while True:
            work = steps.send(None if work is None or isinstance(work, Waiting) else work())
    except StopIteration as end:
        result: T = end.value
        return result


class Turns:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._aside: Aside = at_once
        self._active: set[_Run] = set()
        self._waiting: deque[_Run] = deque()
        self._parked: set[_Run] = set()
        """Somebody else tells them when to go on."""
        self._in_order: dict[Hashable, deque[_Run]] = {}
        """Invariant: the first of each is under way."""
        self._has_stopped = False

    def work_aside(self, aside: Aside) -> None:
        """From now on; before that it is done at once."""
        self._aside = aside

    @property
    def count(self) -> int:
        """Works that have begun and not ended."""
        return len(self._active) + len(self._waiting) + len(self._parked)

    def run(self, steps: Steps[Any], on_done: OnDone, order: Hashable = None) -> None:
        """The first turn is now: work that needs no other is done when this returns. Works of one `order` begin when
        those before them have ended.
        """
        run = _Run(steps, on_done, order)
        if order is not None:
            before = self._in_order.setdefault(order, deque())
            before.append(run)
            if len(before) > 1:
                return
        self._go_on(run)

    def stop(self) -> None:
        """What is not done is given up: nothing of it is kept, and nobody is told."""
        self._has_stopped = True
        ours = [*self._active, *self._waiting, *self._parked]
        for run in [*ours, *(each for runs in self._in_order.values() for each in runs)]:
            run.steps.close()
        self._active.clear()
        self._waiting.clear()
        self._parked.clear()
        self._in_order.clear()

    def _go_on(self, run: "_Run", result: object = None) -> None:
        if self._has_stopped:
            return
        self._parked.discard(run)
        try:
            work = run.steps.send(result)
        except StopIteration as end:
            self._ended(run, end.value)
        except GoQueueError as error:
            self._ended(run, error.kept())
        except Exception as error:  # noqa: BLE001  a bug of ours: whoever waits must hear of it
            self._ended(run, error)
        else:
            self._next_turn(run, work)

    def _next_turn(self, run: "_Run", work: Work | Waiting | None) -> None:
        if isinstance(work, Waiting):
            self._parked.add(run)
            work.begin(partial(self._go_on, run))
            return
        if run not in self._active:
            if len(self._active) >= ACTIVE_MAX:
                run.work = work
                self._waiting.append(run)
                return
            self._active.add(run)
        if work is None:
            self._clock.call_soon(partial(self._go_on, run))
            return
        results: list[object] = []

        def done(error: BaseException | None) -> None:
            if error is not None:
                self._throw(run, error)
            else:
                self._go_on(run, results.pop())

        self._aside(lambda: results.append(work()), done)

    def _throw(self, run: "_Run", error: BaseException) -> None:
        run.steps.close()
        if not self._has_stopped:
            self._ended(run, error.kept() if isinstance(error, GoQueueError) else error)

    def _ended(self, run: "_Run", result: object) -> None:
        was_active = run in self._active
        self._active.discard(run)
        try:
            run.on_done(result)
        finally:
            if was_active and self._waiting and len(self._active) < ACTIVE_MAX:
                following = self._waiting.popleft()
                self._next_turn(following, following.work)
            if run.order is not None:
                self._follow(run.order)

    def _follow(self, order: Hashable) -> None:
        runs = self._in_order.get(order)
        if runs is None:
            return
        runs.popleft()
        if runs:
            self._clock.call_soon(partial(self._go_on, runs[0]))
        else:
            del self._in_order[order]


class _Run:
    __slots__ = ("on_done", "order", "steps", "work")

    def __init__(self, steps: Steps[Any], on_done: OnDone, order: Hashable) -> None:
        self.steps = steps
        self.on_done = on_done
        self.order = order
        self.work: Work | Waiting | None = None
        """What it asked for when it had to wait."""

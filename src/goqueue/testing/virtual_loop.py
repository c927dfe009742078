"""An asyncio event loop whose time is virtual: when nothing is left to do now, it is at once as late as the next timer.

One thread runs everything, work for threads included, and nothing waits for a socket. So a run takes as long as its
computing does, and whoever draws all dice from one seed gets the same run again.
"""

import asyncio
import gc
import sys
from asyncio import events
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, NoReturn, TypeVar

from goqueue.testing.drive import PowerLost

T = TypeVar("T")

TURNS_AT_ONCE_MAX = 1_000_000
"""Turns of the loop in which no time passes: beyond that, somebody is taken to go round in circles."""
BEGIN_S = 1000.0
RESOLUTION_S = 1e-6
"""What a float still tells apart after thirty years of virtual time."""
LAST_WORDS_MAX = 1000


class Stuck(RuntimeError):
    """Nothing can happen any more, or nothing but the same."""


class Life:
    """A process in the loop, from its start to its end. Whatever was asked for on its behalf happens only while it
    lasts: callbacks, timers, tasks, all that inherits its context.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_over = False
        self.has_power: Callable[[], bool] = lambda: True
        """Of a process with a disk: whether that is still there."""
        self.on_power_lost: Callable[[], None] = lambda: None

    @property
    def is_on(self) -> bool:
        return not self.is_over and self.has_power()

    def context(self) -> Context:
        """For what is to be done as this process."""
        context = Context()
        context.run(_LIFE.set, self)
        return context

    def run(self, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        if self.is_over:
            return
        try:
            call(*args)
        except PowerLost:
            pass  # told below, as when somebody on the way has caught it
        finally:
            self._look()

    def _look(self) -> None:
        if not self.is_over and not self.has_power():
            self.on_power_lost()


_LIFE: ContextVar[Life] = ContextVar("life")


def current_life() -> Life | None:
    return _LIFE.get(None)


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._selector = _Waiting(self)
        self._now_s = BEGIN_S
        self._clock_resolution = RESOLUTION_S  # asyncio's: how early a timer may fire
        self._dead: list[object] = []
        self._is_ending = False
        self.set_exception_handler(self._note_exception)
        self.exceptions: list[dict[str, Any]] = []
        """What nobody caught."""

    def time(self) -> float:
        return self._now_s

    def pass_time(self, seconds: float) -> None:
        self._now_s += seconds

    # -- everything belongs to a process

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        context = copy_context() if context is None else context
        if self._is_ending:
            return asyncio.Handle(callback, args, self, context)
        life = context.get(_LIFE)
        if life is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(life.run, callback, args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        if self._is_ending:
            return asyncio.TimerHandle(when, callback, args, self, context)
        life = context.get(_LIFE)
        if life is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, life.run, callback, args, context=context)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)  # there is one thread

    def end(self, life: Life) -> None:
        """As a kill: not even a `finally` runs. The tasks are kept, or they would be closed when the garbage is
        collected, by which their last words would be spoken after their death.
        """
        life.is_over = True
        self._dead.append(asyncio.all_tasks(self))

    def close(self) -> None:
        """Whoever still waits is given up. The last words of their tasks are spoken here, where they reach nobody."""
        if self.is_closed():
            return
        self._is_ending = True
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        events._set_running_loop(self)  # noqa: SLF001  who ends may ask which loop that is
        try:
            for task in asyncio.all_tasks(self):
                _close(task)
            self._dead.clear()
            self._ready.clear()  # type: ignore[attr-defined]
            self._scheduled.clear()  # type: ignore[attr-defined]
            gc.collect()
        finally:
            events._set_running_loop(None)  # noqa: SLF001
            sys.unraisablehook = hook
        super().close()

    # -- what would need another thread, or a kernel

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]  # noqa: ARG002
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001  as from a thread, whatever it was
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_soon(work)
        return future

    async def create_connection(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("a virtual loop has no sockets: connect through a virtual network")

    async def create_server(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("a virtual loop has no sockets: listen on a virtual network")

    def _process_events(self, event_list: list[object]) -> None:
        """There are none: no file is waited for."""

    def _write_to_self(self) -> None:
        """Nobody waits who would have to be woken."""

    def _note_exception(self, _loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        if not self._is_ending and not isinstance(about.get("exception"), PowerLost):
            self.exceptions.append(about)


class _Over(BaseException):
    """Not an Exception: nobody shall answer, or log, that something has failed."""


def _close(task: "asyncio.Task[Any]") -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  that is what happens here
    coroutine = task.get_coro()
    for _ in range(LAST_WORDS_MAX):
        try:
            coroutine.throw(_Over())
        except BaseException:  # noqa: BLE001  nobody is left who could hear of it
            return
        # It waits for something else now, in a `finally`.


class _Waiting:
    """Where a loop waits for its files, or for the next timer."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise Stuck("everybody waits, and nobody for the time to pass")
        if timeout > 0:
            self._turns = 0
            self._loop.pass_time(timeout)
        else:
            self._turns += 1
            if self._turns > TURNS_AT_ONCE_MAX:
                raise Stuck(f"{TURNS_AT_ONCE_MAX} turns of the loop in which no time passed")
        return []


async def let_pass(seconds: float) -> None:
    """Let virtual time pass. In a real loop it would be a test that sleeps."""
    assert isinstance(asyncio.get_running_loop(), VirtualLoop), "no virtual loop runs here"
    await asyncio.sleep(seconds)

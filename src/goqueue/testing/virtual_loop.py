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
from heapq import heappush
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
        self.is_paused = False
        self.held: list[asyncio.Handle] = []
        """What has become due while it is paused, in that order."""

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
        if self.is_paused:  # told by somebody outside: a kernel keeps that for it
            self.held.append(_Handle(self, call, args, asyncio.get_running_loop(), copy_context()))
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


def life_in(context: Context) -> Life | None:
    return context.get(_LIFE)


class _Handle(asyncio.Handle):
    """Of a process: held back while that is paused. What is cancelled by then never runs, as in any loop."""

    __slots__ = ("_life",)

    def __init__(
        self,
        life: Life,
        call: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context,
    ) -> None:
        super().__init__(life.run, (call, args), loop, context)
        self._life = life

    def _run(self) -> None:
        if self._life.is_paused:
            self._life.held.append(self)
        else:
            super()._run()


class _TimerHandle(asyncio.TimerHandle):
    """Likewise."""

    __slots__ = ("_life",)

    def __init__(
        self,
        when: float,
        life: Life,
        call: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context,
    ) -> None:
        super().__init__(when, life.run, (call, args), loop, context)
        self._life = life

    def _run(self) -> None:
        if self._life.is_paused:
            self._life.held.append(self)
        else:
            super()._run()


def is_of_process(handle: asyncio.Handle) -> bool:
    return isinstance(handle, (_Handle, _TimerHandle))


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._selector: Any = _Waiting(self)
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
        self._check_closed()  # type: ignore[attr-defined]
        handle = _Handle(life, callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        if self._is_ending:
            return asyncio.TimerHandle(when, callback, args, self, context)
        life = context.get(_LIFE)
        if life is None:
            return super().call_at(when, callback, *args, context=context)
        self._check_closed()  # type: ignore[attr-defined]
        timer = _TimerHandle(when, life, callback, args, self, context)
        heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001  as its base does
        return timer

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)  # there is one thread

    def pause(self, life: Life) -> None:
        """It stands still while time goes on, as after SIGSTOP: its timers and all that is told to it wait."""
        life.is_paused = True

    def go_on(self, life: Life) -> None:
        """With all that has become due meanwhile, and with the beliefs of then."""
        life.is_paused = False
        held, life.held = life.held, []
        self._ready.extend(held)  # type: ignore[attr-defined]

    def end(self, life: Life) -> None:
        """As a kill: not even a `finally` runs. The tasks are kept, or they would be closed when the garbage is
        collected, by which their last words would be spoken after their death.
        """
        life.is_over = True
        life.is_paused = False
        life.held.clear()
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
                close_task(task)
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


def close_task(task: "asyncio.Task[Any]") -> None:
    """It never goes on. Whatever it does at its end is done here."""
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

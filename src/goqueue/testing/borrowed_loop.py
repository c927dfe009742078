"""The event loop of somebody's test, with virtual time for a while: whichever plugin runs the test and made its loop,
a simulation can live in it, and the test's own tasks take part in it.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from heapq import heapify
from typing import Any
from weakref import WeakSet

from goqueue.testing.virtual_loop import RESOLUTION_S, VirtualLoop, close_task, is_of_process, life_in


class BorrowedLoop(VirtualLoop):
    """Never made: a loop that runs becomes one (`borrow`) and is what it was again (`give_back`). Sockets and threads
    of others are still looked after, but time does not wait for them.
    """

    _real_class: type[Any]
    _real_selector: Any
    _real_resolution_s: float
    _owned: "WeakSet[asyncio.Task[Any]]"

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> "asyncio.Task[Any]":  # type: ignore[override]
        task = super().create_task(coro, **options)
        if life_in(options.get("context") or copy_context()) is not None:
            self._owned.add(task)
        return task

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = self.call_soon(callback, *args, context=context)
        self._write_to_self()
        return handle

    def give_back(self) -> None:
        """Nothing of the simulation is left in it. What is due for others is due as much later as it was before."""
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        self._is_ending = True
        try:
            for task in list(self._owned):
                if not task.done():
                    close_task(task)
                    asyncio.tasks._unregister_task(task)  # noqa: SLF001  nobody shall wait for its end
            self._dead.clear()
            for handle in self._ready:  # type: ignore[attr-defined]
                if is_of_process(handle):
                    handle.cancel()  # it stays there: the loop has counted how many it will call in this turn
            gc.collect()
        finally:
            sys.unraisablehook = hook
        virtual_s = self._now_s
        self._selector, self._clock_resolution = self._real_selector, self._real_resolution_s
        self.__class__ = self._real_class
        later_s = self.time() - virtual_s
        scheduled: list[Any] = self._scheduled  # type: ignore[attr-defined]
        scheduled[:] = [each for each in scheduled if not is_of_process(each)]
        for timer in scheduled:
            timer._when += later_s  # noqa: SLF001  there is no other way to tell it
        heapify(scheduled)


class _Waiting:
    """Looks for real files first; when there is nothing, it is at once as late as the next timer."""

    def __init__(self, loop: VirtualLoop, selector: Any) -> None:
        self._loop = loop
        self._selector = selector

    def select(self, timeout: float | None) -> Any:
        found = self._selector.select(0 if timeout is not None else None)
        if not found and timeout is not None and timeout > 0:
            self._loop.pass_time(timeout)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)


def borrow(loop: asyncio.AbstractEventLoop) -> BorrowedLoop:
    """RuntimeError: it is no loop of asyncio's own (uvloop is written in C), or is borrowed already."""
    real = type(loop)
    if isinstance(loop, VirtualLoop):
        raise RuntimeError("this event loop has virtual time already: one simulation at a time")
    if not isinstance(loop, asyncio.SelectorEventLoop):
        raise RuntimeError(f"virtual time needs an event loop of asyncio's own, and this is {real.__name__}")
    now_s = loop.time()
    its_own = ("close", "create_connection", "create_server", "_process_events", "_write_to_self")
    made = type("BorrowedLoop", (BorrowedLoop, real), {name: getattr(real, name) for name in its_own})
    loop.__class__ = made
    assert isinstance(loop, BorrowedLoop)
    loop._real_class, loop._owned = real, WeakSet()  # noqa: SLF001  what its __init__ would do
    loop._real_selector, loop._real_resolution_s = loop._selector, loop._clock_resolution  # noqa: SLF001
    loop._now_s, loop._clock_resolution = now_s, RESOLUTION_S  # noqa: SLF001
    loop._dead, loop._is_ending, loop.exceptions = [], False, []  # noqa: SLF001
    loop._selector = _Waiting(loop, loop._real_selector)  # noqa: SLF001
    return loop

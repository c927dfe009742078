"""What turns an async object into one without `async`: an event loop in a thread, and calls that wait for it."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from goqueue.client.errors import Closed
from goqueue.client.message import Receipt

FORKED = "started in another process, before a fork: make one in each process"

P = ParamSpec("P")
T = TypeVar("T")


class Inner(Protocol):
    async def start(self) -> Any: ...

    async def close(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


I = TypeVar("I", bound=Inner)  # noqa: E741  the inner one


class ProcessLock:
    """A lock for each process. A child that is forked while a thread of its parent holds it has no thread that would
    ever release it.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    @property
    def own(self) -> threading.Lock:
        return self._locks.setdefault(os.getpid(), threading.Lock())


class Portal:
    """An event loop in a thread, and a way in. It exists from `start` to `stop`, and in one process: a child that is
    forked meanwhile has no such thread, and whoever waited for it there would wait for ever.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_stopped = False
        self._pid: int | None = None
        """Of the process that has started it."""

    @property
    def is_ours(self) -> bool:
        return self._pid in (None, os.getpid())

    def start(self) -> None:
        if not self.is_ours:
            raise Closed(FORKED)
        with self._lock:
            if self._loop is None and not self._is_stopped:
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it; whoever is interrupted while waiting cancels it."""
        if not self.is_ours:
            work.close()  # and no look at the lock: another thread of the parent may have held it when it forked
            raise Closed(FORKED)
        with self._lock:
            if self._loop is None:
                work.close()
                raise Closed("closed" if self._is_stopped else "not started: use with")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Closed("closed") from None
        except BaseException:
            future.cancel()
            raise

    def call(self, method: Callable[[], T]) -> T:
        """What is not async must run in the loop's thread too."""

        async def work() -> T:
            return method()

        return self.run(work())

    def stop(self) -> None:
        """A second time is fine, and so is a child that was forked."""
        if not self.is_ours:
            return
        with self._lock:
            self._is_stopped = True
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(_end_others(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


class Face(Generic[I]):
    """What the sync classes have in common."""

    def __init__(self, inner: I) -> None:
        self._inner = inner
        self._portal = Portal(f"goqueue {type(inner).__name__.lower()}")

    @property
    def is_of_this_process(self) -> bool:
        """A child that was forked has to make its own."""
        return self._portal.is_ours

    def start(self) -> Self:
        """Until a server has answered; `with` does it."""
        self._portal.start()
        try:
            self._portal.run(self._inner.start())
        except BaseException:
            self._portal.stop()
            raise
        return self

    def close(self) -> None:
        try:
            self._portal.run(self._inner.close())
        except Closed:
            return
        finally:
            self._portal.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._portal.run(self._inner.__aexit__(kind, error, trace))
        except Closed:
            return
        finally:
            self._portal.stop()


def takes(inner: Callable[P, I]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """An `__init__` that takes what the async class takes."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        @wraps(init)
        def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
            init(self, inner(*args, **kwargs))

        return call

    return decorate


def waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """An async method as one that waits."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._portal.run(method(self._inner, *args, **kwargs))
        return result

    return call


def calls(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A plain method, called in the loop's thread."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._portal.call(partial(method, self._inner, *args, **kwargs))
        return result

    return call


def posts(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, "asyncio.Future[Receipt]"]],
) -> Callable[Concatenate[Any, P], "concurrent.futures.Future[Receipt]"]:
    """`post`: its future is one that a thread can wait for."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> "concurrent.futures.Future[Receipt]":
        outer: concurrent.futures.Future[Receipt] = concurrent.futures.Future()

        def copy(inner: "asyncio.Future[Receipt]") -> None:
            if inner.cancelled():
                outer.cancel()
            elif (error := inner.exception()) is not None:
                outer.set_exception(error)
            else:
                outer.set_result(inner.result())

        async def work() -> None:
            (await method(self._inner, *args, **kwargs)).add_done_callback(copy)

        self._portal.run(work())
        return outer

    return call


async def _end_others() -> None:
    """Nobody is left waiting in another thread."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)

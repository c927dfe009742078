"""What is begun before it is waited for, and what takes too long: as `await` and a timer of its own would have it."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from goqueue.doors.http.begun import begin, go_on
from goqueue.doors.http.deadlines import DEADLINES, Deadlines, within


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


@on_a_loop
async def test_what_need_not_wait_is_done_when_it_is_begun() -> None:
    async def work() -> str:
        return "done"

    begun = begin(work())
    assert (begun.is_done, begun.result) == (True, "done")


@on_a_loop
async def test_what_waits_goes_on_where_it_was() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    second: asyncio.Future[int] = loop.create_future()
    seen: list[str] = []

    async def work() -> int:
        seen.append("begun")
        return await future + await second

    running = work()
    begun = begin(running)
    assert (begun.is_done, seen) == (False, ["begun"])
    future.set_result(6)
    loop.call_soon(second.set_result, 1)
    assert await go_on(running, begun) == 7
    assert seen == ["begun"]


@on_a_loop
async def test_an_error_that_is_waited_for_reaches_it_and_its_own_reaches_who_waits() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            await future
        except KeyError:
            raise ValueError("its own") from None

    running = work()
    begun = begin(running)
    future.set_exception(KeyError("of another"))
    with pytest.raises(ValueError, match="its own"):
        await go_on(running, begun)


@on_a_loop
async def test_a_request_that_takes_too_long_is_told_so_by_the_sweep() -> None:
    deadlines, loop = Deadlines(), asyncio.get_running_loop()
    scope = {"state": {DEADLINES: deadlines}}
    gone: list[str] = []
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.append("cancelled")

    async def request() -> None:
        with pytest.raises(TimeoutError):
            await within(30, scope, work())

    task = loop.create_task(request())
    await begun.wait()
    deadlines.sweep(loop.time() + 29)
    assert list(deadlines.running) == [task]
    deadlines.sweep(loop.time() + 31)
    await task
    assert gone == ["cancelled"]
    assert not deadlines.running
    assert not deadlines.late


@on_a_loop
async def test_a_request_that_is_cancelled_by_others_is_not_late() -> None:
    deadlines, loop = Deadlines(), asyncio.get_running_loop()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = loop.create_task(within(30, {"state": {DEADLINES: deadlines}}, work()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not deadlines.running

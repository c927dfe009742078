"""The time that a request takes of the event loop: its steps, and not what it waits for."""

import asyncio
from typing import Any

import pytest

from goqueue.broker.accounts.loop_time import measured
from goqueue.broker.accounts.quotas import Allowance, TokenBucket
from goqueue.model.quotas import REQUESTS, TIME
from tests.unit.testing.loops import in_loop


class Watch:
    """A clock that only work moves, and what was charged."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.bucket = TokenBucket(100.0, 0)
        self.allowance = Allowance({TIME: self.bucket}, lambda: 0.0, lambda _key, _ms: None)

    def work(self, seconds: float) -> None:
        self.now_s += seconds

    @property
    def owed_ms(self) -> int:
        return self.bucket.take(0, 0)

    async def measure(self, work: Any) -> Any:
        return await measured(work, self.allowance, lambda: self.now_s)


@in_loop
async def test_steps_count_and_waiting_does_not() -> None:
    watch = Watch()
    gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    begun = asyncio.Event()

    async def work() -> str:
        begun.set()
        watch.work(0.75)
        found = await gate
        watch.work(0.75)
        return found

    task = asyncio.create_task(watch.measure(work()))
    await begun.wait()
    watch.work(100)  # somebody else's
    gate.set_result("x")
    assert await task == "x"
    assert watch.owed_ms == 500


@in_loop
async def test_errors_time_limits_and_an_end_from_outside_pass_through() -> None:
    watch = Watch()

    async def fails() -> None:
        watch.work(2)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await watch.measure(fails())
    assert watch.owed_ms == 1000
    seen = []
    waiting = asyncio.Event()

    async def waits() -> None:
        waiting.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("ended")
            raise

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await watch.measure(waits())
    waiting.clear()
    task = asyncio.create_task(watch.measure(waits()))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["ended", "ended"]


@in_loop
async def test_nothing_is_measured_without_such_a_quota() -> None:
    asked: list[int] = []

    def now_s() -> float:
        asked.append(1)
        return 0.0

    async def work() -> int:
        return 1

    other = Allowance({REQUESTS: TokenBucket(1.0, 0)}, lambda: 0.0, lambda _key, _ms: None)
    for allowance in (None, other):
        assert await measured(work(), allowance, now_s) == 1
    assert asked == []

"""Time for the client, passed in so that a test can choose it, and the pauses between attempts."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from goqueue.ports.dice import Dice


class Timer(Protocol):
    def cancel(self) -> None: ...


class Sleeper(Protocol):
    async def sleep(self, delay_s: float) -> None: ...


class Clock(Sleeper, Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970: what records are stamped with."""

    def time_s(self) -> float:
        """Seconds of a clock that never goes back, for deadlines."""

    def call_after(self, delay_s: float, call: Callable[[], object]) -> Timer: ...


class LoopClock:
    """The wall clock, and the timers of the running event loop."""

    def __init__(self) -> None:
        import asyncio  # not before it is needed: it takes its time

        self._loop = asyncio.get_running_loop()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def time_s(self) -> float:
        return self._loop.time()

    def call_after(self, delay_s: float, call: Callable[[], object]) -> Timer:
        return self._loop.call_later(delay_s, call)

    async def sleep(self, delay_s: float) -> None:
        import asyncio

        await asyncio.sleep(delay_s)


class Backoff(NamedTuple):
    """How long to wait before the next attempt: twice as long each time, with jitter, so that clients that failed
    together do not come back together.
    """

    first_ms: int = 50
    most_ms: int = 2000

    def pause_s(self, attempt: int, dice: "Dice") -> float:
        """`attempt` counts from 0."""
        pause_ms: float = min(self.most_ms, self.first_ms * 2 ** min(attempt, 30))
        return pause_ms * dice.uniform(0.5, 1.0) / 1000

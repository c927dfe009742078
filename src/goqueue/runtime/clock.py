"""Time as a port: the broker asks it for the hour and to be woken; a test moves it by hand."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970: what records are stamped with."""

    def monotonic_s(self) -> float:
        """To measure how long something took: it never goes back, and says nothing else."""

    def call_soon(self, call: Callable[[], None]) -> object:
        """Run `call` in the broker's thread after what is going on now."""

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        """Run `call` in the broker's thread after `delay_ms`, once."""


class LoopClock:
    """The wall clock, and the timers of the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.perf_counter()

    def call_soon(self, call: Callable[[], None]) -> object:
        return self._loop.call_soon(call)

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, call)

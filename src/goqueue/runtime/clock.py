"""Time as a port: the broker asks it for the hour and to be woken; a test moves it by hand.

There are two clocks. The wall clock says what time it is, and people and NTP set it, in steps. The monotonic one only
counts. Whatever lasts so and so long (a lease, a session, a time-out) is measured by the monotonic one; whatever is
due at a certain time (a delayed record, a schedule, the end of a record's life) by the wall clock.
"""

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
        """To measure how long something took: it never goes back, and says nothing else. It stands still while the
        machine is suspended, which is then seen as a step of the wall clock."""

    def call_soon(self, call: Callable[[], None]) -> object:
        """Run `call` in the broker's thread after what is going on now."""

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        """Run `call` in the broker's thread after `delay_ms`, once. Steps of the wall clock do not matter to it."""

    def watch_steps(self, call: Callable[[], None]) -> Timer:
        """Run `call` within a second whenever the wall clock was set, until this is cancelled."""


STEP_MS = 500
"""The wall clock leaves the monotonic one by so much only if it was set: NTP slews half a millisecond a second."""
LOOK_MS = 1000


class StepWatchers:
    """Who wants to be told when the wall clock was set."""

    def __init__(self) -> None:
        self._calls: dict[StepWatch, Callable[[], None]] = {}

    def add(self, call: Callable[[], None]) -> "StepWatch":
        watch = StepWatch(self._calls)
        self._calls[watch] = call
        return watch

    def calls(self) -> list[Callable[[], None]]:
        return list(self._calls.values())


class StepWatch:
    __slots__ = ("_calls",)

    def __init__(self, calls: "dict[StepWatch, Callable[[], None]]") -> None:
        self._calls = calls

    def cancel(self) -> None:
        self._calls.pop(self, None)


class LoopClock:
    """The wall clock, and the timers of the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watchers = StepWatchers()
        self._steps = Steps(self)
        self._looking: Timer | None = None

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.perf_counter()

    def call_soon(self, call: Callable[[], None]) -> object:
        return self._loop.call_soon(call)

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, call)

    def watch_steps(self, call: Callable[[], None]) -> Timer:
        if self._looking is None:
            self._looking = self.call_after(LOOK_MS, self._look)
        return self._watchers.add(call)

    def stop(self) -> None:
        """Nobody is told of steps any more."""
        if self._looking is not None:
            self._looking.cancel()

    def _look(self) -> None:
        self._looking = self.call_after(LOOK_MS, self._look)
        if self._steps.step_ms(self.now_ms()):
            for call in self._watchers.calls():
                self.call_soon(call)


class Steps:
    """How far the wall clock was set since somebody looked."""

    __slots__ = ("_ahead_ms", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = clock.now_ms() - int(clock.monotonic_s() * 1000)

    def step_ms(self, now_ms: int) -> int:
        """0: it was not. What is less than a step is passed over, so that a clock may be slewed."""
        ahead_ms = now_ms - int(self._clock.monotonic_s() * 1000)
        by_ms, self._ahead_ms = ahead_ms - self._ahead_ms, ahead_ms
        return by_ms if abs(by_ms) >= STEP_MS else 0


SETTLED_MS = 10 * 60_000
"""NTP and people put a wrong clock right sooner than that; whoever deletes old data can wait for as long."""


class SettledClock:
    """The time by which old data is deleted for good. It is the wall clock, except that a step forward is believed only
    when the clock has stayed there for SETTLED_MS: what was deleted by a wrong clock does not come back when that is
    put right. A step back is believed at once, since it deletes less.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = self._doubted_ms = clock.now_ms() - self._monotonic_ms()
        """How far the wall clock is ahead of the monotonic one: as it is believed, and as it was seen last."""
        self._doubted_since_ms = self._monotonic_ms()

    def now_ms(self) -> int:
        monotonic_ms = self._monotonic_ms()
        ahead_ms = self._clock.now_ms() - monotonic_ms
        if abs(ahead_ms - self._doubted_ms) >= STEP_MS:
            self._doubted_ms, self._doubted_since_ms = ahead_ms, monotonic_ms
        if ahead_ms < self._ahead_ms + STEP_MS or monotonic_ms - self._doubted_since_ms >= SETTLED_MS:
            self._ahead_ms = self._doubted_ms = ahead_ms  # a clock that is slewed is followed
        return monotonic_ms + self._ahead_ms

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def _monotonic_ms(self) -> int:
        return round(self._clock.monotonic_s() * 1000)


class SteadyClock:
    """The time of those who only measure durations: it begins as the wall clock and is never set. Nor does it go back
    when a node is started again: it begins no earlier than what was last written by it.
    """

    def __init__(self, clock: Clock, not_before_ms: int) -> None:
        self._clock = clock
        self._begin_ms = max(clock.now_ms(), not_before_ms)
        self._begin_s = clock.monotonic_s()

    def now_ms(self) -> int:
        passed_us = round((self._clock.monotonic_s() - self._begin_s) * 1_000_000)  # 0.3 s is a little less than that
        return self._begin_ms + passed_us // 1000

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def call_soon(self, call: Callable[[], None]) -> object:
        return self._clock.call_soon(call)

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        return self._clock.call_after(delay_ms, call)

    def watch_steps(self, call: Callable[[], None]) -> Timer:  # noqa: ARG002  a clock's signature
        """It is never set."""
        return StepWatch({})

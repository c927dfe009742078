"""Time that stands still until a test moves it. What was asked for runs in the order in which it is due, in this
thread.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from goqueue.runtime.clock import StepWatchers, Timer


class VirtualTimer:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class VirtualClock:
    def __init__(self, now_ms: int = 1_000_000_000_000) -> None:
        self._now_ms = float(now_ms)
        """Of the monotonic clock; the wall clock is the same until it is set."""
        self._ahead_ms = 0.0
        self._watchers = StepWatchers()
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        self._count = 0

    def now_ms(self) -> int:
        return int(self._now_ms + self._ahead_ms)

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    def call_soon(self, call: Callable[[], None]) -> object:
        self._soon.append(call)
        return None

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(call)
        self._count += 1
        heappush(self._timers, (self._now_ms + max(0.0, delay_ms), self._count, timer))
        return timer

    @property
    def timers(self) -> int:
        """How many will still fire."""
        return sum(timer.call is not None for _, _, timer in self._timers)

    @property
    def next_after_ms(self) -> float | None:
        """How long until the next of them fires; None: there is none."""
        while self._timers and self._timers[0][2].call is None:
            heappop(self._timers)
        return max(0.0, self._timers[0][0] - self._now_ms) if self._timers else None

    def step(self, ms: float) -> None:
        """Set the wall clock forward, or back, as a person or NTP would: no time passes. The machine that was suspended
        for `ms` sees the same."""
        self._ahead_ms += ms
        for call in self._watchers.calls():
            self.call_soon(call)

    def watch_steps(self, call: Callable[[], None]) -> Timer:
        return self._watchers.add(call)

    def run(self) -> None:
        """Everything that is due now, and what that asks for."""
        self.advance(0)

    def advance(self, ms: float) -> None:
        """Let `ms` pass."""
        end, soon, timers = self._now_ms + ms, self._soon, self._timers
        while True:
            if soon:
                soon.popleft()()
            elif timers and timers[0][0] <= end:
                due_ms, _, timer = heappop(timers)
                self._now_ms = max(self._now_ms, due_ms)
                call, timer.call = timer.call, None
                if call is not None:
                    call()
            else:
                break
        self._now_ms = end

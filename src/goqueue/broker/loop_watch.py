"""How late the event loop is: a timer that should have run by now tells how long everybody else had to wait."""

from collections import deque

from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.histogram import Histogram

INTERVAL_MS = 500
REMEMBERED = 60
"""Intervals."""


class LoopWatch:
    def __init__(self, clock: Clock, lag_s: Histogram) -> None:
        self._clock = clock
        self._lag_s = lag_s
        self._recent: deque[float] = deque(maxlen=REMEMBERED)
        self._timer: Timer | None = None
        self._due_s = 0.0

    @property
    def is_running(self) -> bool:
        return self._timer is not None

    @property
    def worst_s(self) -> float:
        """Of the last half minute."""
        return max(self._recent, default=0.0)

    def start(self) -> None:
        self._due_s = self._clock.monotonic_s() + INTERVAL_MS / 1000
        self._timer = self._clock.call_after(INTERVAL_MS, self._look)

    def _look(self) -> None:
        late_s = max(0.0, self._clock.monotonic_s() - self._due_s)
        self._lag_s.observe(late_s)
        self._recent.append(late_s)
        self.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

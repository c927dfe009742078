"""A timer that runs late tells how long everybody had to wait."""

from collections.abc import Callable

from goqueue.broker.loop_watch import INTERVAL_MS, REMEMBERED, LoopWatch
from goqueue.telemetry.histogram import Histogram
from goqueue.testing.virtual_clock import VirtualClock, VirtualTimer


class BusyClock(VirtualClock):
    late_ms = 0

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> VirtualTimer:
        return super().call_after(delay_ms + self.late_ms, call)


def test_lateness_is_measured_and_forgotten_after_half_a_minute() -> None:
    clock, lag_s = BusyClock(), Histogram()
    watch = LoopWatch(clock, lag_s)
    watch.start()
    clock.advance(10 * INTERVAL_MS)
    assert (lag_s.count, lag_s.counts[0], watch.worst_s) == (10, 10, 0.0)
    clock.late_ms = 300
    clock.advance(INTERVAL_MS)
    clock.late_ms = 0
    clock.advance(INTERVAL_MS + 300)
    assert round(watch.worst_s, 3) == 0.3
    clock.advance(REMEMBERED * INTERVAL_MS)
    assert watch.worst_s == 0.0
    watch.stop()
    assert (watch.is_running, clock.timers) == (False, 0)
    watch.stop()

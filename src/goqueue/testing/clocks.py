"""Clocks for a broker in a test: virtual time that an event loop keeps going, and time that ends with a crash."""

import asyncio
from collections.abc import Callable

from goqueue.runtime.clock import Clock, Timer
from goqueue.testing.virtual_clock import VirtualClock, VirtualTimer


class PumpedClock(VirtualClock):
    """What is due now runs in the next turn of the running event loop. Nothing polls; time moves only by `advance`."""

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self._pumped_by: asyncio.AbstractEventLoop | None = None

    def call_soon(self, call: Callable[[], None]) -> object:
        self._pump_soon()
        return super().call_soon(call)

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> VirtualTimer:
        if delay_ms <= 0:
            self._pump_soon()
        return super().call_after(delay_ms, call)

    def _pump_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # a test that ends outside of its loop runs what is left by hand
        if loop is not self._pumped_by:  # the loop of an earlier `asyncio.run` may have forgotten its pump
            self._pumped_by = loop
            loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pumped_by = None
        self.run()


class OneLife:
    """A clock for one start of a node. After its end nothing happens of what was asked for, as after a kill."""

    def __init__(self, clock: Clock, on_fault: Callable[[Exception], None]) -> None:
        self._clock = clock
        self._on_fault = on_fault
        self.is_over = False
        self.calls = 0
        """How much has happened; for those who wait until nothing does."""

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def call_soon(self, call: Callable[[], None]) -> object:
        return self._clock.call_soon(lambda: self._run(call))

    def call_after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        return self._clock.call_after(delay_ms, lambda: self._run(call))

    def watch_steps(self, call: Callable[[], None]) -> Timer:
        return self._clock.watch_steps(lambda: self._run(call))

    def _run(self, call: Callable[[], None]) -> None:
        if self.is_over:
            return
        self.calls += 1
        try:
            call()
        except Exception as fault:  # noqa: BLE001  a lost disk or a bug of ours: whoever waits must hear of it
            self.is_over = True
            self._on_fault(fault)

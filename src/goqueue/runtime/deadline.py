"""The one timer of a coordinator: set for the machine's next deadline."""

from collections.abc import Callable
from weakref import WeakMethod

from goqueue.runtime.clock import Clock, Timer

RETRY_MS = 1000


class Deadline:
    def __init__(self, clock: Clock, on_due: Callable[[], None]) -> None:
        self._clock = clock
        self._on_due = WeakMethod(on_due)
        """Of its owner. Not to be held: else files of a ledger that is gone would stay open with both."""
        self._timer: Timer | None = None
        self.due_ms: int | None = None
        """None: it is not set."""

    def set(self, due_ms: int | None) -> None:
        """None: there is none."""
        if due_ms == self.due_ms:
            return
        self.stop()
        self.due_ms = due_ms
        if due_ms is not None:
            self._timer = self._clock.call_after(max(0, due_ms - self._clock.now_ms()), self._fire)

    def try_later(self, due_ms: int | None) -> None:
        """What was due could not be stored and is due still; but a full disk is not asked again without a pause."""
        self.stop()
        if due_ms is not None:
            self._timer = self._clock.call_after(RETRY_MS, self._fire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.due_ms = None

    def _fire(self) -> None:
        self._timer = self.due_ms = None
        on_due = self._on_due()
        if on_due is not None:
            on_due()

"""A machine is read from its ledger while the node serves: a slice of the work, then others have their turn."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar

from goqueue.machines.machine import Machine
from goqueue.model.errors import CoordinatorFailed, GoQueueError
from goqueue.runtime.clock import Clock
from goqueue.runtime.ledger import TO_THE_END, Ledger, Reading
from goqueue.telemetry.logs import get_logger

M = TypeVar("M", bound=Machine)

events = get_logger("runtime")


class Loading(Generic[M]):
    """One load. `opening` gets the machine once all that it was told is durable: nothing may be told that could still
    be lost. `on_failed`: the ledger cannot be read.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        machine: M,
        opening: Callable[[M], Iterator[None]],
        on_loaded: Callable[[M], None],
        on_failed: Callable[[GoQueueError], None],
        reading: Reading | None = None,
    ) -> None:
        """`opening`: what comes before `on_loaded`, also in slices.
        `reading`: how far the machine was told already, as a follower's."""
        self._ledger = ledger
        self._clock = clock
        self._machine = machine
        self._opening = opening
        self._on_loaded = on_loaded
        self._on_failed = on_failed
        self._reading = reading
        self._is_over = False

    def begin(self) -> None:
        if self._reading is not None:
            self._reading.until = TO_THE_END
            self._ready(self._ledger.read_on(self._machine, self._reading))
            return
        self._ledger.replay_in_slices(self._machine, self._clock.now_ms(), self._ready)

    def stop(self) -> M:
        """Nobody hears of it any more. Returns the machine as far as it was told."""
        self._is_over = True
        return self._machine

    def _ready(self, slices: Iterator[None]) -> None:
        self._clock.call_soon(partial(self._go_on, slices, self._read))

    def _go_on(self, slices: Iterator[None], on_done: Callable[[], None]) -> None:
        if self._is_over:
            return
        if self._ledger.replica.is_resting:
            self._ledger.replica.when_awake(partial(self._go_on, slices, on_done))
            return
        try:
            for _ in slices:
                self._clock.call_soon(partial(self._go_on, slices, on_done))
                return
        except Exception as error:  # noqa: BLE001  whatever it was: without its ledger it cannot serve
            self._is_over = True
            if not isinstance(error, GoQueueError):
                events.error("ledger not read", exc_info=error)
                error = CoordinatorFailed("a fault of the node: its ledger cannot be read, see the log of the node")
            self._on_failed(error)
            return
        on_done()

    def _read(self) -> None:
        self._ledger.when_durable(self._open)

    def _open(self) -> None:
        if self._is_over:
            return
        if self._ledger.failure is not None:
            self._is_over = True
            self._on_failed(self._ledger.failure)
        else:
            self._go_on(self._opening(self._machine), self._finish)

    def _finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._on_loaded(self._machine)

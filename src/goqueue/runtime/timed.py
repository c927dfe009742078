"""What a coordinator does about time: its machine is told when a deadline has come, and when the wall clock was set."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from goqueue.machines.machine import ClockSet, Command, Machine, Tick, stepping
from goqueue.model.errors import GoQueueError
from goqueue.runtime.clock import Clock, Steps, Timer
from goqueue.runtime.deadline import Deadline
from goqueue.runtime.ledger import Ledger
from goqueue.runtime.questions import Questions

M = TypeVar("M", bound=Machine)
R = TypeVar("R")


class Timed(Questions[M], Generic[M]):
    def __init__(self, name: str, ledger: Ledger, clock: Clock) -> None:
        super().__init__(name, ledger, clock)
        self._deadline = Deadline(clock, self._tick)
        self._steps: Steps | None = None
        self._watch: Timer | None = None
        """Of steps of the wall clock, while it is active: a clock must not hold on to who is gone."""

    @abstractmethod
    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None] | None = None) -> None: ...

    def _now_ms(self) -> int:
        """For how long things take: nobody sets this clock."""
        return int(self._clock.monotonic_s() * 1000)

    def notice_clock(self) -> None:
        """For who compares what the machine says with the time: it has heard of every step by now."""
        if self._steps is not None and (by_ms := self._steps.step_ms(self._clock.now_ms())):
            self.submit(ClockSet(by_ms))

    def _set_clock_again(self, loads: int, command: ClockSet) -> None:
        """It could not be stored, and nobody else will hear of this step. Who was loaded since knows no more of it."""
        if self._is_still(loads):
            self.submit(command)

    def _clock_was_set(self) -> None:
        """What is due by the wall clock may be due now, and the timer knows nothing of it. Stored times are put right
        though nothing may be due: after a restart nobody would know any more that the clock was set."""
        if self._steps is not None:
            self._deadline.stop()
            self.notice_clock()
            if self._machine is not None and self._machine.next_deadline_ms() is not None:
                self.submit(Tick())

    def _watch_clock(self, machine: M) -> None:
        if stepping(machine) is not None:
            self._steps = Steps(self._clock)
            self._watch = self._clock.watch_steps(self._clock_was_set)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None

    def _stop_time(self) -> None:
        self._steps = None
        self._stop_watching()
        self._deadline.stop()

    def _tick(self) -> None:
        self.submit(Tick())

"""Waiting for acknowledgements, each with a deadline. One timer serves all: it looks round now and then while anybody
waits, since a timer for each would cost more than the append that it watches and hardly ever fires.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from goqueue.broker.publishing.outliving import Outliving
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import NotLeader
from goqueue.replica.own_log import OwnLog
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.telemetry.calls import call_each

SWEEP_MS = 100
"""A deadline is met up to twice this too late, never too early."""
OUTLIVING_MS = 500
"""How long one waits for the next leader that has taken over in good order, which needs a few milliseconds. Who hears
of none had better be told: its client looks for another node then."""

OnEnd = Callable[[Code], None]
"""NONE: acknowledged. KAFKA_STORAGE_ERROR: it never will be. REQUEST_TIMED_OUT: not in time, it may still be; or the
leader changed, and nobody here knows whether the next one has it. Clients take NOT_LEADER_OR_FOLLOWER for not
stored."""


class Acknowledger(Protocol):
    """A replica, or whoever stands for one."""

    @property
    def failure(self) -> GoQueueError | None: ...

    def when_reached(self, offset: int, call: Callable[[], None], /) -> None: ...


Outlive = Callable[[Replica, int], Acknowledger]
"""Who knows what becomes of a batch whose leader has changed, by where it ends."""


class _Waiting:
    __slots__ = ("_all", "_keeper", "_offset", "_on_end", "_outlive", "due_sweep")

    def __init__(
        self,
        everybody: "dict[_Waiting, None]",
        acknowledger: Acknowledger,
        offset: int,
        on_end: OnEnd,
        due_sweep: int,
        outlive: "Outlive",
    ) -> None:
        self._all = everybody
        self._keeper = acknowledger
        self._offset = offset
        self._on_end = on_end
        self._outlive = outlive
        self.due_sweep = due_sweep
        everybody[self] = None

    def reached(self) -> None:
        failure = self._keeper.failure
        if failure is None:
            self.end(Code.NONE)
        elif not isinstance(failure, NotLeader):
            self.end(Code.KAFKA_STORAGE_ERROR)
        elif isinstance(self._keeper, Replica) and self in self._all:
            self._keeper = self._outlive(self._keeper, self._offset)
            self._keeper.when_reached(self._offset, self.reached)
        else:
            self.end(Code.REQUEST_TIMED_OUT)

    def end(self, code: Code) -> None:
        """The first end counts."""
        if self in self._all:
            del self._all[self]
            self._on_end(code)


class Acknowledgements:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[_Waiting, None] = {}
        self._sweeps = 0
        self._sweep_is_due = False

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(
        self,
        acknowledger: Acknowledger,
        offset: int,
        timeout_ms: int,
        on_end: OnEnd,
        *,
        needs_all_copies: bool = True,
    ) -> None:
        """Call once when the high watermark has reached `offset`, or will not in this time; perhaps at once.
        `needs_all_copies`: else the leader's own log is enough, where nothing but that is waited for."""
        if not needs_all_copies and isinstance(acknowledger, Replica):
            acknowledger = OwnLog(acknowledger)
        due_sweep = self._sweeps + max(0, timeout_ms) // SWEEP_MS + 2  # the next sweep may come right now
        waiting = _Waiting(self._waiting, acknowledger, offset, on_end, due_sweep, self._outlive)
        acknowledger.when_reached(offset, waiting.reached)
        if self._waiting and not self._sweep_is_due:
            self._sweep_is_due = True
            self._clock.call_after(SWEEP_MS, self._sweep)

    def _outlive(self, replica: Replica, offset: int) -> Acknowledger:
        return Outliving(replica, offset, self._clock, OUTLIVING_MS)

    def _sweep(self) -> None:
        self._sweeps += 1
        late = [one for one in self._waiting if one.due_sweep <= self._sweeps]
        try:
            call_each(partial(one.end, Code.REQUEST_TIMED_OUT) for one in late)
        finally:
            self._sweep_is_due = bool(self._waiting)
            if self._sweep_is_due:
                self._clock.call_after(SWEEP_MS, self._sweep)

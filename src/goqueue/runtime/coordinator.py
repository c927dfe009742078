"""A coordinator: a machine, its ledger and an inbox. One command at a time; replies leave when what they rest on is
durable.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from goqueue.machines.machine import Ahead, ClockSet, Fact, Machine, Outcome, Stepping, Tick, apply_at
from goqueue.model.errors import BatchTooLarge, CoordinatorFailed, GoQueueError
from goqueue.runtime.clock import Clock, Steps, Timer
from goqueue.runtime.ledger import Ledger
from goqueue.telemetry.calls import call_each, first_fault
from goqueue.telemetry.logs import get_logger

events = get_logger("runtime")

RETRY_MS = 1000

OnStored = Callable[[GoQueueError | None], None]
"""None: it is durable."""
OnReply = Callable[[Any], None]
"""Gets the machine's reply, or a GoQueueError if the ledger or the coordinator failed."""


class Coordinator:
    """Invariant: the machine's state is what its ledger holds, plus what a restart may forget."""

    def __init__(self, name: str, machine: Machine, ledger: Ledger, clock: Clock) -> None:
        self.name = name
        self.machine = machine
        self._ledger = ledger
        self._clock = clock
        self._waiting: dict[int, OnReply] = {}
        self._next_ticket = 1
        self._timer: Timer | None = None
        self._timer_due_ms: int | None = None
        self._failure: GoQueueError | None = None
        self.faults = 0
        """Commands that met a fault of ours."""
        self._busy = False
        self._steps: Steps | None = None
        if isinstance(machine, Stepping):
            self._steps = Steps(clock)
            clock.watch_steps(self._clock_was_set)
        self._ahead = machine if isinstance(machine, Ahead) else None
        self._unstored: list[OnStored] = []
        """Of whoever has changed the state of a machine that is ahead."""
        self._store_is_due = False
        self._inbox: list[tuple[Any, OnReply | None]] = []
        self.command: Any = None
        """What is being decided, or was last."""
        self.is_loaded = False
        """False: `after_apply` tells what was before the last restart."""
        self.after_apply: Callable[[Iterable[Fact]], None] = lambda facts: None
        """Called with facts that were applied, before anybody is told: something may have to be done about them
        outside, perhaps not before they are durable. After a replay, with those that a snapshot would hold."""

    def load(self) -> None:
        """Rebuild the machine from its ledger; before anything else."""
        self._ledger.replay(self.machine, self._clock.now_ms())
        self._set_timer()
        self.after_apply(self.machine.facts())
        self.is_loaded = True

    def submit(self, command: Any, on_reply: OnReply | None = None) -> None:
        """Decide `command`; `on_reply` is called when its reply may be given, perhaps at once."""
        self._inbox.append((command, on_reply))
        if self._busy:
            return  # submitted from within a reply: its turn comes
        self._busy = True
        fault: Exception | None = None
        try:
            while self._inbox:
                try:
                    self._handle(*self._inbox.pop(0))
                except Exception as error:  # noqa: BLE001  of whoever was answered: those behind it must have their turn
                    fault = first_fault(fault, error)
        finally:
            self._busy = False
        if fault is not None:
            try:
                raise fault
            finally:
                del fault  # it holds this frame

    def _handle(self, command: Any, on_reply: OnReply | None) -> None:
        if self._failure is not None:
            if on_reply is not None:
                on_reply(self._failure)
            return
        if self._unstored:
            self._store()
        now_ms = self._clock.now_ms()
        if self._steps is not None and (by_ms := self._steps.step_ms(now_ms)):
            self._inbox.insert(0, (command, on_reply))  # what was decided is put right first
            command, on_reply = ClockSet(by_ms), None
        self.command = command
        ticket = self._next_ticket
        self._next_ticket += 1
        outcome = self._decide(command, ticket, now_ms, on_reply)
        if outcome is None:
            return
        try:
            if outcome.facts:
                self.after_apply(outcome.facts)
            self._set_timer()
        except Exception as fault:  # noqa: BLE001  what has to be done about the facts was not done
            self._stop_for(fault, command)
            return
        self._give(outcome)
        if outcome.facts:
            self._ledger.maybe_snapshot(self.machine, now_ms)

    def _decide(self, command: Any, ticket: int, now_ms: int, on_reply: OnReply | None) -> Outcome | None:
        """Decide, store, apply. None: nothing came of it, and whoever asked was told."""
        is_decided = False
        try:
            if isinstance(command, ClockSet):
                assert isinstance(self.machine, Stepping)
                outcome = Outcome(self.machine.clock_set(command.by_ms, now_ms), [])
            else:
                outcome = self.machine.decide(command, ticket, now_ms)
            is_decided = True
            offset = self._ledger.append(outcome.facts, now_ms)
        except Exception as error:  # noqa: BLE001  a command that we cannot decide must not cost the others their service
            if is_decided and isinstance(error, GoQueueError):
                self._not_stored(error, on_reply)
            else:
                self._not_decided(error, command, on_reply)
            return None
        if on_reply is not None:
            self._waiting[ticket] = on_reply
        try:
            for fact in outcome.facts:
                apply_at(self.machine, fact, offset)
                offset += len(fact.stored_keys()) if fact.is_tombstone else fact.durable
        except Exception as fault:  # noqa: BLE001  from here on the state is not what the ledger says
            self._stop_for(fault, command)
            return None
        return outcome

    def _not_stored(self, error: GoQueueError, on_reply: OnReply | None) -> None:
        # Too much for one batch is refused like anything that finds no room: the ledger is none the worse for it.
        if not error.retriable and not isinstance(error, BatchTooLarge):
            self._fail(error, on_reply)
            return
        try:
            if on_reply is not None:
                on_reply(error)
        finally:
            self._try_later()

    def _not_decided(self, fault: Exception, command: Any, on_reply: OnReply | None) -> None:
        """Nothing was changed, since `decide` only reads: the next command may fare better. But who cannot decide a
        Tick has no deadlines any more, and must not go on as if it had.
        """
        if isinstance(command, Tick):
            self._stop_for(fault, command)
            return
        self.faults += 1
        kind = type(command).__name__
        events.error("command failed", coordinator=self.name, command=kind, exc_info=fault)
        if on_reply is not None:
            on_reply(CoordinatorFailed(f"{self.name} could not decide {kind}: a fault of the node, see its log"))

    def _stop_for(self, fault: Exception, command: Any) -> None:
        """Nothing is believed of a state that may not be what the ledger says."""
        self.faults += 1
        kind = type(command).__name__
        events.error("coordinator failed", coordinator=self.name, command=kind, exc_info=fault)
        why = f"{self.name} is out of service until the node is restarted: a fault of the node at {kind}, see its log"
        self._fail(CoordinatorFailed(why), None)

    def now_ms(self) -> int:
        """As its machine is told: to be compared with what that says."""
        return self._clock.now_ms()

    def read_fact(self, ledger_offset: int) -> Fact | None:
        """What the machine was told lies there."""
        return self._ledger.read_fact(ledger_offset)

    def read_facts(self, ledger_offsets: Iterable[int]) -> dict[int, Fact]:
        """Many at once; what is gone or damaged is left out."""
        return self._ledger.read_facts(ledger_offsets)

    @property
    def failure(self) -> GoQueueError | None:
        """Why it decides nothing any more, if so."""
        return self._failure or self._ledger.failure

    @property
    def skipped_facts(self) -> int:
        """How much of its ledger could not be read or applied when it was loaded."""
        return self._ledger.skipped_facts

    @property
    def is_busy(self) -> bool:
        """A command submitted now would wait for its turn: this is asked from within a reply."""
        return self._busy

    # -- changes that a machine makes ahead of its ledger

    def directly(self) -> int | None:
        """The time at which the machine may be changed directly. None: not now, ask with a command."""
        if self._busy or self._failure is not None:
            return None
        now_ms = self._clock.now_ms()
        if self._steps is not None and (by_ms := self._steps.step_ms(now_ms)):
            self.submit(ClockSet(by_ms))
            return None
        return now_ms

    def deadline_set(self, due_ms: int) -> None:
        """The machine has a new deadline."""
        if self._timer_due_ms is None or due_ms < self._timer_due_ms:
            self._set_timer()

    def when_stored(self, call: OnStored) -> None:
        """The machine was changed directly: store that with all others of this turn, and call when it is durable, or
        with an error: then it was taken back.
        """
        self._unstored.append(call)
        if not self._store_is_due:
            self._store_is_due = True
            self._clock.call_soon(self._turn_ends)

    def _turn_ends(self) -> None:
        if self._unstored and not self._ledger.is_durable and self._ledger.failure is None:
            self._ledger.when_durable(self._turn_ends)  # what comes while the disk is busy goes into the next sync
            return
        self._store_is_due = False
        if self._unstored:
            self._store()

    def _store(self) -> None:
        assert self._ahead is not None
        calls, self._unstored = self._unstored, []
        if self._failure is not None:
            call_each(partial(call, self._failure) for call in calls)
            return
        now_ms = self._clock.now_ms()
        facts = self._ahead.facts_ahead(now_ms)
        try:
            self._ledger.append(facts, now_ms)
        except GoQueueError as error:
            self._ahead.take_back(now_ms)
            self._set_timer()
            if not error.retriable and not isinstance(error, BatchTooLarge):
                self._fail(error, None)
            call_each(partial(call, error.kept()) for call in calls)
            return
        try:
            for fact in facts:
                self.machine.apply(fact)
            self.after_apply(facts)
        except Exception as fault:  # noqa: BLE001  from here on the state is not what the ledger says
            self._stop_for(fault, facts)
            call_each(partial(call, self._failure) for call in calls)
            return
        self._ledger.when_durable(partial(self._stored, calls))
        self._ledger.maybe_snapshot(self.machine, now_ms)

    def _stored(self, calls: list[OnStored]) -> None:
        failure = self._ledger.failure
        call_each(partial(call, failure) for call in calls)
        if failure is not None:
            self._fail(failure, None)

    def make_durable(self) -> None:
        """All that was decided so far, here and now: for a start, before anybody is served."""
        self._ledger.make_durable()

    def when_durable(self, call: Callable[[], None]) -> None:
        """Call once all that was decided so far is durable; never, if it will not be."""
        if self._unstored:
            self._store()
        self._ledger.when_durable(lambda: call() if self._ledger.failure is None else None)

    @property
    def is_durable(self) -> bool:
        """Whether its state is what a restart would find; if not, `confirm` tells when it is."""
        return self._ledger.is_durable and not self._unstored and not isinstance(self._failure, CoordinatorFailed)

    def confirm(self, on_confirmed: Callable[[GoQueueError | None], None]) -> None:
        """Call once all that was decided so far is durable; with an error, if it will not be, or if the state is not
        what the ledger says. For whoever has read the state and is about to tell of it.
        """
        if self._unstored:
            self._store()
        if isinstance(self._failure, CoordinatorFailed):
            on_confirmed(self._failure)
        else:
            self._ledger.when_durable(lambda: on_confirmed(self._ledger.failure))

    def _give(self, outcome: Outcome) -> None:
        ready = [(self._waiting.pop(ticket), reply) for ticket, reply in outcome.replies if ticket in self._waiting]
        if not ready:
            return
        if outcome.is_immediate and len(ready) == 1:  # as most are
            ((on_reply, reply),) = ready
            on_reply(reply)
            return
        if outcome.is_immediate:
            call_each(partial(on_reply, reply) for on_reply, reply in ready)
            return

        def give() -> None:
            failure = self._ledger.failure
            calls = [partial(on_reply, reply if failure is None else failure) for on_reply, reply in ready]
            if failure is not None:
                calls.append(partial(self._fail, failure, None))
            call_each(calls)

        self._ledger.when_durable(give)

    def _fail(self, error: GoQueueError, on_reply: OnReply | None) -> None:
        """Out of service until the node is restarted: the ledger failed, or the machine did."""
        if self._failure is not None:
            return
        events.error("coordinator stopped", coordinator=self.name, reason=str(error))
        self._failure = error
        self._stop_timer()
        waiting, self._waiting = list(self._waiting.values()), {}
        call_each(partial(waiter, error) for waiter in [*waiting, *([on_reply] if on_reply else [])])

    def _set_timer(self) -> None:
        due_ms = self.machine.next_deadline_ms()
        if due_ms == self._timer_due_ms:
            return
        self._stop_timer()
        self._timer_due_ms = due_ms
        if due_ms is not None:
            self._timer = self._clock.call_after(max(0, due_ms - self._clock.now_ms()), self._tick)

    def _try_later(self) -> None:
        """What was due could not be stored and is due still; but a full disk is not asked again without a pause."""
        self._stop_timer()
        if self.machine.next_deadline_ms() is not None:
            self._timer = self._clock.call_after(RETRY_MS, self._tick)

    def notice_clock(self) -> None:
        """For who compares what the machine says with the time: it has heard of every step by now."""
        if self._steps is not None and (by_ms := self._steps.step_ms(self._clock.now_ms())):
            self.submit(ClockSet(by_ms))

    def _clock_was_set(self) -> None:
        """What is due by the wall clock may be due now, and the timer knows nothing of it."""
        self._stop_timer()
        if self._failure is None and self.machine.next_deadline_ms() is not None:
            self.submit(Tick())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_due_ms = None

    def _tick(self) -> None:
        self._timer = self._timer_due_ms = None
        self.submit(Tick())

    def stop(self) -> None:
        """No timer fires and nothing is written after this. Stopping twice is fine."""
        if self._unstored:
            self._store()
        self._stop_timer()
        if self._failure is None:
            self._ledger.snapshot(self.machine, self._clock.now_ms())
            self._failure = GoQueueError(f"{self.name} has stopped")

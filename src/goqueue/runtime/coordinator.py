"""A coordinator: a machine, its ledger and an inbox. One command at a time; replies leave when what they rest on is
durable. The machine comes and goes: it is made anew and read from the ledger whenever it is loaded, also after a fault.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from goqueue.machines.machine import ClockSet, Command, Machine, Outcome, Tick, apply_at, stepping
from goqueue.model.errors import BatchTooLarge, CoordinatorFailed, GoQueueError, NotCoordinator
from goqueue.runtime.ahead import DirectChanges, OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.deadline import RETRY_MS
from goqueue.runtime.freeing import Freeing
from goqueue.runtime.ledger import SLICE_COST, Ledger, Reading
from goqueue.runtime.life import Faults, Life
from goqueue.runtime.loading import Loading
from goqueue.telemetry.calls import call_each, first_fault
from goqueue.telemetry.logs import get_logger

events = get_logger("runtime")

WAIT_MS_MAX = 1000
"""How long commands wait for a coordinator that is being loaded."""
INBOX_MAX = 1000
"""How many of them; the others are refused at once."""

COST_OF_OPENING = 8
"""Of a command that is decided at a load, as `SLICE_COST` counts: 2 ms are 32 of them."""

M = TypeVar("M", bound=Machine)
R = TypeVar("R")
_ACTIVE = Life.ACTIVE  # looking up enum members costs


class Coordinator(DirectChanges[M]):
    """Invariant: while it is active, the machine's state is what its ledger holds, plus what a restart may forget.
    Invariant: it has a machine while it is active; and when its ledger failed, for questions.
    """

    def __init__(
        self,
        name: str,
        make_machine: Callable[[], M],
        ledger: Ledger,
        clock: Clock,
        freeing: Freeing | None = None,
    ) -> None:
        """`freeing`: of the machines of all coordinators of a node."""
        super().__init__(name, ledger, clock)
        self._make_machine = make_machine
        self._freeing = freeing or Freeing(clock.call_soon)
        self._faults = Faults()
        self._loading: Loading[M] | None = None
        self._refuses_waiting = False
        self._waiting: dict[int, OnReply[Any]] = {}
        self._next_ticket = 1
        self._inbox: deque[tuple[Command[Any], OnReply[Any] | None]] = deque()
        self.command: Command[Any] | None = None
        """What is being decided, or was last."""

    # -- its life

    def load_now(self) -> None:
        """Rebuild the machine from its ledger here and now: for a start, before anybody is served."""
        machine = self._begin()
        self._ledger.replay(machine, self._clock.now_ms())
        for _ in self._opening(machine):
            pass
        if self._is_loading(None):
            self._loaded(machine)

    def load(self, warm: tuple[M, Reading] | None = None) -> None:
        """Rebuild the machine from its ledger in slices; commands wait meanwhile. Nothing happens if it is loaded.
        `warm`: a machine that was told of most already, and of how much (see `Standby`)."""
        if self._life in (Life.LOADING, _ACTIVE):
            return
        machine, reading = (self._begin(), None) if warm is None else (self._begin_with(warm[0]), warm[1])
        self._retry = self._clock.call_after(WAIT_MS_MAX, self._refuse_waiting)
        self._loading = Loading(
            self._ledger, self._clock, machine, self._opening, self._loaded, self._stay_failed, reading
        )
        self._loading.begin()

    def unload(self, why: GoQueueError | None = None) -> None:
        """Out of service here. Whoever waits is told first: nobody knows whether what was decided will stay."""
        error = why or NotCoordinator(f"{self.name} is not in service on this node any more")
        decided, self._decided = self._decided, deque()
        self._ledger.abandon_snapshot()
        self._failure = error
        calls = self._retire(Life.UNLOADED)
        calls += [partial(on_reply, error) for replies in decided for on_reply, _ in replies]
        call_each([*calls, *self._refused()])

    def let_go(self) -> None:
        """It is not loaded again: hold on to nobody who may hold on to it. What was opened at the start is frozen, and
        no collector of cycles would ever close the files of its ledger."""
        self.after_apply = lambda facts: None
        self.after_number = lambda fact: None
        self.before_apply = None
        self.to_open = lambda machine: iter(())
        self.on_loaded = lambda: None
        self.on_given_up = lambda: None

    def stop(self) -> None:
        """The node stops: no timer fires and nothing is written after this. Stopping twice is fine."""
        if self._unstored:
            self._store()
        machine = self._machine
        if machine is not None and self._life is _ACTIVE:
            self._ledger.snapshot(machine, self._clock.now_ms())
        self._failure = GoQueueError(f"{self.name} has stopped")
        self._machine = None  # at once: there are no turns any more
        self._retire(Life.UNLOADED)

    def _begin(self) -> M:
        return self._begin_with(self._make_machine())

    def _begin_with(self, machine: M) -> M:
        self._stop_retry()
        self._stop_watching()
        self._life, self._failure = Life.LOADING, None
        self._refuses_waiting = False
        return machine

    def _is_loading(self, load: Loading[M] | None) -> bool:
        """Still, and not anew because of a fault."""
        return self._life is Life.LOADING and self._loading is load

    def _opening(self, machine: M) -> Iterator[None]:
        load, cost = self._loading, 0
        try:
            for command, on_reply in self.to_open(machine):
                outcome = self._decide(machine, command, self._clock.now_ms(), on_reply)
                if outcome is not None:
                    self._give(outcome)
                    cost += len(outcome.facts)
                if not self._is_loading(load):
                    return
                cost += COST_OF_OPENING
                if cost >= SLICE_COST:
                    cost = 0
                    yield
        except Exception as fault:  # noqa: BLE001  what a restart forgets was not told
            self._begin_anew(fault, "what is due after a load")

    def _loaded(self, machine: M) -> None:
        self._activate(machine)
        self._work()

    def _activate(self, machine: M) -> None:
        self._stop_retry()
        assert not self._unstored, f"{self.name}: whoever changed the machine before was told"
        assert not self._waiting, self.name
        self._machine, self._life, self._loading = machine, _ACTIVE, None
        self.loads += 1
        self._watch_clock(machine)
        self._faults.became_active(self._now_ms())
        was_busy, self._busy = self._busy, True  # what is submitted meanwhile comes after it
        try:
            self._deadline.set(machine.next_deadline_ms())
            self.on_loaded()
        except Exception as fault:  # noqa: BLE001  what is due was not done
            self._begin_anew(fault, "what is due after a load")
        finally:
            self._busy = was_busy

    def _retire(self, life: Life) -> list[Callable[[], None]]:
        """Without a machine from here on. Returns what tells those who wait for a reply that nobody decided yet."""
        going = self._machine if self._loading is None else self._loading.stop()
        if going is not None:
            self._freeing.free(going)
        self._life, self._machine, self._loading = life, None, None
        self._stop_time()
        self._stop_retry()
        error = self._failure or CoordinatorFailed(f"{self.name} has no state")
        waiting, self._waiting = list(self._waiting.values()), {}
        return [*(partial(on_reply, error) for on_reply in waiting), *self._untold(error)]

    def _begin_anew(self, fault: Exception, what: str) -> None:
        """Nothing is believed of a state that may not be what the ledger says: it is read again."""
        self._faults.count += 1
        events.error("coordinator failed", coordinator=self.name, command=what, exc_info=fault)
        backoff_ms = self._faults.backoff_ms(self._now_ms())
        if backoff_ms:
            why = (
                f"{self.name} is out of service for {backoff_ms // 1000} s: it met a fault of the node at {what}, again"
            )
            self._stay_failed(CoordinatorFailed(f"{why}; see its log"), backoff_ms)
            return
        why = f"{self.name} met a fault of the node at {what} and reads its ledger again: what it was asked may be done"
        self._failure = CoordinatorFailed(why)
        calls = self._retire(Life.UNLOADED)
        self.load()
        call_each(calls)

    def _stay_failed(self, error: GoQueueError, backoff_ms: int = 0) -> None:
        """Until the time is over; without one until the node is restarted, since a ledger that failed stays so."""
        if self._life in (Life.FAILED, Life.UNLOADED):
            return
        events.error("coordinator stopped", coordinator=self.name, reason=str(error))
        self._failure = error
        # What a ledger that failed had taken may be read on: nobody is told of it, since it is never confirmed.
        machine = self._machine if error is self._ledger.failure else None
        calls = self._retire(Life.FAILED)
        self._machine = machine
        if not backoff_ms and error.retriable:
            backoff_ms = self._faults.backoff_ms(self._now_ms()) or RETRY_MS
        if backoff_ms:
            self._retry = self._clock.call_after(backoff_ms, self.load)
        else:
            calls.append(self.on_given_up)
        call_each([*calls, *self._refused()])

    def _refuse_waiting(self) -> None:
        """It takes long: commands of clients are not kept any more, so that they may ask elsewhere or later."""
        self._retry, self._refuses_waiting = None, True
        call_each(self._refused())

    def _refused(self) -> list[Callable[[], None]]:
        """What refuses those in the inbox. Ours that want no reply stay while there will be a machine."""
        error, inbox = self.not_taken(), list(self._inbox)
        self._inbox.clear()
        if self._life is Life.LOADING:
            self._inbox.extend(each for each in inbox if each[1] is None)
        return [partial(on_reply, error) for _, on_reply in inbox if on_reply is not None]

    @property
    def faults(self) -> int:
        """Commands that met a fault of ours."""
        return self._faults.count

    # -- commands

    def submit(self, command: Command[R], on_reply: OnReply[R] | None = None) -> None:
        """Decide `command`; `on_reply` is called when its reply may be given, perhaps at once."""
        if self._life is not _ACTIVE:
            self._submit_inactive(command, on_reply)
            return
        self._inbox.append((command, on_reply))
        if not self._busy:  # else it was submitted from within a reply: its turn comes
            self._work()

    def _submit_inactive(self, command: Command[Any], on_reply: OnReply[Any] | None) -> None:
        is_kept = self._life is Life.LOADING and len(self._inbox) < INBOX_MAX
        if is_kept and (on_reply is None or not self._refuses_waiting):
            self._inbox.append((command, on_reply))
        elif on_reply is not None:
            on_reply(self.not_taken())

    def _work(self) -> None:
        if self._ledger.replica.is_resting:
            self._ledger.replica.when_awake(self._work)
            return
        self._busy = True
        fault: Exception | None = None
        try:
            while self._inbox and self._life is _ACTIVE:
                try:
                    self._handle(*self._inbox.popleft())
                except Exception as error:  # noqa: BLE001  of whoever was answered: those behind it must have their turn
                    fault = first_fault(fault, error)
        finally:
            self._busy = False
        if fault is not None:
            try:
                raise fault
            finally:
                del fault  # it holds this frame

    def _handle(self, command: Command[Any], on_reply: OnReply[Any] | None) -> None:
        if self._unstored:
            self._store()
        machine = self._machine
        if machine is None or self._life is not _ACTIVE:  # it met a fault just now: this command waits with the others
            self._submit_inactive(command, on_reply)
            return
        now_ms = self._clock.now_ms()
        if self._steps is not None and (by_ms := self._steps.step_ms(now_ms)):
            self._inbox.appendleft((command, on_reply))  # what was decided is put right first
            command, on_reply = ClockSet(by_ms), None
        outcome = self._decide(machine, command, now_ms, on_reply)
        if outcome is None:
            return
        try:
            if outcome.facts:
                self.after_apply(outcome.facts)
            self._deadline.set(machine.next_deadline_ms())
        except Exception as fault:  # noqa: BLE001  what has to be done about the facts was not done
            self._begin_anew(fault, type(command).__name__)
            return
        self._give(outcome)
        if outcome.facts and machine is self._machine:
            self._ledger.maybe_snapshot(machine, now_ms)

    def _decide(self, machine: M, command: Command[Any], now_ms: int, on_reply: OnReply[Any] | None) -> Outcome | None:
        """Decide, store, apply. None: nothing came of it, and whoever asked was told."""
        self.command = command
        ticket = self._next_ticket
        self._next_ticket += 1
        is_decided = False
        try:
            if isinstance(command, ClockSet):
                stepped = stepping(machine)
                assert stepped is not None
                outcome = Outcome(stepped.clock_set(command.by_ms, now_ms), [])
            else:
                outcome = machine.decide(command, ticket, now_ms)
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
            if self.before_apply is not None and outcome.facts:
                self.before_apply(outcome.facts)
            for fact in outcome.facts:
                apply_at(machine, fact, offset)
                offset += len(fact.stored_keys()) if fact.is_tombstone else fact.durable
        except Exception as fault:  # noqa: BLE001  from here on the state is not what the ledger says
            self._begin_anew(fault, type(command).__name__)
            return None
        return outcome

    def _not_stored(self, error: GoQueueError, on_reply: OnReply[Any] | None) -> None:
        # Too much for one batch is refused like anything that finds no room: the ledger is none the worse for it.
        if not error.retriable and not isinstance(error, BatchTooLarge):
            try:
                self._stay_failed(error)
            finally:
                if on_reply is not None:
                    on_reply(error)
            return
        if isinstance(self.command, ClockSet) and error.retriable:
            self._clock.call_after(RETRY_MS, partial(self._set_clock_again, self.loads, self.command))
        try:
            if on_reply is not None:
                on_reply(error)
        finally:
            if self._machine is not None:
                self._deadline.try_later(self._machine.next_deadline_ms())

    def _not_decided(self, fault: Exception, command: Command[Any], on_reply: OnReply[Any] | None) -> None:
        """Nothing was changed, since `decide` only reads: the next command may fare better. But who cannot decide a
        Tick has no deadlines any more, and must not go on as if it had; and who fails again and again may have a state
        that is not what the ledger says.
        """
        kind = type(command).__name__
        error = CoordinatorFailed(f"{self.name} could not decide {kind}: a fault of the node, see its log")
        try:
            if isinstance(command, Tick | ClockSet) or self._faults.is_reread_due(self._now_ms()):
                self._begin_anew(fault, kind)
            else:
                self._faults.count += 1
                events.error("command failed", coordinator=self.name, command=kind, exc_info=fault)
        finally:
            if on_reply is not None:
                on_reply(error)

    def _give(self, outcome: Outcome) -> None:
        waiting = self._waiting
        ready = [(waiting.pop(ticket), reply) for ticket, reply in outcome.replies if ticket in waiting]
        if not ready:
            return
        if self._ledger.is_stale and not any(fact.durable for fact in outcome.facts):
            call_each(partial(on_reply, self.stale()) for on_reply, _ in ready)
            return
        if outcome.is_immediate and len(ready) == 1:  # as most are
            ((on_reply, reply),) = ready
            on_reply(reply)
            return
        if outcome.is_immediate:
            call_each(partial(on_reply, reply) for on_reply, reply in ready)
            return
        self._leave_durable(ready)

    @property
    def is_busy(self) -> bool:
        """A command submitted now would wait for its turn: this is asked from within a reply."""
        return self._busy

"""Changes that a machine makes ahead of its ledger: at once, outside `decide`. What one turn of the loop changed is
stored together, and nobody is told of it before that is durable.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from goqueue.machines.machine import Ahead, ClockSet, Command, Fact, Machine
from goqueue.model.errors import BatchTooLarge, CoordinatorFailed, GoQueueError, Indeterminate
from goqueue.runtime.clock import Clock, Timer
from goqueue.runtime.company import LINGER_MS, Company
from goqueue.runtime.ledger import Ledger
from goqueue.runtime.life import Life
from goqueue.runtime.timed import Timed
from goqueue.telemetry.calls import call_each

M = TypeVar("M", bound=Machine)
OnStored = Callable[[GoQueueError | None], None]
"""None: it is durable."""
R = TypeVar("R")
OnReply = Callable[[R | GoQueueError], None]
"""Gets the machine's reply, or a GoQueueError if the ledger or the coordinator failed."""
_ACTIVE = Life.ACTIVE  # looking up enum members costs
SWEEPS = 5
"""In so many looks a reply is found too late that must not be so late: never too early, up to a fifth too late."""
Replies = list[tuple[OnReply[Any], Any]]
"""To commands of all kinds: each was given with its command, which says what it gets."""


class DirectChanges(Timed[M], Generic[M]):
    """The part of a coordinator that sees to them."""

    def __init__(self, name: str, ledger: Ledger, clock: Clock) -> None:
        super().__init__(name, ledger, clock)
        self._busy = False
        self._unstored: list[OnStored] = []
        """Of whoever has changed the state of a machine that is ahead."""
        self._store_is_due = False
        self._company = Company()
        self._lingering: Timer | None = None
        self._decided: deque[Replies] = deque()
        """Replies that leave when the ledger is durable, in that order."""
        self.reply_ms_max: int | None = None
        """How long they wait for other copies: then whoever asked is told that it may have been done or not. None: for
        as long as it takes."""
        self._is_sweeping = False
        self.to_open: Callable[[M], Iterator[tuple[Command[Any], OnReply[Any]]]] = lambda machine: iter(())
        """What is decided at each load, in slices, before it becomes active: nobody may see a state that is told only
        half of what a restart forgets. Nobody is called with the facts."""
        self.on_loaded: Callable[[], None] = lambda: None
        """Called each time it became active, before any command: whoever acts on facts asks the machine what is due,
        and tells it what a restart forgets. It must not walk over the state."""
        self.on_given_up: Callable[[], None] = lambda: None
        """Called when it is out of service until the node is restarted: who waits for what it has decided is told."""
        self.before_apply: Callable[[list[Fact]], None] | None = None
        """Called with facts that are stored and will be applied next."""
        self.after_apply: Callable[[list[Fact]], None] = lambda facts: None
        """Called with facts that were applied, before anybody is told: something may have to be done about them
        outside, perhaps not before they are durable."""
        self.after_number: Callable[[Fact], None] = lambda fact: None
        """Likewise, with what was stored ahead as a number and changes nothing else that anybody keeps."""

    @abstractmethod
    def _begin_anew(self, fault: Exception, what: str) -> None: ...

    @abstractmethod
    def _stay_failed(self, error: GoQueueError, backoff_ms: int = 0) -> None: ...

    @property
    def takes_changes(self) -> bool:
        """The machine may be changed directly now, if the time does not matter. Else ask with a command."""
        return not self._busy and self._life is _ACTIVE and not self._ledger.replica.is_resting

    def directly(self) -> int | None:
        """The time at which the machine may be changed directly. None: not now, ask with a command."""
        if self._busy or self._life is not _ACTIVE or self._ledger.replica.is_resting:
            return None
        now_ms = self._clock.now_ms()
        if self._steps is not None and (by_ms := self._steps.step_ms(now_ms)):
            self.submit(ClockSet(by_ms))
            return None
        return now_ms

    def deadline_set(self, due_ms: int) -> None:
        """The machine has a new deadline."""
        set_ms = self._deadline.due_ms
        if set_ms is None or due_ms < set_ms:
            self._deadline.set(self.peek().next_deadline_ms())

    def when_stored(self, call: OnStored) -> None:
        """The machine was changed directly: store that with all others of this turn, and call when it is durable, or
        with an error: then it was taken back, or nobody knows.
        """
        self._unstored.append(call)
        if not self._store_is_due:
            self._store_is_due = True
            self._clock.call_soon(self._turn_ends)
        elif self._lingering is not None and self._company.is_here(len(self._unstored)):
            self._company.came()
            self._lingering.cancel()
            self._lingering = None
            self._clock.call_soon(self._turn_ends)

    def _turn_ends(self) -> None:
        here, replica = len(self._unstored), self._ledger.replica
        if not here:
            self._store_is_due = False
        elif replica.high_watermark < replica.log.end_offset and replica.failure is None:
            self._ledger.when_durable(self._sync_ends)  # what comes while the disk is busy goes into the next sync
        elif self._company.is_awaited(here):
            self._lingering = self._clock.call_after(LINGER_MS, self._linger_ends)
        elif replica.is_resting:
            replica.when_awake(self._turn_ends)
        else:
            self._store_is_due = False
            self._store()

    def _sync_ends(self) -> None:
        self._company.sync_ended(len(self._unstored))
        self._turn_ends()

    def _linger_ends(self) -> None:
        if self._company.still_comes(len(self._unstored)):
            self._lingering = self._clock.call_after(LINGER_MS, self._linger_ends)
            return
        self._lingering = None
        self._company.waited_in_vain()
        self._turn_ends()

    def _store(self) -> None:
        machine, calls = self._machine, self._unstored
        if machine is None or self._life is not _ACTIVE:
            call_each(self._untold(self.refusal()))
            return
        self._unstored = []
        now_ms = self._clock.now_ms()
        changed: Ahead = machine.direct  # type: ignore[attr-defined]  # who was changed directly has it
        facts: list[Fact] = []
        try:
            number = changed.number_ahead()
            if number is None:
                facts = changed.facts_ahead(now_ms)
        except Exception as fault:  # noqa: BLE001  whoever waits must hear of it
            self._unknown(fault, calls)
            return
        try:
            if number is None:
                self._ledger.append(facts, now_ms)
            else:
                self._ledger.append_number(*number, now_ms)
        except GoQueueError as error:
            self._not_kept(changed, error.kept(), calls)
            return
        try:
            if number is None:
                for fact in facts:
                    machine.apply(fact)
                self.after_apply(facts)
            else:
                self.after_number(changed.number_stored(now_ms))
        except Exception as fault:  # noqa: BLE001  from here on the state is not what the ledger says
            self._unknown(fault, calls)
            return
        self._tell_stored(calls)
        self._ledger.maybe_snapshot(machine, now_ms)

    def _tell_stored(self, calls: list[OnStored]) -> None:
        replica = self._ledger.replica
        if self._decided or replica.high_watermark < replica.log.end_offset:
            self._company.stored(len(calls))
            self._leave_durable([(call, None) for call in calls])
            return
        self._company.stored(0)
        if len(calls) == 1:
            calls[0](None)
        else:
            call_each(partial(call, None) for call in calls)

    def _unknown(self, fault: Exception, calls: list[OnStored]) -> None:
        unknown = CoordinatorFailed(f"{self.name} met a fault of the node: what it was asked may be done")
        call_each([partial(self._begin_anew, fault, "settling"), *(partial(call, unknown) for call in calls)])

    def _not_kept(self, changed: Ahead, error: GoQueueError, calls: list[OnStored]) -> None:
        changed.take_back(self._clock.now_ms())
        self._deadline.set(self.peek().next_deadline_ms())
        told = [partial(call, error) for call in calls]
        if error.retriable or isinstance(error, BatchTooLarge):
            call_each(told)
        else:
            call_each([partial(self._stay_failed, error), *told])

    def _untold(self, error: GoQueueError) -> list[Callable[[], None]]:
        """What tells those whose changes were not stored, and will not be."""
        calls, self._unstored = self._unstored, []
        return [partial(call, error) for call in calls]

    def _leave_durable(self, replies: Replies) -> None:
        self._decided.append(replies)
        self._ledger.when_durable(partial(self._give_durable, self._decided))
        if self.reply_ms_max is not None and not self._is_sweeping and self._ledger.replica.has_followers:
            self._is_sweeping = True
            self._clock.call_after(self.reply_ms_max / SWEEPS, partial(self._sweep, self.reply_ms_max, deque()))

    def _sweep(self, ms_max: int, newest: deque[Replies]) -> None:
        """`newest`: who came last before each of the last looks. Whoever is in the line still, up to the first of
        them, has waited too long."""
        line, self._is_sweeping = self._decided, bool(self._decided)
        if not line:
            return
        newest.append(line[-1])
        self._clock.call_after(ms_max / SWEEPS, partial(self._sweep, ms_max, newest))
        if len(newest) <= SWEEPS:
            return
        last, calls = newest.popleft(), list[Callable[[], None]]()
        if any(each is last for each in line):
            unknown = Indeterminate(f"{self.name}: too few copies have it by now; it may have been done or not")
            for replies in line:
                calls += [partial(on_reply, unknown) for on_reply, _ in replies]
                replies.clear()  # its place in the line stays
                if replies is last:
                    break
        call_each(calls)

    def _give_durable(self, decided: deque[Replies]) -> None:
        if not decided or decided is not self._decided:
            return  # they were told that it was unloaded
        ready, failure = decided.popleft(), self._ledger.failure
        if failure is None:
            if len(ready) == 1:
                ((on_reply, reply),) = ready
                on_reply(reply)
            else:
                call_each(partial(on_reply, reply) for on_reply, reply in ready)
            return
        calls: list[Callable[[], None]] = [partial(on_reply, failure) for on_reply, _ in ready]
        call_each([*calls, partial(self._stay_failed, failure)])

    # -- questions see what is stored

    def when_durable(self, call: Callable[[], None]) -> None:
        if self._unstored and self._ledger.replica.is_resting:
            self._ledger.replica.when_awake(partial(self.when_durable, call))
            return
        if self._unstored:
            self._store()
        super().when_durable(call)

    @property
    def is_durable(self) -> bool:
        return not self._unstored and super().is_durable

    def confirm(self, on_confirmed: Callable[[GoQueueError | None], None]) -> None:
        if self._unstored and self._ledger.replica.is_resting:
            self._ledger.replica.when_awake(partial(self.confirm, on_confirmed))
            return
        if self._unstored:
            self._store()
        super().confirm(on_confirmed)

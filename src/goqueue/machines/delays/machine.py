"""Delays of one partition: records that wait for their time. They wait in the ledger and not in the log of the
partition, and when they are due they are published there, once.

Firing has two steps. A job, that is which records go into which partition as one batch and under which sequence, is
stored before anything is published. When the batch is durable in its partition, job and schedules are removed together.
After a crash in between the job is published again, alike, and the partition answers that it has it. So nothing is
published twice and nothing is lost.

Cancelled never fires: a cancel removes the schedule before any later tick can put it into a job, and one that is in a
job already cannot be cancelled.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, ClassVar

from goqueue.machines.delays.commands import (
    CancelSchedule,
    DelayMeasure,
    DropRecurring,
    EndTransactionSchedules,
    FiringDone,
    FollowHost,
    FoundRecurring,
    FoundSchedule,
    HoldRecurring,
    PauseRecurring,
    ReleaseRecurring,
    Reschedule,
    Schedule,
    ScheduleKey,
    StoreRecurring,
    TakeProducer,
)
from goqueue.machines.delays.decisions import DONE, DelayDecisions
from goqueue.machines.delays.facts import (
    Cancelled,
    ClockFollowed,
    DelayProducer,
    Firing,
    JobFinished,
    RecurringHeld,
    RecurringKept,
    RecurringParked,
    RecurringPaused,
    RecurringRan,
    RecurringReleased,
    RecurringStopped,
    RecurringStored,
    Removed,
    Scheduled,
    SchedulesDoomed,
    SchedulesPacked,
    Seen,
    TargetId,
    TargetKept,
    TargetSaved,
    TimePassed,
    TransactionEmpty,
    TransactionReleased,
    Unkept,
)
from goqueue.machines.delays.hosts import decide_follow
from goqueue.machines.delays.index import NOWHERE
from goqueue.machines.delays.jobs import FiringJob, firing_job
from goqueue.machines.delays.recurring import RECURRING_KINDS
from goqueue.machines.delays.slots import WAITING, Slots
from goqueue.machines.delays.state import TARGET_KINDS, DelayState
from goqueue.machines.machine import Fact, Outcome, Tick

LOOKED_AT_MAX = 1000
"""Of what is ready, to find the earliest."""
NOW = 0
"""As a deadline: there is something to do at once."""


class Delays:
    """Implements `Machine`."""

    def __init__(self, topic: str, topic_id: bytes, partition: int) -> None:
        state = self._state = DelayState(topic, TargetId(topic_id, partition))
        self._decisions = DelayDecisions(state)
        # Those of the machine itself are in a table of its class: here they would hold it, and it would never be freed.
        self._appliers: dict[type[Fact], Callable[[Any], None]] = {
            ClockFollowed: state.follow_clock,
            Firing: state.fire,
            RecurringHeld: state.recurrings.hold,
            RecurringKept: state.recurrings.keep,
            RecurringPaused: state.recurrings.pause,
            RecurringRan: state.recurrings.ran,
            RecurringReleased: state.recurrings.release,
            RecurringStopped: lambda fact: state.recurrings.stop(fact.number),
            RecurringStored: state.recurrings.store,
            Scheduled: state.schedule,
            SchedulesDoomed: state.doom,
            SchedulesPacked: state.unpack,
            TargetKept: state.keep,
            TargetSaved: state.keep,
            TimePassed: state.pass_time,
            TransactionEmpty: lambda fact: state.end(fact.producer_id, fact.producer_epoch),
            TransactionReleased: state.release,
            Unkept: state.leave_unkept,
        }

    # Questions

    def firing(self) -> list[FiringJob]:
        """Jobs that are not finished, in the order in which they must be published; after a restart alike."""
        return list(map(firing_job, self._state.jobs.values()))

    def find(self, offset: int) -> FoundSchedule | None:
        """None: fired, being fired, cancelled or never there."""
        slot = self._state.target.index.find(offset)
        return None if slot == NOWHERE else self._describe(offset, slot)

    def walk(self, after: int = -1) -> Iterator[FoundSchedule]:
        """What waits, by offset, from behind `after` on; nothing may change meanwhile."""
        return (self._describe(offset, slot) for offset, slot in self._state.target.index.walk(after))

    def count(self) -> int:
        """Of what waits."""
        return len(self._state.target.index)

    def _describe(self, offset: int, slot: int) -> FoundSchedule:
        slots, target = self._state.slots, self._state.target
        return FoundSchedule(
            ScheduleKey(target.topic, target.key.partition, offset),
            slots.due_ms[slot],
            slots.ledger_offset[slot],
            slots.body_bytes[slot],
            slots.state[slot] == WAITING,
        )

    def known_place(self) -> tuple[int, int]:
        """Epoch and offset of the highest place that was ever scheduled; NO_EPOCH and -1: nothing was."""
        return self._state.target.epoch, self._state.target.up_to

    def producer(self) -> tuple[int, int] | None:
        """Id and epoch under which due records are published."""
        return self._state.producer

    def has_open_transaction(self, producer_id: int) -> bool:
        """Whether anything waits for the end of this producer's transaction."""
        return producer_id in self._state.open

    def recurring(self) -> list[FoundRecurring]:
        return self._state.recurrings.found()

    def held_recurring(self) -> list[str]:
        """Names of those that do not run yet."""
        return self._state.recurrings.held()

    def has_recurring(self, name: str) -> bool:
        return name in self._state.recurrings

    def measure(self) -> DelayMeasure:
        state = self._state
        ready = state.target.ready
        due = [state.slots.due_ms[slot] for slot in islice(ready.walk(state.slots), LOOKED_AT_MAX)]
        earliest_ms = state.wheel.earliest_due_ms()
        near, *far = state.wheel.by_level()
        return DelayMeasure(
            pending=len(state.wheel) + ready.live,
            waiting_for_transaction=state.waiting,
            firing=state.firing,
            fired=state.fired,
            cancelled=state.cancelled,
            next_due_ms=min((*due, *(() if earliest_ms is None else (earliest_ms,))), default=-1),
            by_level=(near + ready.live, *far),
        )

    def next_deadline_ms(self) -> int | None:
        state = self._state
        if state.target.is_due:
            return NOW
        scheduled, recurring = state.wheel.next_deadline_ms(), state.recurrings.next_deadline_ms()
        if scheduled is None or recurring is None:
            return recurring if scheduled is None else scheduled
        return min(scheduled, recurring)

    def facts(self) -> Iterator[Fact]:
        return chain.from_iterable(self._pieces(self._state.slots))

    def frozen_facts(self) -> Iterator[Fact]:
        """Copied in bulk: with a million schedules that takes milliseconds, and packing them a hundred times that."""
        return chain.from_iterable(self._pieces(self._state.slots.copy()))

    def _pieces(self, slots: Slots) -> list[Iterable[Fact]]:
        """Everything but what comes out of `slots` is as it is now, whenever it is taken."""
        state = self._state
        pieces: list[Iterable[Fact]] = []
        if state.producer is not None:
            pieces.append([DelayProducer(*state.producer)])
        if state.set_back_ms:
            pieces.append([ClockFollowed(0, 0, state.set_back_ms)])
        target = state.target
        # What was released before what waits for a later transaction of the same producer.
        unkept = [target.unkept_fact(target.unkept)] if target.unkept else []
        pieces.append([target.saved(), *unkept, *target.released.values()])
        pieces += state.packed_schedules(slots)
        # The target again: a job leaves the sequence behind itself, and one after it may have been finished before it.
        again = [target.saved()] if target.jobs else []
        doomed = target.doomed_facts() if target.is_doomed else []
        pieces.append([*doomed, *state.jobs.values(), *again, *state.recurrings.facts()])
        return pieces

    # Decisions

    def clock_set(self, by_ms: int, now_ms: int) -> list[Fact]:
        return self._decisions.clock_set(by_ms, now_ms)

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        decisions = self._decisions
        reply: Any = DONE
        match command:
            case Schedule():
                facts, reply = decisions.schedule(command, now_ms)
            case Tick():
                return Outcome(decisions.tick(now_ms), [])
            case FiringDone():
                facts = decisions.finish(command.number)
            case FollowHost():
                facts, reply = decide_follow(self._state, command)
            case CancelSchedule():
                facts, reply = decisions.cancel(command)
            case Reschedule():
                facts, reply = decisions.reschedule(command, now_ms)
            case EndTransactionSchedules():
                facts = decisions.end_transaction(command, now_ms)
            case TakeProducer():
                facts = decisions.take_producer(command)
            case StoreRecurring() | HoldRecurring() | ReleaseRecurring() | PauseRecurring() | DropRecurring():
                facts, reply = self._state.recurrings.decide(command, self._state.target, now_ms)
            case _:
                raise TypeError(f"{command!r} is no command of this machine")
        return Outcome(facts, [(ticket, reply)])

    # Changes

    def apply(self, fact: Any) -> None:
        applier = self._appliers.get(type(fact))
        if applier is not None:
            applier(fact)
        else:
            self._OWN_APPLIERS[type(fact)](self, fact)

    def placed(self, fact: Any, ledger_offset: int) -> None:
        """Bodies stay in the ledger: this is where."""
        if isinstance(fact, Scheduled):
            self._state.place(ledger_offset)
        else:
            self._state.recurrings.place(fact.number, ledger_offset)

    def forget(self, key: bytes) -> None:
        kind = key[:1]
        if kind in TARGET_KINDS:
            self._state.forget(kind, key)
        else:
            assert kind in RECURRING_KINDS, key
            self._state.recurrings.forget(kind, key)

    def _see(self, fact: Seen) -> None:
        self._state.seen_ms = fact.now_ms

    def _take_producer(self, fact: DelayProducer) -> None:
        self._state.producer = fact.producer_id, fact.producer_epoch

    def _cancelled(self, fact: Cancelled) -> None:
        self._state.cancelled += 1
        self.forget(fact.raw)

    def _finished(self, fact: JobFinished) -> None:
        """Live, as opposed to `forget` at replay: so it is counted. Its schedules left the index when it began."""
        before = self._state.firing
        self.forget(fact.raw)
        self._state.fired += before - self._state.firing

    def _park(self, fact: RecurringParked) -> None:
        self._state.target.parked.append(fact.number)
        self._state.recurrings.park(fact.number)

    _OWN_APPLIERS: ClassVar[dict[type[Fact], Callable[[Any, Any], None]]] = {
        Cancelled: _cancelled,
        DelayProducer: _take_producer,
        JobFinished: _finished,
        RecurringParked: _park,
        Removed: lambda self, fact: self.forget(fact.raw),
        Seen: _see,
    }

"""Delays: records that wait for their time. They wait in the ledger and not in the log of their topic, and when
they are due they are published there, once.

Firing has two steps. A job, that is which records go into which partition as one batch and under which sequence, is
stored before anything is published. When the batch is durable in its partition, job and schedules are removed together.
After a crash in between the job is published again, alike, and the partition answers that it has it. So nothing is
published twice and nothing is lost.

Cancelled never fires: a cancel removes the schedule before any later tick can put it into a job, and one that is in a
job already cannot be cancelled.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from goqueue.machines.delays.commands import (
    NO_EPOCH,
    CancelSchedule,
    DelayMeasure,
    DropRecurring,
    EndTransactionSchedules,
    FiringDone,
    FollowHost,
    ForgetTopic,
    FoundRecurring,
    FoundSchedule,
    Reschedule,
    Schedule,
    ScheduleKey,
    StoreRecurring,
    TakeProducer,
)
from goqueue.machines.delays.decisions import DONE, DelayDecisions
from goqueue.machines.delays.facts import (
    FORGOTTEN,
    Cancelled,
    ClockFollowed,
    DelayProducer,
    Firing,
    JobFinished,
    RecurringKept,
    RecurringParked,
    RecurringRan,
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
    TopicForgotten,
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
from goqueue.machines.delays.target import Target
from goqueue.machines.machine import Fact, Outcome, Tick

LOOKED_AT_MAX = 1000
"""Of what is ready for a partition, to find the earliest."""
NOW = 0
"""As a deadline: there is something to do at once."""


class Delays:
    """Implements `Machine`."""

    def __init__(self) -> None:
        state = self._state = DelayState()
        self._decisions = DelayDecisions(state)
        self._appliers: dict[type[Fact], Callable[[Any], None]] = {
            Cancelled: self._cancelled,
            ClockFollowed: state.follow_clock,
            DelayProducer: self._take_producer,
            Firing: state.fire,
            JobFinished: self._finished,
            RecurringKept: self._keep_recurring,
            RecurringParked: self._park,
            RecurringRan: state.recurrings.ran,
            RecurringStopped: lambda fact: state.recurrings.stop(fact.number),
            RecurringStored: self._store_recurring,
            Removed: lambda fact: self.forget(fact.raw),
            Scheduled: state.schedule,
            SchedulesDoomed: state.doom,
            SchedulesPacked: state.unpack,
            Seen: self._see,
            TargetKept: state.keep,
            TargetSaved: state.keep,
            TimePassed: state.pass_time,
            TopicForgotten: lambda fact: state.forget_topic(fact.topic_id),
            TransactionEmpty: lambda fact: state.end(
                state.targets[fact.target_number], fact.producer_id, fact.producer_epoch
            ),
            TransactionReleased: state.release,
            Unkept: state.leave_unkept,
        }

    # Questions

    def firing(self) -> list[FiringJob]:
        """Jobs that are not finished, in the order in which they must be published; after a restart alike."""
        return list(map(firing_job, self._state.jobs.values()))

    def find(self, key: ScheduleKey) -> FoundSchedule | None:
        """None: fired, being fired, cancelled or never there."""
        target = self._state.find(key.topic, key.partition)
        slot = NOWHERE if target is None else target.index.find(key.offset)
        return None if target is None or slot == NOWHERE else self._describe(target, key.offset, slot)

    def pending(self, topic: str, partition: int | None, after: ScheduleKey | None, limit: int) -> list[FoundSchedule]:
        """By partition and offset, from behind `after` on."""
        partitions = sorted(self._state.by_name.get(topic, {})) if partition is None else [partition]
        return list(islice(self._walk(topic, partitions, after), limit))

    def count(self, topic: str) -> int:
        """Of what waits for `topic`."""
        return sum(len(target.index) for target in self._state.by_name.get(topic, {}).values())

    def _walk(self, topic: str, partitions: list[int], after: ScheduleKey | None) -> Iterator[FoundSchedule]:
        for partition in partitions:
            target = self._state.find(topic, partition)
            if target is None or (after is not None and partition < after.partition):
                continue
            behind = after.offset if after is not None and partition == after.partition else -1
            for offset, slot in target.index.walk(behind):
                yield self._describe(target, offset, slot)

    def pending_by_topic(self) -> dict[str, int]:
        """Only topics for which something waits."""
        counts = {
            topic: sum(len(target.index) for target in targets.values() if not target.is_forgotten)
            for topic, targets in self._state.by_name.items()
        }
        return {topic: count for topic, count in sorted(counts.items()) if count}

    def _describe(self, target: Target, offset: int, slot: int) -> FoundSchedule:
        slots = self._state.slots
        return FoundSchedule(
            ScheduleKey(target.topic, target.key.partition, offset),
            slots.due_ms[slot],
            slots.ledger_offset[slot],
            slots.body_bytes[slot],
            slots.state[slot] == WAITING,
        )

    def known_place(self, topic_id: bytes, partition: int) -> tuple[int, int]:
        """Epoch and offset of the highest place that was ever scheduled there; NO_EPOCH and -1: nothing was."""
        target = self._state.by_id.get(TargetId(topic_id, partition))
        return (NO_EPOCH, -1) if target is None else (target.epoch, target.up_to)

    def is_known(self, topic_id: bytes, partition: int) -> bool:
        """Whether anything is stored about this partition."""
        return TargetId(topic_id, partition) in self._state.by_id

    def producer(self) -> tuple[int, int] | None:
        """Id and epoch under which due records are published."""
        return self._state.producer

    def has_open_transaction(self, producer_id: int) -> bool:
        """Whether anything waits for the end of this producer's transaction."""
        return producer_id in self._state.open

    def recurring(self) -> list[FoundRecurring]:
        return self._state.recurrings.found()

    def measure(self) -> DelayMeasure:
        state = self._state
        ready = [target.ready for target in state.targets.values() if target.ready.live]
        due = [state.slots.due_ms[slot] for queue in ready for slot in islice(queue.walk(state.slots), LOOKED_AT_MAX)]
        earliest_ms = state.wheel.earliest_due_ms()
        near, *far = state.wheel.by_level()
        ready_count = sum(queue.live for queue in ready)
        return DelayMeasure(
            pending=len(state.wheel) + ready_count,
            waiting_for_transaction=state.waiting,
            firing=state.firing,
            fired=state.fired,
            cancelled=state.cancelled,
            next_due_ms=min((*due, *(() if earliest_ms is None else (earliest_ms,))), default=-1),
            by_level=(near + ready_count, *far),
        )

    def next_deadline_ms(self) -> int | None:
        state = self._state
        if state.fireable or state.doomed:
            return NOW
        deadlines = (state.wheel.next_deadline_ms(), state.recurrings.next_deadline_ms())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

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
        for target in state.targets.values():
            # What was released before what waits for a later transaction of the same producer.
            unkept = [target.unkept_fact(target.unkept)] if target.unkept else []
            pieces.append([target.saved(), *unkept, *target.released.values()])
            pieces += state.packed_schedules(target, slots)
            pieces.append(target.doomed_facts())
        # The targets again: a job leaves the sequence behind itself, and one after it may have been finished before it.
        again = [target.saved() for target in state.targets.values() if target.jobs]
        pieces.append([*state.jobs.values(), *again, *state.recurrings.facts(), *map(TopicForgotten, state.forgotten)])
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
            case ForgetTopic():
                facts = decisions.forget_topic(command)
            case StoreRecurring():
                facts, reply = decisions.store_recurring(command, now_ms)
            case DropRecurring():
                facts, reply = self._state.recurrings.decide_drop(command.name)
            case _:
                raise TypeError(f"{command!r} is no command of this machine")
        return Outcome(facts, [(ticket, reply)])

    # Changes

    def apply(self, fact: Any) -> None:
        self._appliers[type(fact)](fact)

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
        elif kind in RECURRING_KINDS:
            self._state.recurrings.forget(kind, key)
        else:
            assert kind == FORGOTTEN, key
            self._state.forgotten.discard(key[1:])

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

    def _store_recurring(self, fact: RecurringStored) -> None:
        self._state.target(fact.topic, TargetId(fact.topic_id, fact.partition))
        self._state.recurrings.store(fact)

    def _keep_recurring(self, fact: RecurringKept) -> None:
        self._state.target(fact.topic, TargetId(fact.topic_id, fact.partition))
        self._state.recurrings.keep(fact)

    def _park(self, fact: RecurringParked) -> None:
        recurrings = self._state.recurrings
        self._state.by_id[recurrings.get(fact.number).target].parked.append(fact.number)
        recurrings.park(fact.number)

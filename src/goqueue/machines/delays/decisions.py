"""What the delay machine decides: from a command and the state to facts. Nothing is changed here."""

from array import array

from goqueue.machines.delays.commands import (
    NO_PRODUCER,
    CancelSchedule,
    EndTransactionSchedules,
    Reschedule,
    Schedule,
    ScheduleReply,
    TakeProducer,
)
from goqueue.machines.delays.facts import (
    DOOMED_MAX,
    RELEASE,
    SCHEDULE,
    UNKEPT,
    Cancelled,
    ClockFollowed,
    DelayProducer,
    JobFinished,
    RecurringParked,
    Removed,
    Scheduled,
    SchedulesDoomed,
    Seen,
    TimePassed,
    TransactionEmpty,
    TransactionReleased,
    packed,
    schedule_keys,
    target_key,
    unpacked,
)
from goqueue.machines.delays.firing import FiringPlan
from goqueue.machines.delays.index import NOWHERE
from goqueue.machines.delays.slots import WAITING
from goqueue.machines.delays.state import DelayState
from goqueue.machines.delays.target import Target
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code

DUE_MS_MAX = 1 << 62
REMOVALS_PER_TICK_MAX = 1000

DONE = ScheduleReply(Code.NONE)


class DelayDecisions:
    def __init__(self, state: DelayState) -> None:
        self._state = state

    # Schedules

    def schedule(self, command: Schedule, now_ms: int) -> tuple[list[Fact], ScheduleReply]:
        target, epoch = self._state.target, command.epoch
        (topic_id, partition), topic = target.key, target.topic
        producer = command.producer_id, command.producer_epoch
        facts: list[Fact] = [Seen(now_ms)]
        found: set[int] = set()
        for offset, due_ms, body, is_delay in command.schedules:
            if not target.knows(epoch, offset):
                if abs(due_ms) > DUE_MS_MAX:
                    return [], ScheduleReply(Code.INVALID_REQUEST, f"{due_ms} is no time to deliver at")
                facts.append(Scheduled(topic, topic_id, partition, offset, due_ms, body, *producer, epoch, is_delay))
                found.add(offset)
        if not found.isdisjoint(target.unkept):
            left = target.unkept - found
            facts.append(target.unkept_fact(left) if left else Removed(target_key(UNKEPT, target.key)))
        return (facts, DONE) if len(facts) > 1 else ([], DONE)

    def cancel(self, command: CancelSchedule) -> tuple[list[Fact], ScheduleReply]:
        target, offset = self._state.target, command.offset
        slot = target.index.find(offset)
        if slot == NOWHERE:
            return [], _refusal(target, offset)
        # The tombstone must not be all that told of the highest offset.
        kept = [target.kept()] if offset > target.kept_up_to else []
        return [*kept, Cancelled(target_key(SCHEDULE, target.key, offset))], DONE

    def reschedule(self, command: Reschedule, now_ms: int) -> tuple[list[Fact], ScheduleReply]:
        target, offset = self._state.target, command.offset
        slot = target.index.find(offset)
        if slot == NOWHERE:
            return [], _refusal(target, offset)
        if abs(command.due_ms) > DUE_MS_MAX:
            return [], ScheduleReply(Code.INVALID_REQUEST, f"{command.due_ms} is no time to deliver at")
        producer = NO_PRODUCER, -1
        if self._state.slots.state[slot] == WAITING:
            producer = self._state.producer_of(offset)
        scheduled = Scheduled(target.topic, *target.key, offset, command.due_ms, command.body, *producer, target.epoch)
        return [Seen(now_ms), scheduled], DONE

    def end_transaction(self, command: EndTransactionSchedules, now_ms: int) -> list[Fact]:
        target = self._state.target
        producer = command.producer_id, command.producer_epoch
        offsets = self._state.in_transaction(*producer)
        if not offsets:
            return [TransactionEmpty(*producer)] if command.producer_id in self._state.open else []
        if command.is_commit:
            return [Seen(now_ms), TransactionReleased(target.topic, *target.key, *producer, max(offsets))]
        facts: list[Fact] = [target.kept()] if max(offsets) > target.kept_up_to else []
        for first in range(0, len(offsets), DOOMED_MAX):
            some = packed(array("q", offsets[first : first + DOOMED_MAX]))
            facts.append(SchedulesDoomed(target.topic, *target.key, some, (), *producer))
        return facts

    # Firing

    def take_producer(self, command: TakeProducer) -> list[Fact]:
        """The first one stays: unfinished jobs may have been published under it."""
        if self._state.producer is not None:
            return []
        return [DelayProducer(command.producer_id, command.producer_epoch)]

    def finish(self, number: int) -> list[Fact]:
        fact = self._state.jobs.get(number)
        if fact is None:
            return []
        target = self._state.target
        scheduled = () if fact.recurring else schedule_keys(target.key, unpacked("q", fact.offsets))
        facts: list[Fact] = [target.kept(), JobFinished(fact.key(), scheduled)]
        if fact.recurring:
            facts += self._state.recurrings.decide_done(fact.recurring)
        first = target.index.first()
        for released in target.released.values():
            if first is not None and released.last_offset >= first:
                break  # those behind it will mostly be needed too
            facts.append(Removed(target_key(RELEASE, target.key, released.producer_id)))
        return facts

    def clock_set(self, by_ms: int, now_ms: int) -> list[Fact]:
        """A record that asked for a delay waits no longer than that because the clock was set back. One that asked for
        a time waits for it, and what the clock has passed is due, whatever was asked for.
        """
        back_ms = self._state.set_back_ms
        moved_ms = by_ms if by_ms < 0 else min(by_ms, back_ms)
        return [Seen(now_ms), ClockFollowed(now_ms, moved_ms, back_ms - moved_ms)] if moved_ms else [Seen(now_ms)]

    def tick(self, now_ms: int) -> list[Fact]:
        state = self._state
        facts: list[Fact] = [Removed(key) for key in self._removals()]
        drained = state.wheel.collect(now_ms)
        ready = drained.due if drained is not None else []
        if drained is not None:
            state.slots.sort_by_due(ready)
            facts.append(TimePassed(drained, ready))
        plan = FiringPlan(state, ready)
        plan.fill()
        for recurring in state.recurrings.due(now_ms):
            if plan.has_room:
                ran = state.recurrings.decide_run(recurring, now_ms)
                plan.run(recurring, ran.due_ms)
                facts.append(ran)
            else:
                facts.append(RecurringParked(recurring.stored.number))
        return [*facts, *plan.jobs]

    def _removals(self) -> list[bytes]:
        """Keys to be removed, so many at a time: a transaction may have left a million."""
        target = self._state.target
        some = target.doomed[-REMOVALS_PER_TICK_MAX:]
        keys = [target_key(SCHEDULE, target.key, offset) for offset in reversed(some)]
        return keys if len(keys) == REMOVALS_PER_TICK_MAX else [*keys, *target.doomed_keys]


def _refusal(target: Target, offset: int) -> ScheduleReply:
    place = f"{target.topic}/{target.key.partition}/{offset}"
    if any(offset in unpacked("q", fact.offsets) for fact in target.jobs.values()):
        return ScheduleReply(Code.INVALID_REQUEST, f"{place} is being published")
    return ScheduleReply(Code.INVALID_REQUEST, f"nothing waits at {place}")

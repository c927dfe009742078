"""What the delay machine decides: from a command and the state to facts. Nothing is changed here."""

from array import array

from goqueue.machines.delays.commands import (
    NO_PRODUCER,
    CancelSchedule,
    EndTransactionSchedules,
    ForgetTopic,
    RecurringReply,
    Reschedule,
    Schedule,
    ScheduleKey,
    ScheduleReply,
    StoreRecurring,
    TakeProducer,
)
from goqueue.machines.delays.facts import (
    DOOMED_MAX,
    RELEASE,
    SCHEDULE,
    TOPIC_ID_BYTES,
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
    TargetId,
    TimePassed,
    TopicForgotten,
    TransactionEmpty,
    TransactionReleased,
    packed,
    schedule_keys,
    target_key,
    topic_key,
    unpacked,
)
from goqueue.machines.delays.firing import FiringPlan, by_target
from goqueue.machines.delays.index import NOWHERE
from goqueue.machines.delays.recurring import removal
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
        topic, topic_id, partition = command.topic, command.topic_id, command.partition
        producer = command.producer_id, command.producer_epoch
        target = self._state.by_id.get(TargetId(topic_id, partition))
        if len(topic_id) != TOPIC_ID_BYTES or (target is not None and target.is_forgotten):
            return [], _no_topic(topic)
        epoch = command.epoch
        facts: list[Fact] = [Seen(now_ms)]
        found: set[int] = set()
        for offset, due_ms, body, is_delay in command.schedules:
            if target is None or not target.knows(epoch, offset):
                if abs(due_ms) > DUE_MS_MAX:
                    return [], ScheduleReply(Code.INVALID_REQUEST, f"{due_ms} is no time to deliver at")
                facts.append(Scheduled(topic, topic_id, partition, offset, due_ms, body, *producer, epoch, is_delay))
                found.add(offset)
        if target is not None and not found.isdisjoint(target.unkept):
            left = target.unkept - found
            facts.append(target.unkept_fact(left) if left else Removed(target_key(UNKEPT, target.key)))
        return (facts, DONE) if len(facts) > 1 else ([], DONE)

    def cancel(self, command: CancelSchedule) -> tuple[list[Fact], ScheduleReply]:
        target, slot = self._find(command.key)
        if target is None or slot == NOWHERE:
            return [], _refusal(target, command.key)
        offset = command.key.offset
        # The tombstone must not be all that told of the highest offset.
        kept = [target.kept()] if offset > target.kept_up_to else []
        return [*kept, Cancelled(target_key(SCHEDULE, target.key, offset))], DONE

    def reschedule(self, command: Reschedule, now_ms: int) -> tuple[list[Fact], ScheduleReply]:
        target, slot = self._find(command.key)
        if target is None or slot == NOWHERE:
            return [], _refusal(target, command.key)
        if abs(command.due_ms) > DUE_MS_MAX:
            return [], ScheduleReply(Code.INVALID_REQUEST, f"{command.due_ms} is no time to deliver at")
        offset = command.key.offset
        producer = NO_PRODUCER, -1
        if self._state.slots.state[slot] == WAITING:
            producer = self._state.producer_of(target, offset)
        scheduled = Scheduled(target.topic, *target.key, offset, command.due_ms, command.body, *producer, target.epoch)
        return [Seen(now_ms), scheduled], DONE

    def _find(self, key: ScheduleKey) -> tuple[Target | None, int]:
        target = self._state.find(key.topic, key.partition)
        return target, NOWHERE if target is None else target.index.find(key.offset)

    def end_transaction(self, command: EndTransactionSchedules, now_ms: int) -> list[Fact]:
        target = self._state.find(command.topic, command.partition)
        if target is None:
            return []
        producer = command.producer_id, command.producer_epoch
        offsets = self._state.in_transaction(target, *producer)
        if not offsets:
            is_open = target.number in self._state.open.get(command.producer_id, {})
            return [TransactionEmpty(target.number, *producer)] if is_open else []
        if command.is_commit:
            return [Seen(now_ms), TransactionReleased(target.topic, *target.key, *producer, max(offsets))]
        facts: list[Fact] = [target.kept()] if max(offsets) > target.kept_up_to else []
        for first in range(0, len(offsets), DOOMED_MAX):
            some = packed(array("q", offsets[first : first + DOOMED_MAX]))
            facts.append(SchedulesDoomed(target.topic, *target.key, some, (), *producer))
        return facts

    def forget_topic(self, command: ForgetTopic) -> list[Fact]:
        topic_id = command.topic_id
        recurrings = self._state.recurrings.of_topic(topic_id)
        if not recurrings and not self._state.of_topic(topic_id):
            return []
        gone = [removed for each in recurrings for removed in removal(each.stored.number)]
        return [*gone, TopicForgotten(topic_id)]

    def store_recurring(self, command: StoreRecurring, now_ms: int) -> tuple[list[Fact], RecurringReply]:
        if command.topic_id in self._state.forgotten:
            return [], RecurringReply(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {command.topic}")
        return self._state.recurrings.decide_store(command, now_ms)

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
        target = self._state.by_id[fact.target]
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
        ready = by_target(state.slots, drained.due) if drained is not None else {}
        if drained is not None:
            facts.append(TimePassed(drained, ready))
        plan = FiringPlan(state, ready)
        plan.fill()
        for recurring in state.recurrings.due(now_ms):
            target = state.by_id[recurring.target]
            if plan.has_room(target):
                ran = state.recurrings.decide_run(recurring, now_ms)
                plan.run(target, recurring, ran.due_ms)
                facts.append(ran)
            else:
                facts.append(RecurringParked(recurring.stored.number))
        return [*facts, *plan.jobs]

    def _removals(self) -> list[bytes]:
        """Keys to be removed, so many at a time: a topic may have left a million."""
        keys: list[bytes] = []
        left: dict[bytes, int] = {}
        for target in self._state.doomed.values():
            room = REMOVALS_PER_TICK_MAX - len(keys)
            if room <= 0:
                break
            keys += [target_key(SCHEDULE, target.key, offset) for offset in reversed(target.doomed[-room:])]
            if len(target.doomed) >= room:
                break
            keys += target.doomed_keys
            if target.is_forgotten:
                topic_id = target.key.topic_id
                if topic_id not in left:
                    left[topic_id] = len(self._state.of_topic(topic_id))
                left[topic_id] -= 1
                if not left[topic_id]:
                    keys.append(topic_key(topic_id))
        return keys


def _no_topic(topic: str) -> ScheduleReply:
    return ScheduleReply(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")


def _refusal(target: Target | None, key: ScheduleKey) -> ScheduleReply:
    place = f"{key.topic}/{key.partition}/{key.offset}"
    if target is None:
        return ScheduleReply(Code.UNKNOWN_TOPIC_OR_PARTITION, f"nothing waits for {key.topic}/{key.partition}")
    if any(key.offset in unpacked("q", fact.offsets) for fact in target.jobs.values()):
        return ScheduleReply(Code.INVALID_REQUEST, f"{place} is being published")
    return ScheduleReply(Code.INVALID_REQUEST, f"nothing waits at {place}")

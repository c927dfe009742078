"""What the delay machine knows, and how facts change it. Nothing is decided here."""

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from goqueue.machines.delays.commands import NO_PRODUCER
from goqueue.machines.delays.facts import (
    DOOM,
    JOB,
    RELEASE,
    SCHEDULE,
    TARGET,
    UNKEPT,
    ClockFollowed,
    Firing,
    Scheduled,
    SchedulesDoomed,
    SchedulesPacked,
    TargetId,
    TargetKept,
    TargetSaved,
    TimePassed,
    TransactionReleased,
    Unkept,
    packed,
    read_target_key,
    unpacked,
)
from goqueue.machines.delays.index import GONE, NOWHERE
from goqueue.machines.delays.recurring import Recurrings
from goqueue.machines.delays.slots import FREE, READY, TIMED, WAITING, Slots
from goqueue.machines.delays.target import SEQUENCE_MASK, Target
from goqueue.machines.delays.timer_wheel import TimerWheel

TARGET_KINDS = frozenset({SCHEDULE, JOB, TARGET, RELEASE, DOOM, UNKEPT})
PACKED_MAX = 4096
"""Schedules in one fact of a snapshot."""


class OpenSchedules(NamedTuple):
    """What one transaction scheduled. What was cancelled meanwhile is still listed."""

    offsets: "array[int]"
    epochs: "array[int]"

    def begun(self) -> dict[int, int]:
        """Epochs by offset: a place that the log had lost may have been scheduled again."""
        return dict(zip(self.offsets, self.epochs))


class DelayState:
    def __init__(self, topic: str, key: TargetId) -> None:
        self.target = Target(topic, key)
        self.slots = Slots()
        self.wheel = TimerWheel(self.slots)
        self.recurrings = Recurrings()
        self.jobs: dict[int, Firing] = {}
        """The unfinished ones, by number, in the order in which they were decided."""
        self.next_job = 1
        self.open: dict[int, OpenSchedules] = {}
        """By producer."""
        self.producer: tuple[int, int] | None = None
        self.seen_ms = self.set_back_ms = 0
        self.waiting = self.firing = self.fired = self.cancelled = 0
        self._last_slot = NOWHERE

    def keep(self, fact: TargetKept) -> None:
        target = self.target
        target.learn(fact.up_to, fact.epoch)
        target.kept_up_to = fact.kept_up_to if isinstance(fact, TargetSaved) else fact.up_to
        target.sequence = fact.sequence

    # Schedules

    def schedule(self, fact: Scheduled) -> None:
        target, slots, offset = self.target, self.slots, fact.offset
        slot = target.index.find(offset) if offset <= target.up_to else NOWHERE
        was_waiting = False
        if slot == NOWHERE:
            slot = slots.take(offset, fact.due_ms, len(fact.body), fact.is_delay)
            target.index.add(offset, slot)
            target.learn(offset, fact.epoch)
            target.unkept.discard(offset)
        else:
            was_waiting = slots.state[slot] == WAITING
            self._detach(slot)
            slots.due_ms[slot] = fact.due_ms
            slots.body_bytes[slot] = len(fact.body)
            slots.is_delay[slot] = fact.is_delay
        if fact.producer_id == NO_PRODUCER:
            self._start(slot)
        else:
            slots.state[slot] = WAITING
            self.waiting += 1
            if not was_waiting:
                self._join(fact.producer_id, (offset,), fact.producer_epoch)
        self._last_slot = slot

    def place(self, ledger_offset: int) -> None:
        """Of the schedule that was stored last."""
        self.slots.ledger_offset[self._last_slot] = ledger_offset

    def unpack(self, fact: SchedulesPacked) -> None:
        target = self.target
        offsets = unpacked("q", fact.offsets)
        columns = unpacked("q", fact.due_ms), unpacked("q", fact.ledger_offsets), unpacked("I", fact.body_bytes)
        slots = self.slots.take_many(offsets, *columns, fact.is_delay)
        target.index.add_many(offsets, slots)
        target.learn(offsets[-1])
        if fact.producer_id == NO_PRODUCER:
            self.wheel.add_many(slots)
        else:
            self.waiting += len(slots)
            self._join(fact.producer_id, offsets, fact.producer_epoch)

    def leave_unkept(self, fact: Unkept) -> None:
        self.target.unkept = set(unpacked("q", fact.offsets))

    def _start(self, slot: int) -> None:
        """It waits for its time, unless that has come."""
        if self.slots.due_ms[slot] > self.seen_ms:
            self.wheel.add(slot)
        else:
            self.slots.state[slot] = READY
            self.target.ready.add((slot,), 1)

    def _detach(self, slot: int) -> None:
        """It waits for nothing any more."""
        state = self.slots.state[slot]
        if state == TIMED:
            self.wheel.remove(slot)
            return
        self.slots.state[slot] = FREE
        if state == READY:
            self.target.ready.left(self.slots)
        else:
            self.waiting -= 1

    def remove(self, offset: int) -> None:
        slot = self.target.index.remove(offset)
        if slot != NOWHERE:
            self._detach(slot)
            self.slots.give_back(slot)

    def _remove_many(self, offsets: "array[int]") -> None:
        """As `remove` for each, in one go where all are ready: those of a firing job are."""
        removed = self.target.index.remove_many(offsets)
        state = self.slots.state
        if any(state[slot] != READY for slot in removed):
            for slot in removed:
                self._detach(slot)
                self.slots.give_back(slot)
            return
        self.slots.give_back_many(removed)
        self.target.ready.left(self.slots, len(removed))

    # Transactions

    def _join(self, producer_id: int, offsets: Iterable[int], epoch: int) -> None:
        if producer_id not in self.open:
            self.open[producer_id] = OpenSchedules(array("q"), array("h"))
        known = self.open[producer_id]
        known.offsets.extend(offsets)
        known.epochs.extend([epoch] * (len(known.offsets) - len(known.epochs)))

    def in_transaction(self, producer_id: int, epoch: int) -> list[int]:
        """Offsets of what waits for the end of this producer's transaction. A producer that was fenced ends it with a
        later epoch than it began with.
        """
        opened = self.open.get(producer_id)
        if opened is None:
            return []
        index, state = self.target.index, self.slots.state
        return [
            offset
            for offset, begun in opened.begun().items()
            if begun <= epoch and (slot := index.find(offset)) != NOWHERE and state[slot] == WAITING
        ]

    def producer_of(self, offset: int) -> tuple[int, int]:
        """Whose transaction this schedule waits for, with its epoch."""
        for producer_id, opened in self.open.items():
            if offset in opened.offsets:
                return producer_id, opened.epochs[opened.offsets.index(offset)]
        return NO_PRODUCER, -1

    def end(self, producer_id: int, epoch: int) -> None:
        known = self.open.pop(producer_id, None)
        if known is not None:
            for offset, begun in zip(known.offsets, known.epochs):
                if begun > epoch:
                    self._join(producer_id, (offset,), begun)

    def release(self, fact: TransactionReleased) -> None:
        target = self.target
        for offset in self.in_transaction(fact.producer_id, fact.producer_epoch):
            slot = target.index.find(offset)
            self._detach(slot)
            self._start(slot)
        self.end(fact.producer_id, fact.producer_epoch)
        target.released.pop(fact.producer_id, None)
        target.released[fact.producer_id] = fact

    # Firing

    def follow_clock(self, fact: ClockFollowed) -> None:
        slots, wheel, self.set_back_ms = self.slots, self.wheel, fact.set_back_ms
        delayed = [slot for slot, is_delay in enumerate(slots.is_delay) if is_delay and fact.by_ms]
        timed = [slot for slot in delayed if slots.state[slot] == TIMED]
        for slot in timed:
            wheel.remove(slot)
        for slot in delayed:  # of those that nobody has any more it does not matter
            slots.due_ms[slot] += fact.by_ms
        wheel.add_many(timed)

    def pass_time(self, fact: TimePassed) -> None:
        self.wheel.commit(fact.drained)
        state = self.slots.state
        for slot in fact.ready:
            state[slot] = READY
        self.target.ready.add(fact.ready, len(fact.ready))

    def fire(self, fact: Firing) -> None:
        target = self.target
        offsets = unpacked("q", fact.offsets)
        self._remove_many(offsets)
        target.learn(max(offsets, default=-1))
        target.sequence = (fact.sequence + len(offsets)) & SEQUENCE_MASK
        before = target.jobs.get(fact.number)  # made anew at a start, with less in it or another sequence
        target.jobs[fact.number] = self.jobs[fact.number] = fact
        self.next_job = max(self.next_job, fact.number + 1)
        self.firing += len(offsets) - (before.count if before is not None else 0)
        if fact.recurring and before is None:
            self.recurrings.begin(fact.recurring)

    def finish(self, number: int) -> None:
        target = self.target
        fact = target.jobs.pop(number, None)
        if fact is None:
            return
        del self.jobs[number]
        self.firing -= fact.count
        if fact.recurring:
            self.recurrings.end(fact.recurring)
        parked, target.parked = target.parked, []
        for each in parked:
            self.recurrings.unpark(each)

    # Dropping

    def doom(self, fact: SchedulesDoomed) -> None:
        target = self.target
        offsets = unpacked("q", fact.offsets)
        for offset in offsets:
            self.remove(offset)
        if fact.producer_id != NO_PRODUCER:
            self.end(fact.producer_id, fact.producer_epoch)
        target.learn(max(offsets, default=-1))
        target.doomed.extend(offsets)
        target.doomed_keys.update(dict.fromkeys((fact.key(), *fact.keys)))

    def forget(self, kind: bytes, key: bytes) -> None:
        """A tombstone."""
        target, (_, number) = self.target, read_target_key(key)
        target.doomed_keys.pop(key, None)
        if kind == SCHEDULE:
            self.remove(number)
            # A tombstone that is written twice does no harm, so one that comes out of order may be.
            if target.doomed and target.doomed[-1] == number:
                target.doomed.pop()
        elif kind == JOB:
            self.finish(number)
        elif kind == RELEASE:
            target.released.pop(number, None)
        elif kind == UNKEPT:
            target.unkept.clear()

    # Snapshot

    def packed_schedules(self, slots: Slots) -> list[Iterator[SchedulesPacked]]:
        """Of what waits now. They may be taken later, as long as nobody changes `slots`."""
        target = self.target
        packs = [_packed(target, slots, target.index.copied_slots(), NO_PRODUCER, -1)]
        for producer_id, opened in self.open.items():
            begun_at = opened.begun()
            for epoch in sorted(set(begun_at.values())):
                offsets = sorted(offset for offset, begun in begun_at.items() if begun == epoch)
                found = (slot for slot in map(target.index.find, offsets) if slot != NOWHERE)
                packs.append(_packed(target, slots, array("I", found), producer_id, epoch))
        return packs


def _packed(
    target: Target, slots: Slots, numbers: "array[int]", producer_id: int, epoch: int
) -> Iterator[SchedulesPacked]:
    """Those of `numbers` that wait for their time, or for this transaction."""
    state, topic, key = slots.state, target.topic, target.key
    is_waiting = producer_id != NO_PRODUCER
    for first in range(0, len(numbers), PACKED_MAX):
        some = numbers[first : first + PACKED_MAX]
        meant = [slot for slot in some if slot != GONE and (state[slot] == WAITING) == is_waiting]
        if meant:
            offsets, due_ms, ledger_offsets, body_bytes = map(packed, slots.gather(meant))
            is_delay = bytes(map(slots.is_delay.__getitem__, meant))
            columns = offsets, due_ms, ledger_offsets, body_bytes
            yield SchedulesPacked(topic, *key, *columns, producer_id, epoch, is_delay)

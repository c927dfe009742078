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
    target_key,
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
    """What one transaction scheduled in one partition. What was cancelled meanwhile is still listed."""

    offsets: "array[int]"
    epochs: "array[int]"

    def begun(self) -> dict[int, int]:
        """Epochs by offset: a place that the log had lost may have been scheduled again."""
        return dict(zip(self.offsets, self.epochs))


class DelayState:
    def __init__(self) -> None:
        self.slots = Slots()
        self.wheel = TimerWheel(self.slots)
        self.recurrings = Recurrings()
        self.targets: dict[int, Target] = {}
        self.by_id: dict[TargetId, Target] = {}
        self.by_name: dict[str, dict[int, Target]] = {}
        """By topic and partition: of topics that had the same name, the one that was met last."""
        self.jobs: dict[int, Firing] = {}
        """The unfinished ones, by number, in the order in which they were decided."""
        self.next_job = 1
        self.next_target = 0
        self.open: dict[int, dict[int, OpenSchedules]] = {}
        """By producer and target."""
        self.fireable: dict[int, None] = {}
        """Invariant: exactly the targets with something ready and room for a job."""
        self.doomed: dict[int, Target] = {}
        """Invariant: exactly the targets with tombstones still to be written."""
        self.forgotten: set[bytes] = set()
        self.producer: tuple[int, int] | None = None
        self.seen_ms = self.set_back_ms = 0
        self.waiting = self.firing = self.fired = self.cancelled = 0
        self._last_slot = NOWHERE

    # Targets

    def target(self, topic: str, key: TargetId) -> Target:
        target = self.by_id.get(key)
        if target is None:
            target = self.by_id[key] = self.targets[self.next_target] = Target(self.next_target, topic, key)
            self.next_target += 1
            self.by_name.setdefault(topic, {})[key.partition] = target
            target.is_forgotten = key.topic_id in self.forgotten
        return target

    def find(self, topic: str, partition: int) -> Target | None:
        target = self.by_name.get(topic, {}).get(partition)
        return None if target is None or target.is_forgotten else target

    def keep(self, fact: TargetKept) -> None:
        target = self.target(fact.topic, fact.target)
        target.learn(fact.up_to, fact.epoch)
        target.kept_up_to = fact.kept_up_to if isinstance(fact, TargetSaved) else fact.up_to
        target.sequence = fact.sequence

    def _note(self, target: Target) -> None:
        if target.ready.live and target.room > 0:
            self.fireable[target.number] = None
        else:
            self.fireable.pop(target.number, None)

    # Schedules

    def schedule(self, fact: Scheduled) -> None:
        # A plain tuple finds what a TargetId does, and costs less to make.
        target = self.by_id.get((fact.topic_id, fact.partition)) or self.target(fact.topic, fact.target)  # type: ignore[call-overload]
        slots, offset = self.slots, fact.offset
        slot = target.index.find(offset) if offset <= target.up_to else NOWHERE
        was_waiting = False
        if slot == NOWHERE:
            slot = slots.take(target.number, offset, fact.due_ms, len(fact.body), fact.is_delay)
            target.index.add(offset, slot)
            target.learn(offset, fact.epoch)
            target.unkept.discard(offset)
        else:
            was_waiting = slots.state[slot] == WAITING
            self._detach(target, slot)
            slots.due_ms[slot] = fact.due_ms
            slots.body_bytes[slot] = len(fact.body)
            slots.is_delay[slot] = fact.is_delay
        if fact.producer_id == NO_PRODUCER:
            self._start(target, slot)
        else:
            slots.state[slot] = WAITING
            self.waiting += 1
            if not was_waiting:
                self._join(target, fact.producer_id, (offset,), fact.producer_epoch)
        self._last_slot = slot

    def place(self, ledger_offset: int) -> None:
        """Of the schedule that was stored last."""
        self.slots.ledger_offset[self._last_slot] = ledger_offset

    def unpack(self, fact: SchedulesPacked) -> None:
        target = self.target(fact.topic, fact.target)
        offsets = unpacked("q", fact.offsets)
        columns = unpacked("q", fact.due_ms), unpacked("q", fact.ledger_offsets), unpacked("I", fact.body_bytes)
        slots = self.slots.take_many(target.number, offsets, *columns, fact.is_delay)
        target.index.add_many(offsets, slots)
        target.learn(offsets[-1])
        if fact.producer_id == NO_PRODUCER:
            self.wheel.add_many(slots)
        else:
            self.waiting += len(slots)
            self._join(target, fact.producer_id, offsets, fact.producer_epoch)

    def leave_unkept(self, fact: Unkept) -> None:
        self.target(fact.topic, fact.target).unkept = set(unpacked("q", fact.offsets))

    def _start(self, target: Target, slot: int) -> None:
        """It waits for its time, unless that has come."""
        if self.slots.due_ms[slot] > self.seen_ms:
            self.wheel.add(slot)
        else:
            self.slots.state[slot] = READY
            target.ready.add((slot,), 1)
            self._note(target)

    def _detach(self, target: Target, slot: int) -> None:
        """It waits for nothing any more."""
        state = self.slots.state[slot]
        if state == TIMED:
            self.wheel.remove(slot)
            return
        self.slots.state[slot] = FREE
        if state == READY:
            target.ready.left(self.slots)
            self._note(target)
        else:
            self.waiting -= 1

    def remove(self, target: Target, offset: int) -> None:
        slot = target.index.remove(offset)
        if slot != NOWHERE:
            self._detach(target, slot)
            self.slots.give_back(slot)

    def _remove_many(self, target: Target, offsets: "array[int]") -> None:
        """As `remove` for each, in one go where all are ready: those of a firing job are."""
        removed = target.index.remove_many(offsets)
        state = self.slots.state
        if any(state[slot] != READY for slot in removed):
            for slot in removed:
                self._detach(target, slot)
                self.slots.give_back(slot)
            return
        self.slots.give_back_many(removed)
        target.ready.left(self.slots, len(removed))
        self._note(target)

    # Transactions

    def _join(self, target: Target, producer_id: int, offsets: Iterable[int], epoch: int) -> None:
        opened = self.open.setdefault(producer_id, {})
        if target.number not in opened:
            opened[target.number] = OpenSchedules(array("q"), array("h"))
        known = opened[target.number]
        known.offsets.extend(offsets)
        known.epochs.extend([epoch] * (len(known.offsets) - len(known.epochs)))

    def in_transaction(self, target: Target, producer_id: int, epoch: int) -> list[int]:
        """Offsets of what waits for the end of this producer's transaction. A producer that was fenced ends it with a
        later epoch than it began with.
        """
        opened = self.open.get(producer_id, {}).get(target.number)
        if opened is None:
            return []
        index, state = target.index, self.slots.state
        return [
            offset
            for offset, begun in opened.begun().items()
            if begun <= epoch and (slot := index.find(offset)) != NOWHERE and state[slot] == WAITING
        ]

    def producer_of(self, target: Target, offset: int) -> tuple[int, int]:
        """Whose transaction this schedule waits for, with its epoch."""
        for producer_id, opened in self.open.items():
            here = opened.get(target.number)
            if here is not None and offset in here.offsets:
                return producer_id, here.epochs[here.offsets.index(offset)]
        return NO_PRODUCER, -1

    def end(self, target: Target, producer_id: int, epoch: int) -> None:
        opened = self.open.get(producer_id, {})
        known = opened.pop(target.number, None)
        if known is not None:
            for offset, begun in zip(known.offsets, known.epochs):
                if begun > epoch:
                    self._join(target, producer_id, (offset,), begun)
        if not opened:
            self.open.pop(producer_id, None)

    def release(self, fact: TransactionReleased) -> None:
        target = self.target(fact.topic, fact.target)
        for offset in self.in_transaction(target, fact.producer_id, fact.producer_epoch):
            slot = target.index.find(offset)
            self._detach(target, slot)
            self._start(target, slot)
        self.end(target, fact.producer_id, fact.producer_epoch)
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
        for number, slots in fact.ready.items():
            target, state = self.targets[number], self.slots.state
            for slot in slots:
                state[slot] = READY
            target.ready.add(slots, len(slots))
            self._note(target)

    def fire(self, fact: Firing) -> None:
        target = self.target(fact.topic, fact.target)
        offsets = unpacked("q", fact.offsets)
        self._remove_many(target, offsets)
        target.learn(max(offsets, default=-1))
        target.sequence = (fact.sequence + len(offsets)) & SEQUENCE_MASK
        before = target.jobs.get(fact.number)  # made anew at a start, with less in it or another sequence
        target.jobs[fact.number] = self.jobs[fact.number] = fact
        self.next_job = max(self.next_job, fact.number + 1)
        self.firing += len(offsets) - (before.count if before is not None else 0)
        if fact.recurring and before is None:
            self.recurrings.begin(fact.recurring)
        self.fireable.pop(target.number, None)  # to the end of the row
        self._note(target)

    def finish(self, target: Target, number: int) -> None:
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
        self._note(target)

    # Dropping

    def doom(self, fact: SchedulesDoomed) -> None:
        target = self.target(fact.topic, fact.target)
        offsets = unpacked("q", fact.offsets)
        for offset in offsets:
            self.remove(target, offset)
        if fact.producer_id != NO_PRODUCER:
            self.end(target, fact.producer_id, fact.producer_epoch)
        target.learn(max(offsets, default=-1))
        target.doomed.extend(offsets)
        target.doomed_keys.update(dict.fromkeys((fact.key(), *fact.keys)))
        self.doomed[target.number] = target

    def forget_topic(self, topic_id: bytes) -> None:
        self.forgotten.add(topic_id)
        for target in self.of_topic(topic_id):
            target.is_forgotten = True
            target.doomed.extend(offset for offset, _ in target.index.walk())
            self._empty(target)
            for number, fact in list(target.jobs.items()):
                target.doomed.extend(offset for offset in unpacked("q", fact.offsets) if offset >= 0)
                target.doomed_keys[fact.key()] = None
                self.finish(target, number)
            for producer_id in target.released:
                target.doomed_keys[target_key(RELEASE, target.key, producer_id)] = None
            target.released = {}
            if target.unkept:
                target.doomed_keys[target_key(UNKEPT, target.key)] = None
                target.unkept = set()
            target.doomed_keys[target_key(TARGET, target.key)] = None
            self.doomed[target.number] = target
            if self.by_name[target.topic].get(target.key.partition) is target:
                del self.by_name[target.topic][target.key.partition]
        for target in self.by_id.values():  # one that has the same name by now
            if not target.is_forgotten:
                self.by_name[target.topic].setdefault(target.key.partition, target)

    def of_topic(self, topic_id: bytes) -> list[Target]:
        return [target for key, target in self.by_id.items() if key.topic_id == topic_id]

    def _empty(self, target: Target) -> None:
        for offset in [offset for offset, _ in target.index.walk()]:
            self.remove(target, offset)
        for producer_id, opened in list(self.open.items()):
            opened.pop(target.number, None)
            if not opened:
                del self.open[producer_id]

    def forget(self, kind: bytes, key: bytes) -> None:
        """A tombstone of something that belongs to a target."""
        target_id, number = read_target_key(key)
        target = self.by_id.get(target_id)
        if target is None:
            return
        target.doomed_keys.pop(key, None)
        if kind == SCHEDULE:
            self.remove(target, number)
            # A tombstone that is written twice does no harm, so one that comes out of order may be.
            if target.doomed and target.doomed[-1] == number:
                target.doomed.pop()
        elif kind == JOB:
            self.finish(target, number)
        elif kind == RELEASE:
            target.released.pop(number, None)
        elif kind == UNKEPT:
            target.unkept.clear()
        elif kind == TARGET:
            self._empty(target)
            del self.by_id[target_id], self.targets[target.number]
            self.fireable.pop(target.number, None)
            self.doomed.pop(target.number, None)
        if not target.doomed and not target.doomed_keys:
            self.doomed.pop(target.number, None)

    # Snapshot

    def packed_schedules(self, target: Target, slots: Slots) -> list[Iterator[SchedulesPacked]]:
        """Of what waits now. They may be taken later, as long as nobody changes `slots`."""
        packs = [_packed(target, slots, target.index.copied_slots(), NO_PRODUCER, -1)]
        for producer_id, targets in self.open.items():
            opened = targets.get(target.number)
            if opened is None:
                continue
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

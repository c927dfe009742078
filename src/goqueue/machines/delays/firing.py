"""What is due becomes firing jobs: batches for one partition each, with the sequence under which they are published."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from goqueue.machines.delays.commands import RECURRING
from goqueue.machines.delays.facts import Firing, packed
from goqueue.machines.delays.recurring import Recurring
from goqueue.machines.delays.slots import Slots
from goqueue.machines.delays.state import DelayState
from goqueue.machines.delays.target import SEQUENCE_MASK, Target

JOB_RECORDS_MAX = 500
JOB_BYTES_MAX = 512 * 1024
JOBS_PER_TICK_MAX = 32
"""The rest has its turn in the next tick, at once: others want to be served in between."""


def by_target(slots: Slots, due: Sequence[int]) -> dict[int, list[int]]:
    """What the wheel gave out, in the order in which each partition gets it."""
    groups: dict[int, list[int]] = {}
    target_of = slots.target
    for slot in due:
        number = target_of[slot]
        if number in groups:
            groups[number].append(slot)
        else:
            groups[number] = [slot]
    for group in groups.values():
        slots.sort_by_due(group)
    return groups


class FiringPlan:
    """The jobs of one tick. Reads the state as it will be when `ready` has been added to it."""

    def __init__(self, state: DelayState, ready: dict[int, list[int]]) -> None:
        self._state = state
        self._ready = ready
        self._sequences: dict[int, int] = {}
        self._made: dict[int, int] = {}
        self.jobs: list[Firing] = []

    def fill(self) -> None:
        state = self._state
        for number in dict.fromkeys((*state.fireable, *self._ready)):
            target = state.targets[number]
            waiting = chain(target.ready.walk(state.slots), self._ready.get(number, ()))
            batches = _cut(waiting, state.slots.body_bytes)
            while self.has_room(target):
                if len(self.jobs) == JOBS_PER_TICK_MAX:
                    return
                batch = next(batches, None)
                if batch is None:
                    break
                offsets, due_ms, ledger_offsets, _ = state.slots.gather(batch)
                self._add(target, offsets, ledger_offsets, due_ms, 0)

    def has_room(self, target: Target) -> bool:
        return target.room > self._made.get(target.number, 0)

    def run(self, target: Target, recurring: Recurring, due_ms: int) -> None:
        """One run of a recurring schedule; there is room for it."""
        offset, ledger_offset, due = (array("q", [each]) for each in (RECURRING, recurring.ledger_offset, due_ms))
        self._add(target, offset, ledger_offset, due, recurring.stored.number)

    def _add(
        self,
        target: Target,
        offsets: "array[int]",
        ledger_offsets: "array[int]",
        due_ms: "array[int]",
        recurring: int,
    ) -> None:
        sequence = self._sequences.get(target.number, target.sequence)
        self._sequences[target.number] = (sequence + len(offsets)) & SEQUENCE_MASK
        self._made[target.number] = self._made.get(target.number, 0) + 1
        job = Firing(
            target.topic,
            *target.key,
            self._state.next_job + len(self.jobs),
            sequence,
            packed(offsets),
            packed(ledger_offsets),
            packed(due_ms),
            recurring,
        )
        self.jobs.append(job)


def _cut(slots: Iterable[int], body_bytes: "array[int]") -> Iterator[list[int]]:
    """Batches that keep the limits; a body that is too large for them goes alone."""
    batch: list[int] = []
    size = 0
    for slot in slots:
        size += body_bytes[slot]
        if batch and (size > JOB_BYTES_MAX or len(batch) == JOB_RECORDS_MAX):
            yield batch
            batch, size = [], body_bytes[slot]
        batch.append(slot)
    if batch:
        yield batch

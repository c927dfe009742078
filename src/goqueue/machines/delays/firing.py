"""What is due becomes firing jobs: batches for the partition, with the sequence under which they are published."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from goqueue.machines.delays.commands import RECURRING
from goqueue.machines.delays.facts import Firing, packed
from goqueue.machines.delays.recurring import Recurring
from goqueue.machines.delays.state import DelayState
from goqueue.machines.delays.target import SEQUENCE_MASK

JOB_RECORDS_MAX = 500
JOB_BYTES_MAX = 512 * 1024


class FiringPlan:
    """The jobs of one tick. Reads the state as it will be when `ready` has been added to it."""

    def __init__(self, state: DelayState, ready: Sequence[int]) -> None:
        self._state = state
        self._ready = ready
        self._sequence = state.target.sequence
        self.jobs: list[Firing] = []

    def fill(self) -> None:
        slots = self._state.slots
        waiting = chain(self._state.target.ready.walk(slots), self._ready)
        batches = _cut(waiting, slots.body_bytes)
        while self.has_room and (batch := next(batches, None)) is not None:
            offsets, due_ms, ledger_offsets, _ = slots.gather(batch)
            self._add(offsets, ledger_offsets, due_ms, 0)

    @property
    def has_room(self) -> bool:
        return self._state.target.room > len(self.jobs)

    def run(self, recurring: Recurring, due_ms: int) -> None:
        """One run of a recurring schedule; there is room for it."""
        offset, ledger_offset, due = (array("q", [each]) for each in (RECURRING, recurring.ledger_offset, due_ms))
        self._add(offset, ledger_offset, due, recurring.stored.number)

    def _add(self, offsets: "array[int]", ledger_offsets: "array[int]", due_ms: "array[int]", recurring: int) -> None:
        target, sequence = self._state.target, self._sequence
        self._sequence = (sequence + len(offsets)) & SEQUENCE_MASK
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

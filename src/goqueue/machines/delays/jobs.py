"""Firing jobs as the broker gets them: which records go into which partition as one batch, under which sequence."""

from array import array
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple, overload

from goqueue.machines.delays.commands import ScheduleKey
from goqueue.machines.delays.facts import Firing, unpacked

_NUMBER = Struct("<q")


class Due(NamedTuple):
    """One record of a firing job."""

    key: ScheduleKey
    ledger_offset: int
    """Where its body lies."""
    due_ms: int


class DueRecords(Sequence[Due]):
    """The records of a job, made one by one as they are asked for: a partition that is stuck keeps two thousand.
    Who needs one thing of all of them takes the column.
    """

    __slots__ = ("_fact",)

    def __init__(self, fact: Firing) -> None:
        self._fact = fact

    @property
    def offsets(self) -> "array[int]":
        return unpacked("q", self._fact.offsets)

    @property
    def ledger_offsets(self) -> "array[int]":
        return unpacked("q", self._fact.ledger_offsets)

    @property
    def due_ms(self) -> "array[int]":
        return unpacked("q", self._fact.due_ms)

    def __len__(self) -> int:
        return len(self._fact.offsets) // _NUMBER.size

    @overload
    def __getitem__(self, place: int) -> Due: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Due, ...]: ...

    def __getitem__(self, place: int | slice) -> Due | tuple[Due, ...]:
        if isinstance(place, slice):
            return tuple(map(self.__getitem__, range(*place.indices(len(self)))))
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        fact, at = self._fact, place % len(self) * _NUMBER.size
        offset, ledger_offset, due_ms = (
            _NUMBER.unpack_from(numbers, at)[0] for numbers in (fact.offsets, fact.ledger_offsets, fact.due_ms)
        )
        return Due(ScheduleKey(fact.topic, fact.partition, offset), ledger_offset, due_ms)

    def __iter__(self) -> Iterator[Due]:
        topic, partition = self._fact.topic, self._fact.partition
        for offset, ledger_offset, due_ms in zip(self.offsets, self.ledger_offsets, self.due_ms, strict=True):
            yield Due(ScheduleKey(topic, partition, offset), ledger_offset, due_ms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class FiringJob(NamedTuple):
    """Publish these in one batch with this producer and sequence. Unfinished jobs come back after a restart, alike."""

    number: int
    topic: str
    topic_id: bytes
    partition: int
    sequence: int
    records: DueRecords


def firing_job(fact: Firing) -> FiringJob:
    return FiringJob(fact.number, fact.topic, fact.topic_id, fact.partition, fact.sequence, DueRecords(fact))

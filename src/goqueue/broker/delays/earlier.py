"""Delays as earlier versions kept them: those of all partitions in one ledger. They are read from it partition by
partition, and written to the companions of these.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from goqueue.broker.delays.firing import lost_body
from goqueue.machines.delays.facts import (
    DELAY_FACTS,
    ClockFollowed,
    DelayProducer,
    Firing,
    OfTarget,
    RecurringKept,
    RecurringRan,
    RecurringStopped,
    RecurringStored,
    Scheduled,
    SchedulesPacked,
    TargetId,
    TargetKept,
    TargetSaved,
    packed,
    read_number_key,
    read_target_key,
    unpacked,
)
from goqueue.machines.delays.machine import Delays
from goqueue.machines.delays.recurring import RECURRING_KINDS
from goqueue.machines.delays.state import TARGET_KINDS
from goqueue.machines.machine import Fact
from goqueue.machines.retired import TopicForgotten
from goqueue.runtime.ledger import Ledger

BATCH_BYTES = 4 * 1024 * 1024
"""Of bodies that are written at once; one alone may be larger."""
BATCH_FACTS = 1000


EARLIER_FACTS: tuple[type[Fact], ...] = (*DELAY_FACTS, TopicForgotten)


class EarlierDelays:
    """The one machine of then, to be read from its ledger: a machine of today for every partition."""

    def __init__(self) -> None:
        self.partitions: dict[TargetId, Delays] = {}
        self._homes: dict[int, TargetId] = {}
        """Of recurring schedules, by number."""
        self._producer: DelayProducer | None = None
        self._set_back_ms = 0

    def _of(self, topic: str, target: TargetId) -> Delays:
        found = self.partitions.get(target)
        if found is None:
            found = self.partitions[target] = Delays(topic, *target)
            if self._producer is not None:
                found.apply(self._producer)
            if self._set_back_ms:
                found.apply(ClockFollowed(0, 0, self._set_back_ms))
        return found

    def apply(self, fact: Any) -> None:
        match fact:
            case OfTarget():
                self._of(fact.topic, fact.target).apply(fact)
            case RecurringStored() | RecurringKept():
                home = self._homes[fact.number] = TargetId(fact.topic_id, fact.partition)
                self._of(fact.topic, home).apply(fact)
            case RecurringRan() | RecurringStopped():
                if (home_of := self._homes.get(fact.number)) in self.partitions:
                    self.partitions[home_of].apply(fact)
            case TopicForgotten():
                for target in [each for each in self.partitions if each.topic_id == fact.topic_id]:
                    del self.partitions[target]
            case _:
                self._apply_to_all(fact)

    def _apply_to_all(self, fact: DelayProducer | ClockFollowed) -> None:
        if isinstance(fact, DelayProducer):
            self._producer = fact
        else:
            self._set_back_ms = fact.set_back_ms
        for each in self.partitions.values():
            each.apply(fact)

    def placed(self, fact: Any, ledger_offset: int) -> None:
        self.partitions[TargetId(fact.topic_id, fact.partition)].placed(fact, ledger_offset)

    def forget(self, key: bytes) -> None:
        kind, home = key[:1], None
        if kind in TARGET_KINDS:
            home = read_target_key(key)[0]
        elif kind in RECURRING_KINDS:
            home = self._homes.get(read_number_key(key))
        if home in self.partitions:
            self.partitions[home].forget(key)

    # It is only read.

    def decide(self, command: Any, ticket: int, now_ms: int) -> Any:  # noqa: ARG002  a machine's signature
        raise TypeError("delays of an earlier version decide nothing")

    def facts(self) -> Iterator[Fact]:
        raise TypeError("delays of an earlier version are not saved")

    def next_deadline_ms(self) -> int | None:
        return None


def copy_delays(machine: Delays, old: Ledger, new: Ledger, now_ms: int) -> None:
    """Write what a partition has to its own ledger, with the bodies. It is not durable by this."""
    _Copy(old, new, now_ms).run(machine)


class _Copy:
    def __init__(self, old: Ledger, new: Ledger, now_ms: int) -> None:
        self._old = old
        self._new = new
        self._now_ms = now_ms
        self._places: dict[int, int] = {}
        """Where bodies are that jobs need: by their places in the old ledger."""

    def run(self, machine: Delays) -> None:
        facts = list(machine.facts())
        jobs = [fact for fact in facts if isinstance(fact, Firing)]
        wanted = {place for job in jobs for place in unpacked("q", job.ledger_offsets)}
        for fact in facts:
            if isinstance(fact, RecurringKept):  # before their jobs
                self._copy_recurring(fact, wanted)
        for fact in facts:
            if isinstance(fact, SchedulesPacked):
                self._copy_schedules(fact)
            elif isinstance(fact, Firing):
                self._copy_job(fact)
            elif isinstance(fact, TargetSaved):
                self._write([TargetKept(fact.topic, *fact.target, fact.up_to, fact.sequence, fact.epoch)])
            elif not isinstance(fact, RecurringKept):
                self._write([fact])

    def _write(self, facts: Sequence[Fact]) -> int:
        """Where the first of them is."""
        return self._new.append(facts, self._now_ms)

    def _copy_recurring(self, kept: RecurringKept, wanted: set[int]) -> None:
        fact: Any = self._old.read_fact(kept.ledger_offset)
        body = lost_body(kept.name, self._now_ms).encode() if fact is None else fact.body
        place = kept.number, kept.name, kept.topic, kept.topic_id, kept.partition
        at = self._write([RecurringStored(*place, kept.cron, kept.timezone, kept.next_ms, body)])
        if kept.ledger_offset in wanted:
            self._places[kept.ledger_offset] = at
        if kept.last_ms >= 0:
            self._write([RecurringRan(kept.number, kept.last_ms, kept.next_ms)])
        if kept.is_stopped:
            self._write([RecurringStopped(kept.number)])

    def _copy_schedules(self, fact: SchedulesPacked) -> None:
        offsets, due_ms = unpacked("q", fact.offsets), unpacked("q", fact.due_ms)
        is_delay = fact.is_delay or bytes(len(offsets))
        rows = list(zip(offsets, due_ms, unpacked("q", fact.ledger_offsets), is_delay, strict=True))
        for _ in self._schedules(fact, rows, (fact.producer_id, fact.producer_epoch)):
            pass

    def _copy_job(self, job: Firing) -> None:
        columns = [unpacked("q", each) for each in (job.offsets, job.due_ms, job.ledger_offsets)]
        if not job.recurring:
            for old, new in self._schedules(job, [(*row, 0) for row in zip(*columns, strict=True)], (-1, -1)):
                self._places[old] = new
        places = columns[2][:0]
        places.extend(self._places[each] for each in columns[2])
        target = job.topic, *job.target
        moved = packed(places)
        self._write([Firing(*target, job.number, job.sequence, job.offsets, moved, job.due_ms, job.recurring)])

    def _schedules(
        self, of: OfTarget, rows: Sequence[tuple[int, int, int, int]], producer: tuple[int, int]
    ) -> Iterator[tuple[int, int]]:
        """Write them (offset, due time, place, whether it is a delay); gives their old and new places."""
        for first in range(0, len(rows), BATCH_FACTS):
            some = rows[first : first + BATCH_FACTS]
            found: dict[int, Any] = self._old.read_facts([place for _, _, place, _ in some])
            batch: list[Fact] = []
            old: list[int] = []
            size = 0
            for offset, due_ms, place, is_delay in some:
                name = f"{of.topic}/{of.partition}/{offset}"
                body = found[place].body if place in found else lost_body(name, due_ms).encode()
                if batch and size + len(body) > BATCH_BYTES:
                    yield from self._written(batch, old)
                    batch, old, size = [], [], 0
                batch.append(Scheduled(of.topic, *of.target, offset, due_ms, body, *producer, is_delay=bool(is_delay)))
                old.append(place)
                size += len(body)
            yield from self._written(batch, old)

    def _written(self, batch: Sequence[Fact], old: Sequence[int]) -> Iterator[tuple[int, int]]:
        at = self._write(batch)
        return zip(old, range(at, at + len(batch)), strict=True)

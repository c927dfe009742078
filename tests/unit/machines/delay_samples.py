"""A delay machine that is driven as the broker drives it: a ledger, partitions that recognise repeats, restarts."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import Any, Literal

import msgspec
import pytest

from goqueue.machines.delays.commands import (
    NO_PRODUCER,
    CancelSchedule,
    FiringDone,
    NewSchedule,
    Reschedule,
    Schedule,
    ScheduleKey,
)
from goqueue.machines.delays.facts import DELAY_FACTS, RecurringStored, Scheduled
from goqueue.machines.delays.jobs import Due, FiringJob
from goqueue.machines.delays.machine import Delays
from goqueue.machines.machine import Fact, Tick, apply_at
from goqueue.model.codes import Code

NOW_MS = 1_700_000_000_003
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
ID = b"0123456789abcdef"

Restart = Literal["replay", "compacted", "no tombstones", "snapshot", "snapshot and tail"]
RESTARTS: tuple[Restart, ...] = ("replay", "compacted", "no tombstones", "snapshot", "snapshot and tail")

restarts = pytest.mark.parametrize("how", RESTARTS)

_decode: Callable[[bytes], Fact] = msgspec.msgpack.Decoder(reduce(or_, DELAY_FACTS)).decode
_encode = msgspec.msgpack.Encoder().encode


class Partition:
    """What one partition holds and how it judges the broker's own producer: as `ProducerStates` does."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, tuple[Due, ...]]] = []

    def publish(self, job: FiringJob) -> bool:
        """False: it has this batch already."""
        records = tuple(job.records)
        for sequence, known in self.batches[-5:]:
            if sequence == job.sequence:
                assert known == records, f"two batches with sequence {sequence}"
                return False
        if self.batches:
            sequence, known = self.batches[-1]
            assert job.sequence == (sequence + len(known)) & 0x7FFF_FFFF, "out of order"
        self.batches.append((job.sequence, records))
        return True


class Driver:
    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.machine = Delays("t", ID, 0)
        self.now_ms = now_ms
        self.entries: dict[int, tuple[bytes, bytes | None]] = {}
        self.end_offset = 0
        self.snapshot: tuple[int, Iterator[Fact]] = (0, iter(()))
        self.partition = Partition()
        self.fired: list[tuple[Due, int]] = []
        """With the time of their publishing."""
        self.ticket = 0

    # Commands

    def submit(self, command: Any) -> Any:
        self.ticket += 1
        before = list(self.entries)
        outcome = self.machine.decide(command, self.ticket, self.now_ms)
        assert before == list(self.entries)
        for fact in outcome.facts:
            keys = fact.stored_keys() if fact.durable else ()
            for number, key in enumerate(keys):
                self.entries[self.end_offset + number] = (key, None if fact.is_tombstone else _encode(fact))
            apply_at(self.machine, fact, self.end_offset)
            self.end_offset += len(keys)
        assert {ticket for ticket, _ in outcome.replies} <= {self.ticket}
        return outcome.replies[0][1] if outcome.replies else None

    def schedule(
        self,
        offset: int,
        delay_ms: int,
        *,
        producer: tuple[int, int] = (NO_PRODUCER, -1),
        body: bytes = b"",
    ) -> ScheduleKey:
        new = NewSchedule(offset, self.now_ms + delay_ms, body or b"%d" % offset)
        assert self.submit(Schedule((new,), *producer)).code is Code.NONE
        return ScheduleKey("t", 0, offset)

    def cancel(self, key: ScheduleKey) -> Code:
        code: Code = self.submit(CancelSchedule(key.offset)).code
        return code

    def reschedule(self, key: ScheduleKey, delay_ms: int) -> Code:
        code: Code = self.submit(Reschedule(key.offset, self.now_ms + delay_ms, b"again")).code
        return code

    # Time

    def tick(self) -> None:
        self.submit(Tick())

    def run(self, *, publishes: bool = True) -> None:
        """All that is to be done now."""
        for _ in range(10_000):
            deadline = self.machine.next_deadline_ms()
            if deadline is not None and deadline <= self.now_ms:
                self.tick()
            elif not publishes or not self.publish():
                return
        raise AssertionError("it never comes to rest")

    def advance(self, ms: int, *, publishes: bool = True) -> None:
        """Let time pass, with a tick whenever the machine asks for one."""
        end_ms = self.now_ms + ms
        self.run(publishes=publishes)
        while (deadline := self.machine.next_deadline_ms()) is not None and deadline <= end_ms:
            self.now_ms = deadline
            self.run(publishes=publishes)
        self.now_ms = end_ms

    def jump(self, ms: int, *, publishes: bool = True) -> None:
        """The clock is set."""
        self.now_ms += ms
        self.run(publishes=publishes)

    # Publishing

    def publish(self, count: int = 1 << 30, *, reports: bool = True) -> int:
        """The first so many of the unfinished jobs. Not `reports`: and then it crashes."""
        jobs = self.machine.firing()[:count]
        for job in jobs:
            if self.partition.publish(job):
                self.fired += [(due, self.now_ms) for due in job.records]
            for due in job.records:
                self.check_body(due)
        if reports:
            for job in jobs:
                assert self.submit(FiringDone(job.number)).code is Code.NONE
        return len(jobs)

    def check_body(self, due: Due) -> bytes:
        """It lies where the machine says."""
        value = self.entries[due.ledger_offset][1]
        assert value is not None
        fact = _decode(value)
        assert isinstance(fact, Scheduled | RecurringStored)
        if isinstance(fact, Scheduled):
            assert (fact.topic, fact.partition, fact.offset) == due.key
            assert fact.due_ms == due.due_ms
        return fact.body

    @property
    def fired_offsets(self) -> list[int]:
        return [due.key.offset for due, _ in self.fired]

    # Restarts

    def take_snapshot(self) -> None:
        """Begun now and taken when it is needed, as the broker does: it must not know what happened meanwhile."""
        self.snapshot = self.end_offset, self.machine.frozen_facts()

    def compact(self, *, keeps_tombstones: bool = True) -> None:
        last = {key: offset for offset, (key, _) in self.entries.items()}
        self.entries = {
            offset: (key, value)
            for offset, (key, value) in self.entries.items()
            if last[key] == offset and (keeps_tombstones or value is not None)
        }

    def restart(self, how: Restart) -> None:
        if how == "snapshot":
            self.take_snapshot()
        if how in {"compacted", "no tombstones"}:
            self.compact(keeps_tombstones=how == "compacted")
        begin, saved = 0, []
        if how.startswith("snapshot"):
            begin, saved = self.snapshot[0], list(self.snapshot[1])
            self.snapshot = begin, iter(saved)
        if how == "no tombstones":
            self.take_snapshot()  # one from before would bring back what the tombstones removed
        self.machine = Delays("t", ID, 0)
        for fact in saved:
            self.machine.apply(_decode(_encode(fact)))
        for offset, (key, entry) in self.entries.items():
            if offset < begin:
                continue
            if entry is None:
                self.machine.forget(key)
            else:
                apply_at(self.machine, _decode(entry), offset)


def fill(driver: Driver, count: int, *, first: int = 0, delay_ms: int = 0, body: bytes = b"x") -> None:
    due_ms = driver.now_ms + delay_ms
    new = tuple(NewSchedule(first + number, due_ms, body) for number in range(count))
    assert driver.submit(Schedule(new)).code is Code.NONE


def described(machine: Delays) -> dict[str, Any]:
    """All that anybody can ask, but for what counts from the start."""
    measure = machine.measure()
    return {
        "firing": [(*job[:-1], list(job.records)) for job in machine.firing()],
        "pending": list(machine.walk()),
        "known": machine.known_place(),
        "sequence": machine._state.target.sequence,
        "producer": machine.producer(),
        "recurring": machine.recurring(),
        "counts": (measure.pending, measure.waiting_for_transaction, measure.firing),
    }

"""Delays with a million pending against the same with ten thousand: whatever is done to one must cost the same.

Times are of the processor, turn by turn on both, the best turn counts. Baseline is ten thousand pending.
"""

import gc
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from benchmarks.harness import Row, cpu_seconds, row, told_by
from goqueue.machines.delays.commands import CancelSchedule, FiringDone, NewSchedule, Schedule
from goqueue.machines.delays.facts import DELAY_FACTS
from goqueue.machines.delays.machine import Delays
from goqueue.machines.machine import Fact, Tick, apply_at
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.snapshots import SnapshotFiles

FEW, MANY = 10_000, 1_000_000
NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 60 * 60 * 1000
HOUR_MS = DAY_MS // 24
BATCH = 100
BODY = b"v" * 100
PROBES = 5000
TURNS = 7
TOPIC_ID = b"0123456789abcdef"
TICK_MS = 10

_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], Fact] = msgspec.msgpack.Decoder(reduce(or_, DELAY_FACTS)).decode


def run() -> list[Row]:
    few, many = Bench(FEW), Bench(MANY)
    rows = compare(few, many)
    rows += measure_restart(many)
    del few, many
    gc.collect()
    rows.append(measure_replay())
    rows.append(measure_longest_tick())
    return [*rows, *measure_memory()]


def new_machine() -> Delays:
    return Delays("t", TOPIC_ID, 0)


class Bench:
    """A machine with so many schedules, spread over a day that begins in three hours."""

    def __init__(self, pending: int) -> None:
        self.machine = new_machine()
        self.dice = Random(pending)
        self.now_ms = NOW_MS
        self.ledger_offset = 0
        self.next_offset = 0
        for _ in range(0, pending, BATCH):
            new = self.new(BATCH, lambda: 3 * HOUR_MS + self.dice.randrange(DAY_MS))
            self.submit(Schedule(new))
        self.submit(Tick())
        assert self.machine.measure().pending == pending

    def new(self, count: int, delay_ms: Callable[[], int]) -> tuple[NewSchedule, ...]:
        first, self.next_offset = self.next_offset, self.next_offset + count
        return tuple(NewSchedule(first + number, self.now_ms + delay_ms(), BODY) for number in range(count))

    def submit(self, command: Any) -> None:
        for fact in self.machine.decide(command, 1, self.now_ms).facts:
            apply_at(self.machine, fact, self.ledger_offset)
            self.ledger_offset += fact.durable

    def submit_all(self, commands: Iterable[Any]) -> None:
        for command in commands:
            self.submit(command)


def compare(few: Bench, many: Bench) -> list[Row]:
    best: dict[str, dict[Bench, float]] = {}
    for _ in range(TURNS):
        for bench in (few, many):
            for name, taken in (*insert_and_cancel(bench), *fire(bench), *ask(bench)):
                known = best.setdefault(name, {})
                known[bench] = min(taken, known.get(bench, taken))
    return [
        row(f"{name}, 1 M pending", taken[many] * 1e6, "us", taken[few] * 1e6, "flat: ratio >= 0.5", is_cost=True)
        for name, taken in best.items()
    ]


def insert_and_cancel(bench: Bench) -> list[tuple[str, float]]:
    """With delays as the others have."""
    before = bench.machine.measure()
    batches = [bench.new(BATCH, lambda: 3 * HOUR_MS + bench.dice.randrange(DAY_MS)) for _ in range(PROBES // BATCH)]
    commands = [Schedule(new) for new in batches]
    inserting = cpu_seconds(lambda: bench.submit_all(commands))
    assert bench.machine.measure().pending == before.pending + PROBES
    cancels = [CancelSchedule(each.offset) for new in batches for each in new]
    bench.dice.shuffle(cancels)
    cancelling = cpu_seconds(lambda: bench.submit_all(cancels))
    after = bench.machine.measure()
    assert (after.pending, after.cancelled) == (before.pending, before.cancelled + PROBES)
    return [("insert", inserting / PROBES), ("cancel", cancelling / PROBES)]


def fire(bench: Bench) -> list[tuple[str, float]]:
    """All that a schedule costs from its time on: the drain, its job, the report and the removals."""
    before = bench.machine.measure()
    for _ in range(PROBES // BATCH):
        bench.submit(Schedule(bench.new(BATCH, lambda: 1 + bench.dice.randrange(1000))))

    def pass_time() -> None:
        for _ in range(1000 // TICK_MS + 2):
            bench.now_ms += TICK_MS
            while (deadline := bench.machine.next_deadline_ms()) is not None and deadline <= bench.now_ms:
                bench.submit(Tick())
                for job in bench.machine.firing():
                    bench.submit(FiringDone(job.number))

    firing = cpu_seconds(pass_time)
    after = bench.machine.measure()
    assert (after.pending, after.firing, after.fired) == (before.pending, 0, before.fired + PROBES)
    return [("fire", firing / PROBES)]


def ask(bench: Bench) -> list[tuple[str, float]]:
    keys = [each.key.offset for each in islice(bench.machine.walk(), 1000)]
    finding = cpu_seconds(lambda: [bench.machine.find(key) for key in keys])
    waiting = cpu_seconds(lambda: [bench.machine.next_deadline_ms() for _ in range(PROBES)])
    return [("find", finding / len(keys)), ("next deadline", waiting / PROBES)]


def measure_restart(bench: Bench) -> list[Row]:
    """Through a snapshot on the disk of the project."""
    before = bench.machine.measure()
    place = Path(__file__).parents[1] / "build"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, prefix="bench-") as root:
        disk = RealDisk(Path(root))
        disk.make_directory("ledger")
        files = SnapshotFiles(disk, "ledger", "delays")
        started = time.perf_counter()
        files.save(1, 0, [(fact.key(), _encode(fact)) for fact in bench.machine.facts()])
        saving = time.perf_counter() - started
        started = time.perf_counter()
        snapshot = files.latest(up_to=1)
        assert snapshot is not None
        machine = new_machine()
        for _, value in snapshot.entries:
            machine.apply(_decode(value))
        loaded = time.perf_counter() - started
        for fact in machine.decide(Tick(), 1, bench.now_ms).facts:
            machine.apply(fact)
        taken = time.perf_counter() - started
    assert machine.measure()[:3] == before[:3]
    assert list(islice(machine.walk(), 1000)) == list(islice(bench.machine.walk(), 1000))
    return [
        row("snapshot of 1 M pending, made and saved", saving, "s", None, None),
        row("restart with 1 M pending from a snapshot", taken, "s", None, "about 1 s"),
        row("of that, before the first tick", loaded, "s", None, None),
    ]


def measure_replay() -> Row:
    """Without a snapshot: from the stored facts."""
    bench = Bench(0)
    values = []
    for _ in range(MANY // BATCH):
        new = bench.new(BATCH, lambda: bench.dice.randrange(DAY_MS))
        outcome = bench.machine.decide(Schedule(new), 1, NOW_MS)
        values += [_encode(fact) for fact in outcome.facts if fact.durable]
    machine = new_machine()

    def replay() -> None:
        for offset, value in enumerate(values):
            apply_at(machine, _decode(value), offset)

    taken = cpu_seconds(replay)
    assert machine.measure().pending == MANY
    return row("replay of 1 M stored schedules, without reading the log", taken, "s", None, None)


def measure_longest_tick() -> Row:
    """Until the first one fires every level hands its first bucket down: the largest holds three hours' worth."""
    bench = Bench(MANY)
    longest = 0.0
    while not bench.machine.firing():
        deadline = bench.machine.next_deadline_ms()
        assert deadline is not None
        bench.now_ms = max(bench.now_ms, deadline)
        longest = max(longest, cpu_seconds(lambda: bench.submit(Tick())))
    return row("longest tick, 1 M over a day", longest * 1000, "ms", None, None)


RESIDENT = """
import gc, os
from benchmarks.bench_delays import MANY, Bench, new_machine
from goqueue.cli.bench.process import Process

def resident():
    gc.collect()
    return Process(os.getpid()).memory().rss_bytes

empty = Bench(1000)
before = resident()
"""
PENDING_PROGRAM = f"""{RESIDENT}
bench = Bench(MANY)
print((resident() - before) / MANY)
"""
MACHINES_PROGRAM = f"""{RESIDENT}
machines = [new_machine() for _ in range(10_000)]
print((resident() - before) / len(machines))
"""


def measure_memory() -> list[Row]:
    pending, machines = told_by(PENDING_PROGRAM), told_by(MACHINES_PROGRAM)
    return [
        row("resident memory per pending schedule, 1 M", pending, "bytes", None, "< 100 bytes"),
        row("resident memory per partition with nothing pending", machines, "bytes", None, None),
    ]

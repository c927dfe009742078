"""What journeys cost a publish: brokers that remember none, one in a hundred and all, under the same load, in turns.

Counting is part of all three. The ratio is to the broker that remembers none, of the best turn of each: on a shared
machine the other turns measure the neighbours.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from goqueue.cli.bench.broker import own_broker
from goqueue.cli.bench.load import Load
from goqueue.cli.bench.report import Report
from goqueue.cli.bench.throughput import bench_produce
from goqueue.cli.progress import Progress
from goqueue.telemetry.journeys import Journeys, Step

BUILD = Path(__file__).parents[1] / "build"
TURNS = 7
QUIET = Progress()
SAMPLINGS = (0.0, 0.01, 1.0)
LOADS = (
    Load(50_000, 100, batch=1, durability="os"),
    Load(50_000, 100, batch=1, durability="disk"),
    Load(1_000_000, 100, batch=100, durability="os"),
)
RATE, CPU = "messages_per_s", "broker_cpu_us_per_message"
AIMS = {(RATE, 1.0): "> 0.9", (RATE, 0.01): "> 0.98", (CPU, 1.0): "< 1.1", (CPU, 0.01): "< 1.02"}
NOTES = 200_000

Row = dict[str, object]


def run() -> list[Row]:
    rows = list(note_rows())
    for load in LOADS:
        reports: dict[float, list[Report]] = {sampling: [] for sampling in SAMPLINGS}
        for turn in range(TURNS):
            first = turn % len(SAMPLINGS)
            for sampling in SAMPLINGS[first:] + SAMPLINGS[:first]:
                reports[sampling].append(measure(load, sampling))
        rows += load_rows(load, reports)
    return rows


def measure(load: Load, sampling: float) -> Report:
    BUILD.mkdir(exist_ok=True)
    with own_broker(BUILD, trace_sampling=sampling) as broker:
        return bench_produce(broker, load, QUIET)


def load_rows(load: Load, reports: dict[float, list[Report]]) -> Iterator[Row]:
    for key, choose in ((RATE, max), (CPU, min)):
        values = {sampling: choose(_figures(each, key)) for sampling, each in reports.items()}
        unit = reports[0.0][0].figures[key].unit
        for sampling, value in values.items():
            name = f"produce, {load.batch} a batch, {load.durability}, sampling {sampling:g}"
            is_base = sampling == 0
            yield row(name, value, unit, None if is_base else values[0.0], None if is_base else AIMS[key, sampling])


def _figures(reports: Sequence[Report], key: str) -> list[float]:
    return [report.figures[key].value for report in reports]


def note_rows() -> Iterator[Row]:
    """The call itself."""
    base = note_us(0.0)
    yield row("one note, counted", base, "us", None, None)
    for sampling in SAMPLINGS[1:]:
        yield row(f"one note, sampling {sampling:g}", note_us(sampling), "us", base, None)


def note_us(sampling: float) -> float:
    best = float("inf")
    for _ in range(TURNS):
        journeys = Journeys(sampling)
        note, step = journeys.note, Step.RECEIVED
        started = time.perf_counter()
        for offset in range(NOTES):
            note(1, step, "orders", 0, offset, offset)
        best = min(best, (time.perf_counter() - started) / NOTES * 1e6)
        assert journeys.counts[step] == {("orders", ""): NOTES}
    return best


def row(name: str, value: float, unit: str, baseline: float | None, aim: str | None) -> Row:
    ratio = None if baseline is None else value / baseline
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio, "aim": aim}

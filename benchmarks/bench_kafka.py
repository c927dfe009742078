"""The Kafka door under librdkafka: the loads of `goqueue bench`, several times each, on brokers of our own.

The baselines are those of the loads: an echo of the same bytes through the same event loop, and the sync of the same
bytes where the broker syncs. The ratio is ours divided by raw.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks.harness import QUIET, TURNS, Row, node
from benchmarks.harness import row as row_of
from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.latency import bench_latency
from goqueue.cli.bench.load import Load
from goqueue.cli.bench.report import LABELS, Figure, Report
from goqueue.cli.bench.throughput import bench_consume, bench_produce
from goqueue.cli.progress import Progress

RATE, CPU_MESSAGE, CPU_REQUEST = "messages_per_s", "broker_cpu_us_per_message", "broker_cpu_us_per_request"
THROUGHPUT = (RATE, CPU_MESSAGE, CPU_REQUEST)
MEMORY = ("broker_rss_mib", "broker_rss_anonymous_mib")
SYNCS = ("raw_sync_p50_ms", "raw_sync_p99_ms", "raw_sync_p999_ms")
LATENCY = tuple(f"{name}_{quantile}_ms" for name in ("publish", "delivery") for quantile in ("p50", "p99", "p999"))

PRODUCED = (
    Load(50_000, 100, batch=1, durability="os"),
    Load(1_000_000, 100, batch=100, durability="os"),
    Load(1_000_000, 100, durability="os"),
    Load(300_000, 1000, batch=100, durability="os"),
    Load(300_000, 1000, durability="os"),
    Load(1_000_000, 100, batch=100, durability="disk"),
    Load(300_000, 1000, durability="disk"),
)
CONSUMED = (
    Load(1_000_000, 100, batch=100, durability="os"),
    Load(1_000_000, 100, durability="os"),
    Load(300_000, 1000, batch=100, durability="os"),
    Load(300_000, 1000, durability="os"),
)
ONE_BY_ONE = (Load(10_000, 100, durability="os"), Load(10_000, 100, durability="disk"))
A_GIBIBYTE = Load(1024 * 1024, 1024, durability="disk")

AIMS = {
    ("produce", 1, CPU_REQUEST): "< 10 us",
    ("produce", 100, RATE): "> 100,000 msg/s",
    ("produce", 100, CPU_MESSAGE): "< 0.5 us",
}
LATENCY_AIMS = {("os", "publish_p99_ms"): "< 2 ms", ("disk", "publish_p99_ms"): "< 10 ms"}
MEMORY_AIM = "< 150 MiB"


def run() -> list[Row]:
    rows: list[Row] = []
    for kind, bench, loads in (("produce", bench_produce, PRODUCED), ("consume", bench_consume, CONSUMED)):
        for load in loads:
            rows += throughput_rows(kind, load, [measure(bench, load) for _ in range(TURNS)])
    for load in ONE_BY_ONE:
        rows += latency_rows(load, measure(bench_latency, load))
    return [*rows, *memory_rows(measure(bench_consume, A_GIBIBYTE))]


def measure(bench: Callable[[Broker, Load, Progress], Report], load: Load) -> Report:
    with node() as broker:
        return bench(broker, load, QUIET)


def throughput_rows(kind: str, load: Load, turns: Sequence[Report]) -> Iterator[Row]:
    batches = "natural batches" if load.batch is None else f"{load.batch} a batch"
    name = f"{kind}, {load.value_bytes} bytes, {batches}, {load.durability}"
    for key in THROUGHPUT:
        aim = AIMS.get((kind, load.batch or 0, key)) if load.value_bytes == 100 else None
        yield row(f"{name}: {LABELS[key]}", best(report.figures[key] for report in turns), aim)


def latency_rows(load: Load, report: Report) -> Iterator[Row]:
    for key in (*LATENCY, *(SYNCS if load.durability == "disk" else ())):
        name = f"one in flight, {load.value_bytes} bytes, {load.durability}: {LABELS[key]}"
        yield row(name, report.figures[key], LATENCY_AIMS.get((load.durability or "", key)))


def memory_rows(report: Report) -> Iterator[Row]:
    for key in MEMORY:
        yield row(f"1 GiB in and out: {LABELS[key]}", report.figures[key], MEMORY_AIM)


def best(turns: Iterable[Figure]) -> Figure:
    """On a shared machine the other turns measure the neighbours."""
    figures = list(turns)
    choose = max if figures[0].unit.endswith("/s") else min
    raws = [figure.raw for figure in figures if figure.raw is not None]
    return Figure(choose(figure.value for figure in figures), figures[0].unit, choose(raws) if raws else None)


def row(name: str, figure: Figure, aim: str | None) -> Row:
    return row_of(name, figure.value, figure.unit, figure.raw, aim)

"""What benchmarks share: rows, turns, a node of their own. What `goqueue bench` needs too is in goqueue.cli.bench."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from timeit import timeit
from typing import Any

from goqueue.cli.bench.broker import OwnBroker, own_broker, stopping
from goqueue.cli.progress import Progress

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
"""On the disk of the project: a temporary directory of the system may be memory."""
QUIET = Progress()
TURNS = 3

Row = dict[str, object]


def row(
    name: str,
    value: float,
    unit: str,
    baseline: float | None = None,
    aim: str | None = None,
    *,
    is_cost: bool = False,
) -> Row:
    """`ratio` is ours divided by the baseline; with `is_cost` the other way round, so that less than 1 is worse."""
    ratio = None if not baseline else baseline / value if is_cost else value / baseline
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio, "aim": aim}


def rate_rows(
    title: str, rates: Mapping[str, float], unit: str, baseline: str, aims: Mapping[str, str] | None = None
) -> list[Row]:
    """The rates of several that do the same, each beside that of one of them."""
    return [
        row(f"{title}: {name}", rate, unit, rates[baseline], (aims or {}).get(name)) for name, rate in rates.items()
    ]


def best_rates(works: Mapping[str, Callable[[], float]], turns: int = TURNS) -> dict[str, float]:
    """Taken in turn, the best of each: on a shared machine the other turns measure the neighbours."""
    found: dict[str, float] = {}
    for _ in range(turns):
        for name, work in works.items():
            found[name] = max(work(), found.get(name, 0.0))
    return found


def best_us(rounds: int, calls: int, *works: Callable[[], object]) -> list[float]:
    """Microseconds of one call: of many rounds, taken in turn, the fastest of each."""
    times = [[timeit(work, number=calls) for work in works] for _ in range(rounds)]
    return [min(each) / calls * 1e6 for each in zip(*times)]


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def cpu_seconds(work: Callable[[], object]) -> float:
    """Of this process."""
    return seconds(work, time.process_time)


@contextmanager
def node() -> Iterator[OwnBroker]:
    """So that none pays for the syncs and the deleted files of the one before."""
    BUILD.mkdir(exist_ok=True)
    with own_broker(BUILD) as broker:
        yield broker


@contextmanager
def workplace() -> Iterator[Path]:
    """A directory that is gone afterwards."""
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="bench-") as root:
        yield Path(root)


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`goqueue serve` with settings of ours alone, once it is ready."""
    ready, log = directory / "ready.json", directory / "log"
    command = [str(Path(sys.executable).with_name("goqueue")), "serve", *arguments]
    command += ["--data-dir", str(directory / "data"), "--ready-file", str(ready)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GOQUEUE_")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    with stopping(process):
        while not ready.exists():
            assert process.poll() is None, log.read_text("utf-8")
        yield process


def own_host() -> str:
    """A loopback address whose ports nobody else has."""
    return f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"


def told_by(program: str, *arguments: str) -> Any:
    """What a program, in a process of its own, prints as JSON."""
    command = [sys.executable, "-c", program, *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)

"""Runs the benchmarks: `python -m benchmarks [name ...]`, all of them or those of `bench_<name>.py`.

A benchmark module has `run()`, which measures, checks that its operations succeeded, and returns rows with the keys
name, value, unit, baseline, ratio and aim. Baseline is the raw operation of the same run, ratio compares the two.
"""

import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from benchmarks.machine import describe_commit, describe_machine
from benchmarks.peers.page import write_page
from benchmarks.report import Run, check_rows, read_runs, render, show

HERE = Path(__file__).parent


def main(only: Sequence[str]) -> int:
    available = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = set(only) - set(available)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(available)}", file=sys.stderr)
        return 2
    started = datetime.now(UTC)
    origin = describe_commit()
    results = {name: measure(name) for name in only or available}
    run: Run = {
        "date": f"{started:%Y-%m-%d %H:%M} UTC",
        "commit": str(origin["commit"]),
        "dirty": bool(origin["dirty"]),
        "machine": describe_machine(HERE),
        "results": results,
    }
    save(run, f"{started:%Y-%m-%d-%H%M%S}-{origin['commit']}.json", HERE)
    write_page(read_runs(HERE / "results"), HERE.parent / "docs")
    return 0


def measure(name: str) -> list[dict[str, object]]:
    print(f"{name}: measuring", flush=True)
    started = time.perf_counter()
    rows: list[dict[str, object]] = import_module(f"benchmarks.bench_{name}").run()
    check_rows(name, rows)
    for row in rows:
        more = "".join(f", {key} {show(row[key])}" for key in ("ratio", "aim") if row[key] is not None)
        print(f"  {row['name']}: {show(row['value'])} {row['unit']}{more}", flush=True)
    print(f"{name}: done in {time.perf_counter() - started:.0f} s", flush=True)
    return rows


def save(run: Run, file_name: str, directory: Path) -> None:
    results = directory / "results"
    results.mkdir(exist_ok=True)
    (results / file_name).write_text(json.dumps(run, indent=2) + "\n", "utf-8")
    (directory / "RESULTS.md").write_text(render(read_runs(results)), "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

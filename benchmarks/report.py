"""From result files to the page that people read. The page holds nothing that is not in a result file."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from goqueue.cli.bench.report import show as show_float

COLUMNS = ("name", "value", "unit", "baseline", "ratio", "aim")
OPTIONAL = {"spread", "note"}
"""The lowest and the highest of several rounds, and what has to be known of the figure."""


class Run(TypedDict):
    """One call of `make bench`: what was measured, module by module, where and with which code."""

    date: str
    commit: str
    dirty: bool
    machine: Mapping[str, object]
    results: dict[str, list[dict[str, object]]]


def check_rows(module: str, rows: list[dict[str, object]]) -> None:
    """Rows with other columns would vanish from the page without a word."""
    assert rows, f"{module} measured nothing"
    for row in rows:
        assert set(row) - OPTIONAL == set(COLUMNS), (
            f"{module}: a row has the columns {sorted(row)}, not {sorted(COLUMNS)}"
        )


def read_runs(directory: Path) -> list[Run]:
    """All runs, oldest first: file names begin with the date."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(directory.glob("*.json"))]


def render(runs: Iterable[Run]) -> str:
    """The newest figures of every module; they may come from different runs, so each says where it is from."""
    newest: dict[str, Run] = {}
    for run in runs:
        newest.update(dict.fromkeys(run["results"], run))
    parts = ["# Benchmarks", "Made by `make bench` from `benchmarks/results/`; not edited by hand."]
    for module, run in sorted(newest.items()):
        parts += [f"## {module}", origin(run), _table(run["results"][module])]
    return "\n\n".join(parts) + "\n"


def origin(run: Run) -> str:
    machine = run["machine"]
    memory_bytes = machine["memory_bytes"]
    assert isinstance(memory_bytes, int)
    changed = " with uncommitted changes" if run["dirty"] else ""
    return (
        f"{run['date']}, commit {run['commit']}{changed}. {machine['cpu']}, {machine['cores']} cores, "
        f"{memory_bytes / 2**30:.1f} GiB memory, {machine['kernel']}, {machine['filesystem']}, {machine['python']}."
    )


def _table(rows: list[dict[str, object]]) -> str:
    cells = [COLUMNS, ["---"] * len(COLUMNS), *([_cell(row, column) for column in COLUMNS] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _cell(row: dict[str, object], column: str) -> str:
    told = show(row[column])
    spread = row.get("spread")
    if column == "value" and isinstance(spread, list):
        return f"{told} ({' to '.join(map(show, spread))})"
    return f"{told}; {row['note']}" if column == "name" and "note" in row else told


def show(value: object) -> str:
    if value is None or isinstance(value, float):
        return show_float(value)
    return f"{value:,}" if isinstance(value, int) else str(value)

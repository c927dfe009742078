"""The tables and curves of docs/comparison.md, made from what was recorded and from nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.loads import CPU, FLOW, SYNC_P50, SYNC_P99, UNITS, all_loads
from benchmarks.peers.plot import plot
from benchmarks.report import Run, origin, show

BEGIN = "<!-- made by make bench ONLY=peers -->\n"
END = "<!-- until here -->\n"
NOTHING = "Nothing is recorded yet: `make bench ONLY=peers` measures and writes this part.\n"
PAGE = "comparison.md"
ROUNDS, SCALE = "rounds, one after the other", "messages, of the usual number"
"""Rows that tell how it was measured."""
BARE = (SYNC_P50, SYNC_P99)
"""Of the disk, and of no broker."""
CURVES = {
    "connections": ("Publish of 1: broker CPU by connections", "connections, one message in flight on each"),
    "partitions": ("Publish of 1: broker CPU by partitions", "partitions of the topic, 8 connections"),
    "consume": ("Consume: broker CPU by partitions", "partitions of the topic, one librdkafka consumer"),
    "groups": ("Receive + ack of 1: broker CPU by groups", "groups with one consumer each"),
}


class Cell(NamedTuple):
    load: str
    what: str
    system: str
    row: Mapping[str, object]

    @property
    def value(self) -> float:
        value = self.row["value"]
        assert isinstance(value, float)
        return value


def write_page(runs: Sequence[Run], docs: Path) -> None:
    page = docs / PAGE
    text, plots = render(runs, page.read_text("utf-8"))
    page.write_text(text, "utf-8")
    for name, drawn in plots.items():
        (docs / name).write_text(drawn, "utf-8")


def render(runs: Iterable[Run], page: str) -> tuple[str, dict[str, str]]:
    """The page with its tables made anew, and the plots by the names of their files."""
    before, _, rest = page.partition(BEGIN)
    _, _, behind = rest.partition(END)
    assert behind, f"the page has lost its marks: {BEGIN!r} and {END!r}"
    measured = [run for run in runs if "peers" in run["results"]]
    if not measured:
        return f"{before}{BEGIN}\n{NOTHING}\n{END}{behind}", {}
    newest = measured[-1]
    rows = newest["results"]["peers"]
    cells = list(_cells(rows))
    plots = dict(_plots(cells))
    told = f"{origin(newest)} Rounds: {_setting(rows, ROUNDS)}; median (lowest to highest)."
    if _setting(rows, SCALE) != "1":
        told += f" **A trial with {_setting(rows, SCALE)} of the usual number of messages, which says nothing.**"
    pictures = [f"![{CURVES[name.split('-')[1].split('.')[0]][0]}]({name})" for name in plots]
    return "\n\n".join([before + BEGIN.rstrip(), told, table(cells), *pictures, END + behind]), plots


def _setting(rows: Iterable[Mapping[str, object]], name: str) -> str:
    (found,) = (row for row in rows if row["name"] == name)
    return show(found["value"])


def _cells(rows: Iterable[Mapping[str, object]]) -> Iterable[Cell]:
    for row in rows:
        words = str(row["name"]).split(": ")
        if len(words) == 3:
            yield Cell(words[0], words[1], words[2], row)


def table(cells: Sequence[Cell]) -> str:
    """A line for each load and figure, a column for each system. The best of a line is bold; `>=`: it was the load
    generator that could do no more."""
    systems = list(dict.fromkeys(cell.system for cell in cells))
    lines = [["work", "figure", *systems], ["---"] * (2 + len(systems))]
    for load, what in dict.fromkeys((cell.load, cell.what) for cell in cells):
        line = {cell.system: cell for cell in cells if (cell.load, cell.what) == (load, what)}
        choose = max if what == FLOW else min
        best = None if what in BARE else choose(cell.value for cell in line.values())
        shown = [_shown(line[system], best) if system in line else "" for system in systems]
        lines.append([load, f"{what}, {UNITS[what]}", *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(cell: Cell, best: float | None) -> str:
    value = f"**{show(cell.value)}**" if cell.value == best else show(cell.value)
    spread = cell.row.get("spread")
    assert isinstance(spread, list)
    low, high = map(show, spread)
    floor = ">= " if cell.row.get("note") else ""
    return f"{floor}{value}" if low == high else f"{floor}{value} ({low} to {high})"


def _plots(cells: Sequence[Cell]) -> Iterable[tuple[str, str]]:
    loads = {load.title: load for load in all_loads(1.0) if load.curve}
    for curve, (title, x_title) in CURVES.items():
        found: dict[str, list[tuple[float, float]]] = {}
        for cell in cells:
            if cell.what == CPU and cell.load in loads and loads[cell.load].curve == curve:
                found.setdefault(cell.system, []).append((loads[cell.load].at, cell.value))
        if found:
            yield f"comparison-{curve}.svg", plot(title, x_title, f"broker CPU, {UNITS[CPU]}", found)

"""The comparison with other brokers, without them: what was measured is what the page tells, and no message counts
twice."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.bench_peers import ROUNDS as USUAL_ROUNDS
from benchmarks.bench_peers import SYSTEMS, choose, rows_of
from benchmarks.harness import row
from benchmarks.peers.loads import CPU, FLOW, UNITS, all_loads
from benchmarks.peers.page import BEGIN, END, NOTHING, ROUNDS, SCALE, render
from benchmarks.peers.plot import plot
from benchmarks.peers.system import ProcessTree, number_of, numbered, numbered_batches
from benchmarks.produce_load import Shape
from benchmarks.receivers import receive_all
from benchmarks.report import Run, check_rows, read_runs
from benchmarks.report import render as render_results
from tools.debian import missing_packages
from tools.etcd.server import ETCD
from tools.nats.server import NATS

ROOT = Path(__file__).parents[3]
TITLES = {"goqueue": "GoQueue 9", "redis": "Redis 7"}
LOAD = "receive + ack of 1, 8 connections"
PAGE = f"# Title\n\n{BEGIN}old\n{END}\nthe end\n"


def recorded(rows: list[dict[str, object]], scale: float = 1.0) -> Run:
    machine = {"cpu": "Abacus", "cores": 2, "memory_bytes": 4 << 30, "kernel": "L", "filesystem": "ext4", "python": "P"}
    settings = [row(ROUNDS, 3.0, "rounds"), row(SCALE, scale, "of 1")]
    return {
        "date": "2030",
        "commit": "abc",
        "dirty": False,
        "machine": machine,
        "results": {"peers": [*settings, *rows]},
    }


def test_the_page_tells_what_is_recorded_and_nothing_else() -> None:
    """Run `make bench ONLY=peers`, or `python -m benchmarks` for anything, and it does."""
    page = (ROOT / "docs" / "comparison.md").read_text("utf-8")
    rendered, plots = render(read_runs(ROOT / "benchmarks" / "results"), page)
    assert page == rendered
    drawn = {path.name: path.read_text("utf-8") for path in (ROOT / "docs").glob("comparison-*.svg")}
    assert drawn == plots


def test_a_figure_is_the_median_of_its_rounds_with_their_spread_beside_ours() -> None:
    seen = {(LOAD, CPU, "goqueue"): [70.0, 90.0, 80.0], (LOAD, CPU, "redis"): [20.0, 30.0, 10.0]}
    ours, theirs = rows_of(seen, TITLES)
    check_rows("peers", [ours, theirs])
    assert (ours["name"], ours["value"], ours["ratio"]) == (f"{LOAD}: broker CPU: GoQueue 9", 80.0, None)
    assert (theirs["value"], theirs["unit"], theirs["ratio"], theirs["spread"]) == (20.0, "us/msg", 0.25, [10.0, 30.0])


def test_a_rate_that_the_load_generator_limits_is_told_as_a_floor() -> None:
    figures = {"goqueue": 0.5, "redis": 0.95}
    seen = {(LOAD, FLOW, name): [1000.0] for name in figures} | {
        (LOAD, "load generator", name): [busy] for name, busy in figures.items()
    }
    ours, theirs = rows_of(seen, TITLES)
    assert "note" not in ours
    assert "95% of a core" in str(theirs["note"])
    page, _ = render([recorded([ours, theirs])], PAGE)
    assert f"| {LOAD} | rate, msg/s | **1,000** | >= **1,000** |" in page
    assert "95% of a core" in render_results([recorded([ours, theirs])])


def test_the_table_has_a_column_for_each_broker_and_the_best_is_bold_whoever_it_is() -> None:
    seen = {(LOAD, CPU, "goqueue"): [70.0, 90.0, 80.0], (LOAD, CPU, "redis"): [20.0], ("other", CPU, "redis"): [1.0]}
    page, plots = render([recorded(rows_of(seen, TITLES))], PAGE)
    assert page.startswith("# Title\n\n" + BEGIN)
    assert page.endswith(END + "\nthe end\n")
    assert "| work | figure | GoQueue 9 | Redis 7 |" in page
    assert f"| {LOAD} | broker CPU, us/msg | 80 (70 to 90) | **20** |" in page
    assert "| other | broker CPU, us/msg |  | **1** |" in page
    assert "Rounds: 3; median (lowest to highest)." in page
    assert "trial" not in page
    assert "**A trial with 0.1 of" in render([recorded(rows_of(seen, TITLES), 0.1)], PAGE)[0]
    assert plots == {}
    assert render([recorded(rows_of(seen, TITLES))], page)[0] == page


def test_a_page_of_which_nothing_is_recorded_says_so() -> None:
    page, plots = render([], PAGE)
    assert NOTHING in page
    assert plots == {}
    assert render([], page)[0] == page


def test_growth_is_drawn_for_every_broker_that_was_measured() -> None:
    points = [load for load in all_loads(1.0) if load.curve == "connections"]
    seen = {(load.title, CPU, name): [float(load.at)] for load in points for name in TITLES}
    page, plots = render([recorded(rows_of(seen, TITLES))], PAGE)
    assert list(plots) == ["comparison-connections.svg"]
    assert "](comparison-connections.svg)" in page
    drawn = plots["comparison-connections.svg"]
    assert drawn.count("<polyline") == 2
    assert drawn.count("<circle") == 2 * len(points)


def test_a_plot_is_an_image_with_points_where_the_figures_are() -> None:
    drawn = ElementTree.fromstring(
        plot("a & b", "x", "y", {"flat": [(1, 5.0), (1000, 5.0)], "steep": [(1, 1.0), (1000, 10.0)]})
    )
    circles = [each for each in drawn.iter() if each.tag.endswith("circle")]
    flat, steep = circles[:2], circles[2:]
    assert flat[0].get("cy") == flat[1].get("cy")
    assert float(steep[0].get("cy") or 0) > float(steep[1].get("cy") or 0)
    assert "a & b" in [each.text for each in drawn.iter()]


def test_the_environment_chooses_brokers_loads_and_rounds() -> None:
    everything = choose({})
    assert (list(everything.systems), everything.rounds, everything.scale) == (list(SYSTEMS), USUAL_ROUNDS, 1.0)
    some = choose({"PEERS": "redis, goqueue", "PEERS_LOADS": "synced", "PEERS_ROUNDS": "1", "PEERS_SCALE": "0.1"})
    assert [system.name for system in some.systems] == ["goqueue", "redis"]
    assert [load.key for load in some.loads] == ["synced"]
    assert (some.rounds, some.scale) == (1, 0.1)
    with pytest.raises(SystemExit, match="no such broker: kafak; there are: goqueue, kafka"):
        choose({"PEERS": "kafak"})


def test_loads_have_names_of_their_own_and_titles_that_a_row_can_have() -> None:
    loads = all_loads(1.0)
    assert len({load.key for load in loads}) == len({load.title for load in loads}) == len(loads)
    assert not any(": " in word for load in loads for word in (load.title, *UNITS))
    names = {system.name for system in SYSTEMS}
    assert all(set(load.systems) <= names for load in loads)


def test_every_message_to_a_peer_has_a_number_and_they_are_not_of_one_shape() -> None:
    shape = Shape(100, 5, is_mixed=True, producers=3)
    connections, count = numbered_batches(shape, 100)
    records = [each for batches in connections for batch in batches for each in batch]
    assert [number for number, _ in records] == list(range(count)) == list(range(90))
    assert all(number_of(numbered(record, number)) == number for number, record in records)
    assert len({len(numbered(record, number)) for number, record in records}) > 3
    assert len({record.key for _, record in records}) > 10


def test_the_cpu_of_a_child_belongs_to_its_parent() -> None:
    burn = "sum(range(3_000_000)); print(flush=True); input()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        tree = ProcessTree(process.pid)
        child = ProcessTree(tree.pids()[1])
        assert tree.cpu_s() > child.cpu_s() > 0
        assert tree.memory().rss_bytes > child.memory().rss_bytes
        assert tree.peak_bytes() >= tree.memory().rss_bytes
        process.communicate(b"\n")
    assert os.getpid() not in tree.pids()


class Consumer:
    """Takes from a list that all share, two at a time."""

    group = "workers"
    requests = 0
    sent_bytes = received_bytes = 0

    def __init__(self, waiting: list[int]) -> None:
        self._waiting = waiting
        self._held: list[int] = []
        self.link = self

    def take(self) -> tuple[Iterable[int], int]:
        acknowledged, self._held = len(self._held), self._waiting[:2]
        del self._waiting[:2]
        return self._held, acknowledged

    def go_on(self) -> None:
        self.requests += 1

    def close(self) -> int:
        return len(self._held)


def test_consumers_share_all_messages_and_the_middle_is_measured() -> None:
    waiting = list(range(400))
    spent = receive_all([Consumer(waiting), Consumer(waiting)], 400, lambda: 0.0)
    assert 300 <= spent.messages <= 330
    assert spent.requests * 2 == pytest.approx(spent.messages, abs=4)


def test_a_message_that_comes_twice_fails_the_load() -> None:
    waiting = [*range(50), 7, *range(50, 99)]
    with pytest.raises(AssertionError, match="came twice"):
        receive_all([Consumer(waiting)], 100, lambda: 0.0)


def test_what_apt_would_install_is_fetched() -> None:
    said = "Reading lists...\nInst libx (1-2 Debian:12 [amd64])\nInst redis-server (5:7 Debian:12)\nConf libx (1)\n"
    assert missing_packages(said) == ["libx", "redis-server"]
    assert missing_packages("redis-server is already the newest version\n") == []


def test_programs_that_go_builds_have_the_versions_that_are_pinned() -> None:
    for program in (ETCD, NATS):
        assert f"{program.module} v{program.version}" in (program.directory / "go.mod").read_text("utf-8")
        assert f"{program.module} v{program.version} h1:" in (program.directory / "go.sum").read_text("utf-8")
        assert program.binary.parts[-2:] == (f"{program.name}-{program.version}", program.name)

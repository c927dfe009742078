"""The benchmark runner: what it writes down is what was measured, with the machine and the commit."""

import json
from functools import partial
from pathlib import Path

import pytest

from benchmarks.__main__ import main, save
from benchmarks.harness import best_rates, rate_rows
from benchmarks.harness import row as row_of
from benchmarks.machine import describe_commit, describe_machine
from benchmarks.report import Run, check_rows, render, show
from goqueue.cli.bench.filesystem import find_filesystem


def row(name: str, value: float) -> dict[str, object]:
    return {"name": name, "value": value, "unit": "MB/s", "baseline": 200.0, "ratio": value / 200, "aim": 0.5}


def make_run(date: str, results: dict[str, list[dict[str, object]]], *, dirty: bool = False) -> Run:
    machine = {
        "cpu": "Abacus",
        "cores": 2,
        "memory_bytes": 4 << 30,
        "kernel": "Linux 6",
        "filesystem": "ext4",
        "python": "CPython 3.11",
    }
    return {"date": date, "commit": "abc", "dirty": dirty, "machine": machine, "results": results}


def test_a_run_is_saved_and_shown_as_a_table(tmp_path: Path) -> None:
    run = make_run("2030-01-01", {"storage": [row("append", 150.0)]}, dirty=True)
    save(run, "2030-01-01-abc.json", tmp_path)
    assert json.loads((tmp_path / "results" / "2030-01-01-abc.json").read_text()) == run
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| append | 150 | MB/s | 200 | 0.75 | 0.5 |" in page
    assert (
        "2030-01-01, commit abc with uncommitted changes. "
        "Abacus, 2 cores, 4.0 GiB memory, Linux 6, ext4, CPython 3.11." in page
    )


def test_the_page_keeps_the_newest_figures_of_every_module() -> None:
    page = render(
        [
            make_run("2030-01-01", {"records": [row("decode", 1.0)], "storage": [row("append", 2.0)]}),
            make_run("2030-01-02", {"records": [row("decode", 3.0)]}),
        ]
    )
    assert "| decode | 3 |" in page
    assert "| decode | 1 |" not in page
    assert "| append | 2 |" in page


def test_rows_without_the_agreed_columns_are_refused() -> None:
    check_rows("records", [row("decode", 1.0)])
    with pytest.raises(AssertionError, match="measured nothing"):
        check_rows("records", [])
    with pytest.raises(AssertionError, match="columns"):
        check_rows("records", [row("decode", 1.0) | {"extra": 1}])


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.1234, "0.123"), (1234567.8, "1,234,568"), (99.96, "100"), (1500, "1,500"), ("x", "x")],
)
def test_figures_are_rounded_to_what_they_are_worth(value: object, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("baseline", "is_cost", "ratio"), [(None, False, None), (0.0, False, None), (4.0, False, 2.0), (4.0, True, 0.5)]
)
def test_a_row_is_compared_with_its_baseline(baseline: float | None, is_cost: bool, ratio: float | None) -> None:
    made = row_of("append", 8.0, "us", baseline, "< 10 us", is_cost=is_cost)
    check_rows("storage", [made])
    assert (made["ratio"], made["aim"]) == (ratio, "< 10 us")


def test_the_best_of_turns_that_were_taken_one_after_the_other_counts() -> None:
    taken: list[str] = []
    rates = {"ours": iter((1.0, 6.0)), "theirs": iter((3.0, 2.0))}

    def work(name: str) -> float:
        taken.append(name)
        return next(rates[name])

    found = best_rates({name: partial(work, name) for name in rates}, turns=2)
    assert (found, taken) == ({"ours": 6.0, "theirs": 3.0}, ["ours", "theirs", "ours", "theirs"])
    told = rate_rows("publish", found, "msg/s", "theirs", {"ours": "ratio >= 1"})
    assert [(each["name"], each["ratio"], each["aim"]) for each in told] == [
        ("publish: ours", 2.0, "ratio >= 1"),
        ("publish: theirs", 1.0, None),
    ]


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert "no such benchmark: nonsense" in capsys.readouterr().err


def test_the_nearest_mount_names_the_filesystem() -> None:
    mounts = "overlay / overlay rw 0 0\n/dev/a /data ext4 rw 0 0\ntmpfs /data/x tmpfs rw 0 0\n/dev/b /data xfs rw 0 0\n"
    assert find_filesystem(Path("/data/y"), mounts) == "xfs"
    assert find_filesystem(Path("/data/x/y"), mounts) == "tmpfs"
    assert find_filesystem(Path("/database"), mounts) == "overlay"


def test_machine_and_commit_can_be_told(tmp_path: Path) -> None:
    assert all(describe_machine(tmp_path).values())
    assert set(describe_commit()) == {"commit", "dirty"}

"""Figures as people and programs get them, and the line that shows how far it is."""

import io
import json
import os
import time
from importlib.metadata import version
from random import Random

import pytest

from goqueue.cli.bench.load import Load
from goqueue.cli.bench.process import MIB, Process
from goqueue.cli.bench.report import LABELS, Figure, Report, quantiles, show
from goqueue.cli.progress import Progress


def report(**figures: Figure) -> Report:
    return Report(
        kind="produce",
        load=Load(20_000, 100, batch=100),
        broker="127.0.0.1:9092",
        durability="disk",
        filesystem="ext4",
        counts={"sent": 20_000, "requests": 200},
        figures=figures,
    )


def test_the_table_shows_the_load_the_counts_and_each_figure_beside_its_raw_one() -> None:
    found = report(messages_per_s=Figure(123_456.7, "msg/s", 246_913.4), broker_rss_mib=Figure(45.678, "MiB"))
    assert found.as_table().splitlines() == [
        "goqueue bench produce: 20,000 messages of 100 bytes in batches of 100, 1 partition, durability disk",
        "a broker of its own on ext4; raw: the same bytes without a broker",
        "20,000 sent, 200 requests",
        "",
        "figure           value  unit       raw  ratio",
        "rate           123,457  msg/s  246,913    0.5",
        "broker memory     45.7  MiB",
    ]


def test_a_table_without_raw_figures_has_no_columns_for_them() -> None:
    lines = report(messages_per_s=Figure(1.0, "msg/s")).as_table().splitlines()
    assert lines[-2:] == ["figure  value  unit", "rate        1  msg/s"]


def test_json_holds_the_figures_unrounded() -> None:
    document = json.loads(report(messages_per_s=Figure(123_456.7, "msg/s", 246_913.4)).as_json())
    assert document == {
        "goqueue": version("goqueue"),
        "bench": "produce",
        "broker": {"kafka": "127.0.0.1:9092", "is_own": True, "filesystem": "ext4"},
        "load": {"messages": 20_000, "bytes": 100, "batch": 100, "partitions": 1, "durability": "disk"},
        "counts": {"sent": 20_000, "requests": 200},
        "figures": {"messages_per_s": {"value": 123_456.7, "unit": "msg/s", "raw": 246_913.4, "ratio": 0.5}},
    }


def test_labels_do_not_repeat() -> None:
    assert len(set(LABELS.values())) == len(LABELS)


@pytest.mark.parametrize(("count", "expected"), [(1, (1, 1, 1)), (100, (50, 99, 100)), (10_000, (5000, 9900, 9990))])
def test_quantiles_are_samples_that_were_seen(count: int, expected: tuple[int, int, int]) -> None:
    samples = [float(number) for number in range(1, count + 1)]
    Random(1).shuffle(samples)
    assert quantiles(samples) == dict(zip(("p50", "p99", "p999"), expected))


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0.0, "0"), (0.1234, "0.123"), (99.96, "100"), (1234.5, "1,234")]
)
def test_figures_are_rounded_to_what_they_are_worth(value: float | None, text: str) -> None:
    assert show(value) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_in_one_line() -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    for done in range(1000):
        progress.show("producing", done, 1000)
    progress.clear()
    shown = terminal.getvalue()
    assert shown.startswith("\r\x1b[Kproducing: 0 of 1,000 (0%)")
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


def test_progress_is_silent_elsewhere_but_notes_are_not() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.show("producing", 1, 2)
    progress.clear()
    assert stream.getvalue() == ""
    progress.note("it rains")
    assert stream.getvalue() == "goqueue: it rains\n"


def test_the_cpu_time_of_a_process_is_that_of_its_own_clock() -> None:
    ours = Process(os.getpid())
    before_s = time.process_time()
    seen_s = ours.cpu_s()
    assert before_s <= seen_s <= time.process_time()


def test_memory_counts_what_a_process_holds() -> None:
    ours = Process(os.getpid())
    before = ours.memory()
    held = bytearray(os.urandom(64 * MIB))
    after = ours.memory()
    assert after.anonymous_bytes - before.anonymous_bytes > 32 * MIB
    assert after.rss_bytes >= after.anonymous_bytes
    del held

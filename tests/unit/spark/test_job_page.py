"""The page of a report: whole, without anything from elsewhere, and safe to look at."""

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from goqueue.spark.jobs.charts import bars, lines, nice_top, short
from goqueue.spark.jobs.page import page
from goqueue.spark.jobs.telling import Teller, Totals, cell, table

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>"
TABLES = {
    "throughput": [
        {"topic": HOSTILE, "lane": "high", "window": NOON + timedelta(minutes=n), "messages": n, "bytes": 10 * n,
         "messages_per_second": n / 60}
        for n in range(5)
    ],
    "latency": [
        {"topic": "orders", "group": "g", "lane": "normal", "stage": "end to end", "messages": 9, "p50_ms": 1,
         "p95_ms": 20, "p99_ms": 300, "max_ms": 400}
    ],
    "dead_letters": [],
}  # fmt: skip


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]


def test_a_page_needs_nothing_else_and_runs_nothing() -> None:
    text = page(TABLES, title=f"GoQueue: {HOSTILE}", span="now", made=NOON)
    tags = Tags()
    tags.feed(text)
    assert tags.links == []
    assert "script" not in tags.names
    assert "link" not in tags.names
    assert not re.search(r"url\(|@import|https?://", text)
    assert tags.names.count("svg") == 2
    assert "nothing found" in text  # the dead letters that there are not
    assert "300 ms" in text


def test_charts_are_well_formed_and_inside_their_frame() -> None:
    drawn = lines({"a & b": [(NOON, 1.0), (NOON + timedelta(seconds=9), 42.0)]}, " ms")
    svg = ElementTree.fromstring(drawn[: drawn.index("</svg>") + 6])
    points = next(svg.iter("polyline")).attrib["points"].split()
    places = [tuple(map(float, point.split(","))) for point in points]
    assert all(0 <= x <= 720 and 0 <= y <= 220 for x, y in places)
    assert places[0][1] > places[1][1]  # what is more stands higher
    ElementTree.fromstring(bars({"<x>": [1.0, 2.0]}, ("p50", "p99")).partition("<p")[0])


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (1.1, 2), (37, 40), (450, 500), (99_999, 100_000)])
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_numbers_are_short() -> None:
    numbers = {0: "0", 7: "7", 0.25: "0.25", 1234: "1234", 12_345: "12.3k", 3_400_000: "3.4M"}
    assert [short(each) for each in numbers] == list(numbers.values())


def test_tables_line_up_and_do_not_drive_a_terminal() -> None:
    shown = table([{"topic": "a\x1b[2J", "messages": 1234}, {"topic": "bb", "messages": None}])
    assert shown.splitlines() == ["TOPIC     MESSAGES", r"a\x1b[2J     1,234", "bb               -"]
    assert cell("x" * 100).endswith("...")


def test_bytes_are_told_only_where_those_of_all_messages_are_known() -> None:
    totals = Totals()
    totals.add(0, None)
    totals.add(2, 2048)
    assert str(totals).startswith("2 messages, 2.0 KiB, 0.0 s,")
    totals.add(1, None)
    totals.add(1, 5)
    assert str(totals).startswith("4 messages, 0.0 s,")
    assert totals.facts()["bytes"] is None


def test_answers_are_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    tell = Teller("json")
    tell.rows("windows", [{"window": NOON, "value": b"\xff"}])
    totals = Totals()
    totals.add(3, 30)
    tell.facts("done", totals.facts())
    tell.progress("not at a terminal")
    tell.end()
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert answer["windows"] == [{"window": "2026-11-16T12:00:00.000Z", "value": "\ufffd"}]
    assert (answer["records"], answer["bytes"], said.err) == (3, 30, "")

"""docs/spark.md has every option and every column, as they are."""

import re
from itertools import combinations
from pathlib import Path

from goqueue.spark.options import OPTIONS, Part
from goqueue.spark.read.columns import COLUMNS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "spark.md"


def table_under(title: str) -> list[str]:
    section = PAGE.read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


def test_the_options_are_listed() -> None:
    rows = []
    for option in OPTIONS:
        parts = "all" if option.parts == tuple(Part) else ", ".join(option.parts)
        default = f"`{option.default}`" if option.default else ""
        rows.append(f"| `{option.name}` | {parts} | {default} | {option.meaning} |")
    assert table_under("Options") == rows, "the table of options should read:\n" + "\n".join(rows)


def test_the_columns_are_listed() -> None:
    rows = [
        f"| `{one.name}` | {one.type.simpleString()} | {one.meaning}{' ' if one.meaning else ''}|" for one in COLUMNS
    ]
    assert table_under("Columns") == rows, "the table of columns should read:\n" + "\n".join(rows)


TOPIC = re.compile(r"""(?:load|save|toTable)\("([a-z0-9,_-]+)"\)|\("(?:topic|subscribe)", "([a-z0-9,_-]+)"\)""")


def topics_of(page: Path) -> set[str]:
    """Those that its examples read and write."""
    examples = "".join(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
    return {name for found in TOPIC.findall(examples) for name in "".join(found).split(",")}


def test_every_page_has_topics_of_its_own_so_that_all_can_be_tried_on_one_node() -> None:
    by_page = {page.name: topics_of(page) for page in sorted((ROOT / "docs").glob("spark*.md"))}
    assert by_page["spark.md"] == {"orders", "payments"}
    assert all(by_page.values()), by_page
    shared = {(one, other): by_page[one] & by_page[other] for one, other in combinations(by_page, 2)}
    assert {pages: topics for pages, topics in shared.items() if topics} == {}

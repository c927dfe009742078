"""docs/spark.md has every option and every column, as they are."""

from pathlib import Path

from goqueue.spark.options import OPTIONS, Part
from goqueue.spark.read.columns import COLUMNS

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


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

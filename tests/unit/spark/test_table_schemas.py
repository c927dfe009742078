"""The columns of the tables are what docs/spark-tables.md says they are."""

import re
from pathlib import Path

import pytest

from goqueue.spark.options import OPTIONS
from goqueue.spark.tables.reader import READS
from goqueue.spark.tables.schemas import SCHEMAS

PAGE = (Path(__file__).parents[3] / "docs" / "spark-tables.md").read_text("utf-8")


@pytest.mark.parametrize("table", SCHEMAS)
def test_the_page_tells_every_column_and_its_type(table: str) -> None:
    section = re.search(rf"^## {table}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert section is not None
    told = re.findall(r"^\| `(\w+)` \| (\S+) \|$", section[1], re.MULTILINE)
    assert told == [(field.name, field.dataType.simpleString()) for field in SCHEMAS[table].fields]


def test_every_table_that_may_be_asked_for_is_there() -> None:
    (table,) = [option for option in OPTIONS if option.name == "table"]
    asked = {name for name in SCHEMAS if table.parse(name) == name}
    assert asked == set(SCHEMAS) == set(READS)
    assert table.parse.__doc__ == ", ".join(SCHEMAS)

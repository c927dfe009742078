"""`make demo`: the worked example, from orders to the report, in the session that all tests share."""

import runpy
from pathlib import Path

import pytest
import structlog
from pyspark.sql import SparkSession

DEMO = Path(__file__).parents[3] / "examples" / "orders" / "demo.py"


def test_the_worked_example_runs_to_its_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(DEMO.parent)
    demo = runpy.run_path(str(DEMO), run_name="demo")
    logging = structlog.get_config()
    try:
        code = demo["main"](["--orders", "300", "--directory", str(tmp_path)])
    finally:
        structlog.configure(**logging)
    said = capsys.readouterr().out
    assert code == 0, said
    assert "all right: 600 produced, 600 arrived" in said
    assert "is from nobody that we know" in said
    assert "300 orders" in said
    assert "Throughput" not in said, "a chart's worth of rows is for --out"
    assert "Latency" in said
    found = said.partition("what does DuckDB find in it?")[2].splitlines()
    assert [line for line in found if "\t" in line][:4] == [
        f"{city}\t25\t250.0" for city in ("Lisbon", "Oslo", "Prague", "Turin")
    ]
    assert next(line for line in found if line.startswith("None\t300\t"))

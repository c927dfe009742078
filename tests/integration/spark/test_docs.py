"""The examples of docs/spark.md, run as they stand there, in order."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.process import Node
from tests.integration.spark.reading import publish
from tests.integration.topics import create_topic

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


def test_the_examples_of_the_spark_page_run(
    spark: SparkSession,
    own_node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for topic in ("orders", "payments"):
        create_topic(own_node.address, topic, 1)
        publish(own_node, topic, [b"three", b"four"])
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 3
    try:
        for example in examples:
            placed = example.replace("127.0.0.1:9092", own_node.address)
            assert placed != example
            # A path of Spark's is relative to where its JVM was started.
            placed = placed.replace('"lake/', f'"{tmp_path}/lake/')
            exec(compile(placed, str(PAGE), "exec"), {})
    finally:
        for query in spark.streams.active:
            query.stop()
    assert re.search(r"\|\s*normal\|\s*4\|\s*5\|", capsys.readouterr().out)
    found = spark.read.parquet(str(tmp_path / "lake" / "all")).collect()
    assert sorted((row.topic, row.offset) for row in found) == [
        ("orders", 0),
        ("orders", 1),
        ("payments", 0),
        ("payments", 1),
    ]

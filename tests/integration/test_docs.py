"""The examples of the documentation, run as they stand there."""

import re
from pathlib import Path

from tests.integration.confluent_client import Confluent
from tests.integration.process import Node
from tests.integration.topics import end_offsets

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "kafka.md"
SCHEMAS = DOCS / "schemas.md"


def test_the_examples_of_the_schema_page_hold(own_node: Node) -> None:
    examples = re.findall(r"```python\n(.*?)```", SCHEMAS.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        placed = example.replace("127.0.0.1:9092", own_node.address).replace("http://127.0.0.1:8080", own_node.url)
        assert placed != example
        exec(compile(placed, str(SCHEMAS), "exec"), {})


def test_the_example_of_the_kafka_page_publishes_its_message(own_node: Node) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert "127.0.0.1:9092" in example
    exec(compile(example.replace("127.0.0.1:9092", own_node.address), str(PAGE), "exec"), {})
    ends = {("orders", partition): end for partition, end in end_offsets(own_node, "orders").items()}
    (record,) = Confluent.read(own_node.address, ends)
    assert (record.key, record.value) == (b"customer-7", b"three apples")

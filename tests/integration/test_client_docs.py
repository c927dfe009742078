"""The examples of docs/client.md, run as they stand there, in order, on one node."""

import asyncio
import re
from pathlib import Path
from typing import Any

from goqueue.client.sync import Consumer
from tests.integration.process import Node

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
ADDRESS = "127.0.0.1:9092"
URL = "http://127.0.0.1:8080"


def test_the_examples_of_the_client_page_run(own_node: Node) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 8
    tests = 0
    for example in examples:
        names: dict[str, Any] = {}
        exec(compile(example.replace(ADDRESS, own_node.address).replace(URL, own_node.url), str(PAGE), "exec"), names)
        for name, value in names.items():
            if name.startswith("test_"):
                asyncio.run(value())
                tests += 1
        assert ADDRESS in example or URL in example or tests
    assert tests == 1
    with Consumer(own_node.address, "invoices") as consumer:
        found = {next(consumer).value, next(consumer).value}
        assert found <= {b"bill for apples", b"bill for pears"}

"""The examples of a page about Spark, run as they stand there, with the node of the test instead of the usual one."""

import re
from pathlib import Path
from typing import Any

from tests.integration.process import Node

DOCS = Path(__file__).parents[3] / "docs"
ADDRESS = "127.0.0.1:9092"
URL = "http://127.0.0.1:8080"


def text_of(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


def run_examples(page: str, node: Node, names: dict[str, Any], replaced: dict[str, str] | None = None) -> int:
    """In order; what one defines the next one knows. Gives how many there were."""
    examples: list[str] = re.findall(r"```python\n(.*?)```", text_of(page), re.DOTALL)
    for example in examples:
        code = example.replace(ADDRESS, node.address).replace(URL, node.url)
        for word, other in (replaced or {}).items():
            code = code.replace(word, other)
        exec(compile(code, page, "exec"), names)
    return len(examples)

"""The examples of our pages."""

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[3] / "docs"


def run_examples(page: str, replaced: dict[str, str]) -> dict[str, Any]:
    """All of them in their order, as they stand there but for where things are. Returns what they named."""
    path = DOCS / page
    names: dict[str, Any] = {}
    text = path.read_text("utf-8")
    for written, real in replaced.items():
        text = text.replace(written, real)
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, str(path), "exec"), names)
    return names

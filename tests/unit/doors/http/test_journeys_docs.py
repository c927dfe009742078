"""docs/journeys.md: its examples run as they stand there, and its table names every step."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goqueue.telemetry.spans import NAMES

PAGE = Path(__file__).parents[4] / "docs" / "journeys.md"
TEXT = PAGE.read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def functions_of(example: str) -> dict[str, Callable[[], Any]]:
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    return {name: value for name, value in names.items() if name.startswith("test_")}


FOUND = {name: test for example in EXAMPLES for name, test in functions_of(example).items()}


@pytest.mark.parametrize("name", FOUND)
def test_the_example_passes(name: str) -> None:
    asyncio.run(FOUND[name]())


def test_every_example_holds_a_test() -> None:
    assert len(EXAMPLES) == 2
    assert [example for example in EXAMPLES if not functions_of(example)] == []


def test_every_step_is_explained() -> None:
    rows = re.findall(r"^\| ([A-Z_]+) \| `([a-z_.]+)` \|", TEXT, re.MULTILINE)
    assert dict(rows) == {step.name: name for step, name in NAMES.items()}

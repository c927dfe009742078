"""The examples of docs/testing.md, run as they stand there."""

import asyncio
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goqueue.testing import MemoryBroker, broker

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def functions_of(example: str) -> dict[str, Callable[..., Any]]:
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    return {name: value for name, value in names.items() if name.startswith("test_")}


FOUND = {name: test for example in EXAMPLES for name, test in functions_of(example).items()}


@pytest.mark.parametrize("name", FOUND)
def test_the_example_passes(name: str) -> None:
    test = FOUND[name]
    b = broker()
    outcome = test(b) if "goqueue_broker" in inspect.signature(test).parameters else test()
    if inspect.isawaitable(outcome):

        async def run() -> None:
            await outcome

        asyncio.run(run())
    b.close_now()


def test_every_example_holds_a_test_and_every_call_is_in_the_table() -> None:
    assert [example for example in EXAMPLES if not functions_of(example)] == []
    page = PAGE.read_text("utf-8")
    lived = {"close", "close_now", "open", "kafka"}  # `async with` does these; `b.kafka` has its own chapter
    public = {name for name in dir(MemoryBroker) if not name.startswith("_")} - lived
    assert [name for name in sorted(public) if not re.search(rf"`[^`]*\b{name}\b", page)] == []

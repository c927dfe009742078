"""docs/queue.md: its examples run as they stand there, and its tables say what the code says."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from goqueue.model.group_options import ALL_OPTIONS
from goqueue.model.topics import TopicOptions, dotted
from goqueue.records import dead_letters
from goqueue.records.wishes import DELAY_MS, DELIVER_AT, EXPIRES_AT, PRIORITY

PAGE = Path(__file__).parents[3] / "docs" / "queue.md"
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
    assert [example for example in EXAMPLES if not functions_of(example)] == []
    assert len(FOUND) >= len(EXAMPLES)


def test_every_option_of_queues_is_listed_with_its_default() -> None:
    names = [each.name for each in fields(TopicOptions)]
    ours = names[names.index("delivery") : names.index("table")]
    rows = re.findall(r"^\| `([a-z.]+)` \|([^|]*)\|", TEXT, re.MULTILINE)
    listed = {name: default.strip() for name, default in rows}
    assert listed == {dotted(name): str(getattr(TopicOptions(), name)) for name in ours}
    assert [name for name in ALL_OPTIONS if f"`{name}`" not in TEXT] == []


def test_every_header_is_explained() -> None:
    about = [getattr(dead_letters, name) for name in ("TOPIC", "PARTITION", "OFFSET", "GROUP", "REASON", "ERROR")]
    about += [getattr(dead_letters, name) for name in ("ATTEMPTS", "FIRST_DELIVERED", "DIED_AT", "TIMESTAMP")]
    headers = [PRIORITY, DELIVER_AT, DELAY_MS, EXPIRES_AT, dead_letters.EXPIRED_AT, *about]
    assert [name for name in headers if f"`{name}`" not in TEXT] == []

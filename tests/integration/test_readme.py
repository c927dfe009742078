"""The first messages of the README, sent as it says."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.process import DEADLINE_S, Node

pytestmark = pytest.mark.smoke

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
KAFKA, URL = "127.0.0.1:9092", "http://127.0.0.1:8080"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_first_message_goes_by_curl(own_node: Node) -> None:
    (example,) = blocks("sh")
    script = f"set -e\n{example}".replace(URL, own_node.url)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    made, published, received, acknowledged = _objects(done.stdout)
    assert made["created"] is True
    assert [each["delayed"] for each in published["results"]] == [False, True, False]
    (message,) = received["messages"]
    assert message["value"] in ("three apples", "the house is on fire")
    assert acknowledged["acknowledged"] is True
    assert (acknowledged["partition"], acknowledged["offset"]) == (message["partition"], message["offset"])


def _objects(text: str) -> list[dict[str, Any]]:
    """One after the other, with nothing but space in between."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        at += len(text[at:]) - len(text[at:].lstrip())
        one, at = decoder.raw_decode(text, at)
        found.append(one)
    return found


def test_the_python_examples_run(own_node: Node) -> None:
    examples = blocks("python")
    assert len(examples) == 2
    for example in examples:
        source = example.replace(KAFKA, own_node.address).replace(URL, own_node.url)
        exec(compile(source, "README.md", "exec"), {})

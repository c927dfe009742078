"""Every command, run by the real binary against a real broker, as a table and as JSON. One without a step fails."""

import json
from typing import Any

import pytest

from goqueue.cli.commands.every import COMMANDS
from tests.integration.cli_walk import STEPS, Step
from tests.integration.goqueue_command import Command
from tests.integration.process import Node


class Walk:
    """Fills in what a step leaves open, and takes it out of the answer again."""

    def __init__(self, goqueue: Command, node: Node, form: str) -> None:
        self._goqueue = goqueue
        self._form = form
        self._known = {"t": f"walk-{form}", "url": node.url, "kafka": node.address, "data": str(node.data_dir)}

    def run(self, step: Step) -> None:
        self._find(step)
        words = [word.format(**self._known).replace("+", " " if "*" in word else "+") for word in step.words.split()]
        shape = [] if step.told is None else ["-o", self._form]
        said = self._goqueue.run(*words, *shape, stdin=step.stdin, code=step.code)
        if step.code:
            assert (said.out, step.shown.format(**self._known) in said.err) == ("", True), said
            return
        if self._form == "table" or step.told is None:
            assert step.shown.format(**self._known) in said.out, said
        else:
            assert step.told(self._data(said.out, is_lines=step.is_lines)), said
        assert said.err == "", said

    def _find(self, step: Step) -> None:
        """What only the broker knows."""
        topic = self._known["t"]
        if "{trace}" in step.words:
            self._known["trace"] = self._goqueue.json("trace", "search", "--topic", topic)[0]["trace_id"]
        if "{delayed}" in step.words:
            (delayed,) = self._goqueue.json("delay", "list", topic)
            self._known["delayed"] = f"{delayed['partition']}/{delayed['offset']}"

    def _data(self, text: str, *, is_lines: bool) -> Any:
        for name, value in self._known.items():
            text = text.replace(value, f"{{{name}}}")
        return [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)


def _command_of(step: Step) -> str:
    """Of all whose words it begins with, the longest."""
    return max((each.words for each in COMMANDS if f"{step.words} ".startswith(f"{each.words} ")), key=len)


def test_no_command_is_left_out() -> None:
    """But the pipelines, each of which starts a Spark: tests/integration/spark runs them."""
    shapes = {_command_of(step): step.told is not None for step in STEPS}
    ours = [command for command in COMMANDS if not command.words.startswith("pipeline ")]
    assert shapes == {command.words: bool(command.outputs) for command in ours}


@pytest.mark.parametrize("form", ["table", "json"])
def test_every_command_does_what_it_says(goqueue: Command, node: Node, form: str) -> None:
    walk = Walk(goqueue, node, form)
    (goqueue.home / "stopped" / "logs").mkdir(parents=True)  # of a node that is new
    for step in STEPS:
        walk.run(step)

"""The examples of the brief, line by line, as they stand there."""

import shlex
from pathlib import Path

import pytest

from tests.integration.goqueue_command import Command
from tests.integration.process import Node

LINES = """
topic create orders -p 6 -r 168h
topic list
topic describe orders
produce orders -m hello
consume orders -p 0 --from-beginning
consume orders --group billing
group list
group describe billing
group offsets billing
group reset-offsets billing --topic orders --to-earliest
group delete billing --force
trace list -n 50
trace search --topic orders --status completed
trace stats
cluster info
cluster health
cluster nodes
cluster status
cluster partitions
cluster events
cluster ready
topic list -o table
topic list -o json
topic list -o yaml
config set-context staging --server http://127.0.0.1:8080
config use-context staging
config view
version
topic delete orders --force
"""


@pytest.mark.smoke
def test_the_examples_of_the_brief_work_as_written(own_node: Node, tmp_path: Path) -> None:
    goqueue = Command(tmp_path, own_node.url)
    said = {line: goqueue.run(*shlex.split(line)) for line in LINES.split("\n") if line}
    assert {line for line, each in said.items() if not each.out} <= {"consume orders -p 0 --from-beginning"}
    assert all(each.err == "" for line, each in said.items() if each.out)
    assert said["consume orders --group billing"].lines[0][-1] == "hello"
    assert said["topic list"].lines == [["orders", "6", "0", "0", "B"]]

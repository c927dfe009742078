"""What cannot work is told in one line with an exit code, before Spark is started where that is possible."""

from pathlib import Path

from tests.integration.goqueue_command import Command
from tests.integration.process import Node


def test_no_broker_and_no_topic(goqueue: Command, node: Node, tmp_path: Path) -> None:
    words = ("pipeline", "archive", "no-such-topic", "--lake", str(tmp_path / "lake"))
    said = goqueue.run(*words, "--kafka", "127.0.0.1:1", code=5)
    assert said.err.startswith("goqueue: no broker answers at")
    said = goqueue.run(*words, "--kafka", node.address, code=3)
    assert "no-such-topic" in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "lake").exists()

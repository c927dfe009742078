"""Real nodes and a real etcd whose data directory is put back to an earlier copy of it."""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.etcd_members import Etcds
from tests.integration.goqueue_command import Command
from tests.integration.process import Node, own_host, wait_until


class Pair:
    """Two nodes, and an etcd that can be set back."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.etcds = Etcds(directory).start()
        self.nodes = [self._node(number) for number in (1, 2)]
        for node in self.nodes:
            node.start()

    def _node(self, number: int) -> Node:
        directory = self._directory / f"n{number}"
        directory.mkdir()
        cluster = ("--node-id", str(number), "--etcd", self.etcds.endpoints[0], "--peer", f"{own_host()}:9192")
        return Node(directory, *cluster)

    def back_up(self) -> None:
        self._set("m1", "backup")

    def restore(self) -> None:
        self._set("backup", "m1")

    def _set(self, source: str, target: str) -> None:
        (member,) = self.etcds.members
        member.signal(signal.SIGKILL)
        shutil.rmtree(self._directory / target, ignore_errors=True)
        shutil.copytree(self._directory / source, self._directory / target)
        self.etcds.start()

    def noted(self, node: Node) -> int:
        """How much of the metadata a node has seen, by what it has noted."""
        return int(json.loads((node.data_dir / "directory").read_text("utf-8"))["revision"])

    def clean_up(self) -> None:
        for node in self.nodes:
            node.clean_up()
        self.etcds.clean_up()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    running = Pair(tmp_path)
    yield running
    running.clean_up()


def is_ready(goqueue: Command) -> bool:
    try:
        goqueue.run("cluster", "ready")
    except AssertionError:
        return False
    return True


def test_all_that_was_acknowledged_is_there_after_etcd_was_set_back(pair: Pair, tmp_path: Path) -> None:
    goqueue = Command(tmp_path, pair.nodes[0].url)
    goqueue.run("topic", "create", "orders", "-p", "1")
    wait_until(lambda: is_ready(goqueue), "both nodes in sync")
    goqueue.run("produce", "orders", "-m", "before")
    pair.back_up()
    revision = goqueue.json("cluster", "status")["revision"]
    for node in pair.nodes:
        node.kill()
        node.start()
        wait_until(lambda: is_ready(goqueue), "both nodes in sync again")
    goqueue.run("produce", "orders", "-m", "after")
    wait_until(lambda: all(pair.noted(node) > revision for node in pair.nodes), "notes of the metadata")
    for node in pair.nodes:
        node.kill()
    pair.restore()
    for node in pair.nodes:
        node.start()

    seen = goqueue.json("cluster", "recover")
    assert (seen["is_done"], seen["missing_nodes"], seen["left"]) == (False, [], [])
    (orders,) = [one for one in seen["partitions"] if one["topic"] == "orders"]
    assert [copy["end_offset"] for copy in orders["copies"]] == [2, 2]
    assert "halted" in goqueue.run("cluster", "recover").out.lower()
    assert not is_ready(goqueue)

    assert goqueue.json("cluster", "recover", "--yes", "--reason", "restored")["is_done"]
    wait_until(lambda: is_ready(goqueue), "both nodes in sync after the recovery")
    goqueue.run("produce", "orders", "-m", "later")
    read = goqueue.run("consume", "orders", "--from-beginning", "-n", "3", "-o", "value").out.split()
    assert read == ["before", "after", "later"]

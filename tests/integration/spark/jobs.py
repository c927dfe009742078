"""What the tests of the jobs share: messages in a topic, and a job as a function."""

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from goqueue.client import NewMessage
from goqueue.client.sync import Producer
from tests.integration.process import Node

Place = tuple[int, int]
SPARK_DEADLINE_S = 600.0
"""Starting Spark alone takes 6 s on an idle machine, and a minute on a busy one."""


class Jobs:
    """Calls main() of a job, in the session that all tests share, with this node as broker and server."""

    def __init__(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        self._node = node
        self._capsys = capsys

    def __call__(self, job: ModuleType, *words: str, code: int = 0) -> dict[str, Any]:
        """What it said, as JSON."""
        asked = ["--kafka", self._node.address, "--server", self._node.url, "-o", "json"]
        self._capsys.readouterr()  # what was said before is not the job's
        found = job.main([*words, *asked])
        said = self._capsys.readouterr()
        assert found == code, said
        return dict(json.loads(said.out)) if said.out else {"error": said.err}


def publish(node: Node, topic: str, values: Sequence[bytes], keys: int = 7) -> dict[bytes, Place]:
    """Where each is now."""
    with Producer(node.address) as producer:
        messages: list[NewMessage] = [
            {"value": value, "key": b"key %d" % (number % keys), "headers": {"number": b"%d" % number}}
            for number, value in enumerate(values)
        ]
        receipts = producer.send_many(topic, messages)
    return {value: (receipt.partition, receipt.offset) for value, receipt in zip(values, receipts)}


def wait_for_batches(lake: Path, batches: int, process: "subprocess.Popen[bytes]") -> None:
    pause = threading.Event()
    give_up = time.monotonic() + SPARK_DEADLINE_S
    while len({path.name for path in lake.glob("topic=*/date=*/batch=*")}) < batches:
        assert process.poll() is None, "it ended before it had written so much"
        assert time.monotonic() < give_up, f"no {batches} batches within {SPARK_DEADLINE_S} s"
        pause.wait(0.02)

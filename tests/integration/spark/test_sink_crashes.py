"""kill -9 of the driver, of an executor and of the node, in the middle: every row is there, and once."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import venv
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from goqueue.spark.sink.task import CHUNK_ROWS
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node
from tests.integration.spark.killing import kill_all_of
from tests.integration.spark.sink_driver import JOB_ROWS, TASKS, stream
from tests.integration.spark.test_sink import PARTITIONS, committed, wait_decided
from tests.integration.topics import end_offsets
from tools.release import build_wheel

SCRIPT = Path(__file__).with_name("sink_driver.py")
ROOT = Path(__file__).parents[3]
FILES, LINES = 16, 500
SPARK_HOME = Path(pyspark.__file__).parent
HANGS_S = 10 * DEADLINE_S


class Driver:
    """In a process group of its own, with its JVM."""

    def __init__(self, kind: str, node: Node, topic: str, directory: Path) -> None:
        command = [sys.executable, str(SCRIPT), kind, node.address, topic, str(directory)]
        self.log = directory / "driver.log"
        self.started = directory / "started"
        self.started.unlink(missing_ok=True)
        with self.log.open("a") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """The driver must live to see it. There is no nearer deadline: a JVM on a busy machine takes what it takes."""
        pause = threading.Event()
        give_up = time.monotonic() + HANGS_S
        while not is_so():
            assert self._process.poll() is None, f"it ended before {what}:\n{self.log.read_text()}"
            assert time.monotonic() < give_up, f"it hangs before {what}:\n{self.log.read_text()}"
            pause.wait(0.02)
        assert self._process.poll() is None, f"it ended with {what}:\n{self.log.read_text()}"

    def kill(self) -> None:
        if self._process.poll() is None:
            kill_all_of(self._process.pid)
        self._process.wait()

    def end(self) -> None:
        assert self._process.wait(HANGS_S) == 0, self.log.read_text()


@contextmanager
def running(kind: str, node: Node, topic: str, directory: Path) -> Iterator[Driver]:
    driver = Driver(kind, node, topic, directory)
    try:
        driver.wait_until(driver.started.exists, "the start of Spark")
        yield driver
    finally:
        driver.kill()
        if driver.started.exists():  # what the executors of a local cluster leave in the directory of Spark itself
            shutil.rmtree(SPARK_HOME / "work" / driver.started.read_text(), ignore_errors=True)


def test_a_stream_is_exact_over_kills_of_its_driver_and_of_the_node(
    spark: SparkSession, own_node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    """What two killed ones have left, this session goes on with."""
    topic = make_topic(PARTITIONS)
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        lines = "".join(f"{number}-{line}\n" for line in range(LINES))
        (tmp_path / "in" / f"{number}.txt").write_text(lines)

    def written() -> int:
        return sum(end_offsets(own_node, topic).values())

    def decided() -> int:
        return sum(end_offsets(own_node, topic, committed_only=True).values())

    with running("stream", own_node, topic, tmp_path) as driver:
        driver.wait_until((tmp_path / "checkpoint" / "offsets" / "0").exists, "the first batch")
        driver.wait_until(lambda: written() > decided(), "that tasks have written what is not committed")
    before = decided()
    with running("stream", own_node, topic, tmp_path) as driver:
        driver.wait_until(lambda: decided() > before, "a batch")
        own_node.kill()
        own_node.start()
        after = decided()
        driver.wait_until(lambda: decided() > after, "that a batch is committed, which Spark may not have noted")
    stream(spark, own_node.address, topic, tmp_path)
    wait_decided(own_node, topic)
    found = Counter(record.value for record in committed(own_node, topic))
    assert found == Counter(f"{number}-{line}".encode() for number in range(FILES) for line in range(LINES))


def test_a_job_is_exact_over_the_kill_of_an_executor(own_node: Node, make_topic: CreateTopic, tmp_path: Path) -> None:
    topic = make_topic(PARTITIONS)
    with running("job", own_node, topic, tmp_path) as driver:
        driver.wait_until(
            lambda: sum(end_offsets(own_node, topic).values()) >= TASKS * CHUNK_ROWS, "that all have sent"
        )
        os.kill(executors_of(driver.pid)[0], signal.SIGKILL)
        (tmp_path / "go").touch()
        driver.end()
    # What the dead one had left open was ended with the rest, long before its time is over.
    wait_decided(own_node, topic)
    found = Counter(record.value for record in committed(own_node, topic))
    expected = [f"{task}-{number}".encode() for task in range(TASKS) for number in (*range(JOB_ROWS), "last")]
    assert found == Counter(expected)
    assert sum(end_offsets(own_node, topic).values()) > len(expected) + CHUNK_ROWS, "somebody has written in vain"


def test_a_cluster_with_nothing_but_the_wheel_writes_every_row_once(
    own_node: Node, make_topic: CreateTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standalone cluster, whose Python has GoQueue from its wheel and knows no checkout."""
    topic, installed = make_topic(PARTITIONS), tmp_path / "executor"
    venv.create(installed, with_pip=False)
    (packages,) = installed.glob("lib/python*/site-packages")
    with zipfile.ZipFile(build_wheel(ROOT, tmp_path)) as wheel:
        wheel.extractall(packages)
    # What GoQueue needs is that of the tests. A path in a file like this does not bring the checkout that is in there.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    monkeypatch.setenv("PYSPARK_PYTHON", str(installed / "bin" / "python"))
    with running("wheel", own_node, topic, tmp_path) as driver:
        driver.end()
    assert Path((tmp_path / "found").read_text()).is_relative_to(installed)
    wait_decided(own_node, topic)
    expected = Counter(f"{task}-{number}".encode() for task in range(TASKS) for number in range(JOB_ROWS))
    assert Counter(record.value for record in committed(own_node, topic)) == expected
    assert int((tmp_path / "read").read_text()) == len(expected)


def executors_of(pid: int) -> list[int]:
    """Spark's executors among the descendants of a process."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):  # every thread has its own
        for child in children.read_text().split():
            found += executors_of(int(child))
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return [*found, pid] if b"CoarseGrainedExecutorBackend" in command else found

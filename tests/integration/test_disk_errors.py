"""A real node whose disk fails in the middle of a load (strace makes calls fail, or the kernel does): an idempotent
producer that tries again until it is acknowledged finds each message there once, after the node was killed and started
again.
"""

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from tests.integration.confluent_client import QUIET, Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.read_only import is_read_only, leave_no_room, on_own_filesystem
from tests.integration.topics import create_topic, end_offsets

STRACE = shutil.which("strace")
PARTITIONS = 2
MESSAGES = 400
IN_FLIGHT = 5 * 5
"""Messages of one partition that are under way at once: five batches of five."""
REFUSED = 6 * IN_FLIGHT
"""So that what failed was surely sent again before the node is killed."""

SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
MAY_ATTACH = os.geteuid() == 0 or not SCOPE.exists() or SCOPE.read_text("utf-8").strip() == "0"

MAY_TRACE = STRACE is not None and MAY_ATTACH
by_strace = pytest.mark.skipif(not MAY_TRACE, reason="strace is not installed or not allowed")


@contextmanager
def failing(node: Node, tmp_path: Path, calls: str, error: str, when: str, path: Path | None = None) -> Iterator[Path]:
    """These system calls of the node fail, those on `path` if it is given; gives the file that lists them."""
    told = tmp_path / "strace"
    command = [STRACE or "", "-f", "-o", str(told), "-e", f"trace={calls}"]
    command += ["-e", f"inject={calls}:error={error}:when={when}", *(["-P", str(path)] if path else [])]
    with subprocess.Popen([*command, "-p", str(node.pid)], stderr=subprocess.DEVNULL) as strace:
        try:
            wait_until(lambda: strace.poll() is not None or _is_traced(node.pid), "strace at work")
            assert strace.poll() is None, "strace cannot be used here"
            yield told
        finally:
            strace.terminate()


def _is_traced(pid: int) -> bool:
    try:
        return all(
            "TracerPid:\t0" not in each.read_text("utf-8") for each in Path(f"/proc/{pid}/task").glob("*/status")
        )
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has just ended


def refused(node: Node, topic: str) -> float:
    with urllib.request.urlopen(f"{node.url}/metrics", timeout=DEADLINE_S) as page:
        lines = page.read().decode().splitlines()
    named = "goqueue_broker_messages_failed_total"
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(named) and f'"{topic}"' in line)


def producer(node: Node) -> ck.Producer:
    settings: dict[str, Any] = {
        "bootstrap.servers": node.address,
        "enable.idempotence": True,
        "message.timeout.ms": int(DEADLINE_S * 1000),
        "linger.ms": 1,
        "batch.num.messages": 5,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 50,
        **QUIET,
    }
    return ck.Producer(settings)


class Load:
    def __init__(self, node: Node, topic: str) -> None:
        self._producer = producer(node)
        self._topic = topic
        self.values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self.acknowledged = 0
        for number in range(MESSAGES):
            value = b"%d" % number
            self.values[number % PARTITIONS].append(value)
            self._producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=self._delivered)

    def _delivered(self, error: ck.KafkaError | None, _message: ck.Message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged += 1

    def finish(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0
        assert (self.failures, self.acknowledged) == ([], MESSAGES)

    def found(self, node: Node) -> list[list[bytes | None]]:
        ends = {(self._topic, number): end for number, end in end_offsets(node, self._topic, PARTITIONS).items()}
        records = Confluent.read(node.address, ends)
        return [[each.value for each in records if each.partition == number] for number in range(PARTITIONS)]


WRITES = "pwritev,pwritev2"
READ_ONLY = f"{WRITES},pwrite64,fdatasync,fsync,fallocate,ftruncate"


@pytest.mark.parametrize(
    ("calls", "error", "when", "is_of_one_partition"),
    [
        (WRITES, "EIO", "5", True),
        (WRITES, "ENOSPC", "5", True),
        ("fdatasync", "EIO", "5", True),
        (READ_ONLY, "EROFS", "15+", False),
    ],
    ids=["a write fails", "a write finds no room", "a sync fails", "everything fails"],
)
@by_strace
def test_what_a_producer_was_told_is_there_holds_after_a_disk_error(
    own_node: Node,
    make_topic: CreateTopic,
    tmp_path: Path,
    calls: str,
    error: str,
    when: str,
    is_of_one_partition: bool,
) -> None:
    topic = make_topic(PARTITIONS)
    (path,) = own_node.data_dir.glob(f"**/{topic}/0/*.log")
    with failing(own_node, tmp_path, calls, error, when, path if is_of_one_partition else None) as told:
        load = Load(own_node, topic)
        wait_until(lambda: refused(own_node, topic) >= REFUSED, "a refusal")
        assert "INJECTED" in told.read_text("utf-8")
        own_node.kill()
    own_node.start()
    load.finish()
    assert load.found(own_node) == load.values


@contextmanager
def turning_read_only(directory: Path) -> Iterator[tuple[Node, Callable[[], None]]]:
    """A node, and what shuts its filesystem."""
    found = on_own_filesystem(directory)
    node = found[0] if found else Node(directory)
    with ExitStack() as stack:
        stack.callback(node.clean_up)

        def shut() -> None:
            if found:
                found[1]()
                assert is_read_only(node)
            elif MAY_TRACE:
                stack.enter_context(failing(node, directory, READ_ONLY, "EROFS", "1+"))
            else:
                leave_no_room(node)

        yield node.start(), shut


def test_what_a_producer_was_told_is_there_holds_when_the_filesystem_turns_read_only(tmp_path: Path) -> None:
    with turning_read_only(tmp_path) as (node, shut):
        topic = "orders"
        create_topic(node.address, topic, PARTITIONS, {})
        first = Load(node, topic)
        first.finish()
        shut()
        second = Load(node, topic)
        wait_until(lambda: refused(node, topic) >= PARTITIONS, "a refusal")
        node.kill()
        node.start()
        second.finish()
        both = [before + after for before, after in zip(first.values, second.values)]
        assert second.found(node) == both
        node.kill()
        node.start()
        assert second.found(node) == both


@by_strace
def test_a_disk_without_room_refuses_and_goes_on_when_there_is_room(
    own_node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic = make_topic(PARTITIONS)
    (path,) = own_node.data_dir.glob(f"**/{topic}/0/*.log")
    with failing(own_node, tmp_path, "fallocate", "ENOSPC", "1..3", path) as told:
        load = Load(own_node, topic)
        load.finish()
        assert told.read_text("utf-8").count("INJECTED") == 3
    assert load.found(own_node) == load.values
    own_node.kill()
    own_node.start()
    assert load.found(own_node) == load.values

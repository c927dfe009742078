"""What a broker must be able to do to be compared, and how its process is kept and measured."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from benchmarks.produce_load import Record, Shape, record_lists
from benchmarks.receivers import Receiver
from benchmarks.senders import Sender
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.process import KIB, Memory, Process
from tools.nemesis.enclosure import WITH_PARENT

START_S_MAX = 120.0
STOP_S_MAX = 30.0
LOOK_S = 0.01
HOST = "127.0.0.1"


class Reader(Protocol):
    """Waits for messages of which the value begins with a number."""

    socket: socket.socket

    def receive(self) -> Iterable[int]:
        """Called when something has come: the numbers of the messages in it. Asks for more, if that is needed."""


class Running(Protocol):
    """A broker that has been started."""

    process: "ProcessTree"
    directory: Path

    def make(self, topic: str, partitions: int = 1) -> None:
        """A topic, stream or queue."""

    def senders(self, topic: str, partitions: int, shape: Shape, messages: int) -> tuple[list[Sender], int]:
        """Connections that publish about so many messages; and how many they are exactly."""

    def values_sender(self, topic: str, values: Sequence[bytes]) -> Sender:
        """One connection that publishes one message for each of the values."""

    def receivers(self, topic: str, groups: Sequence[str], pull: int) -> list[Receiver]:
        """A consumer for each of the groups, which may be one and the same. They begin with the first message."""

    def reader(self, topic: str) -> Reader:
        """It gets what is published from now on, and acknowledges nothing."""


class System(Protocol):
    """A kind of broker."""

    name: str

    def title(self) -> str:
        """With its version. Whatever has to be fetched is there afterwards."""

    def start(self, place: Path, *, is_synced: bool) -> "contextlib.AbstractContextManager[Running]":
        """A new broker with nothing in it. `is_synced`: what is acknowledged is on the disk, and not only in the page
        cache."""


class ProcessTree(Process):
    """A process with all that it has started."""

    start_s = 0.0
    """From its start to its first answer."""

    def cpu_s(self) -> float:
        """One that has ended is not counted any more: brokers do not start any while they are measured."""
        total = 0.0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                total += Process(pid).cpu_s()
        return total

    def pids(self) -> list[int]:
        found = [self.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += map(int, (task / "children").read_text("ascii").split())
        return found

    def memory(self) -> Memory:
        return Memory(self._sum("VmRSS"), self._sum("RssAnon"))

    def peak_bytes(self) -> int:
        """Of resident memory."""
        return self._sum("VmHWM")

    def _sum(self, name: str) -> int:
        total = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
                    if line.startswith(f"{name}:"):
                        total += int(line.split()[1]) * KIB
        return total


@contextmanager
def started(
    command: Sequence[str | Path],
    place: Path,
    is_ready: Callable[[], object],
    environment: Mapping[str, str] | None = None,
) -> Iterator[ProcessTree]:
    """A process that has answered once, and is stopped afterwards with all that it has started."""
    output = place / "output"
    with output.open("wb") as into:
        process = subprocess.Popen(
            [*(WITH_PARENT if shutil.which(WITH_PARENT[0]) else ()), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=into,
            stderr=into,
            cwd=place,
            env=os.environ | dict(environment or {}),
        )
    tree = ProcessTree(process.pid)
    try:
        began_s = time.monotonic()
        deadline_s = began_s + START_S_MAX
        while True:
            try:
                is_ready()
                break
            except (OSError, AssertionError):
                if process.poll() is not None or time.monotonic() > deadline_s:
                    said = output.read_text("utf-8", "replace")[-2000:]
                    raise BenchFailed(f"{command[0]} did not start: {said}") from None
            time.sleep(LOOK_S)
        tree.start_s = time.monotonic() - began_s
        yield tree
    finally:
        _stop(process, tree)


def _stop(process: "subprocess.Popen[bytes]", tree: ProcessTree) -> None:
    children = tree.pids()[1:]
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)


def free_ports(count: int) -> list[int]:
    listening = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in listening]
    for each in listening:
        each.close()
    return ports


def numbered(record: Record, number: int) -> bytes:
    """Its value, with a number in place of the first bytes: so consumers can tell messages apart."""
    value = record.value or b""
    head = number_head(number)
    return head + value[len(head) :]


def number_head(number: int) -> bytes:
    return b"%010d" % number


NUMBER_BYTES = len(number_head(0))


def number_of(value: bytes) -> int:
    return int(value[:NUMBER_BYTES])


def numbered_batches(shape: Shape, messages: int) -> tuple[list[list[list[tuple[int, Record]]]], int]:
    """For each connection its batches of numbered records, and how many records they are in all."""
    lists = record_lists(shape)
    batches = max(1, messages // (shape.batch * shape.producers))
    made, number = [], 0
    for connection in range(shape.producers):
        mine = []
        for turn in range(batches):
            content = lists[(turn + connection) % len(lists)]
            mine.append(list(enumerate(content, number)))
            number += shape.batch
        made.append(mine)
    return made, number


def libraries(root: Path) -> dict[str, str]:
    """The environment of a program that was unpacked there."""
    found = sorted({str(library.parent) for library in root.glob("usr/lib/*/*.so.*")}) if root != Path("/") else []
    return {"LD_LIBRARY_PATH": ":".join(found)} if found else {}

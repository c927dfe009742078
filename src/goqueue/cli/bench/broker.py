"""The broker that is measured: one that somebody names, or one of our own, whose cost can be measured too.

Our own is the program that `goqueue serve` runs, in a process and a directory of its own. It reads no environment, so
that the settings of a node nearby do not change what is measured.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.filesystem import filesystem_of
from goqueue.cli.bench.process import Process
from goqueue.client import Security
from goqueue.node.settings import Settings
from goqueue.node.values import Address, Switch

START_S_MAX = 60
STOP_S_MAX = 30


@dataclass(frozen=True)
class Broker:
    address: str
    process: Process | None = None
    """Of our own broker."""
    directory: Path | None = None
    """On the disk of our own broker, for raw writes beside it."""
    security: Security | None = None

    @property
    def filesystem(self) -> str | None:
        return None if self.directory is None else filesystem_of(self.directory)


@dataclass(frozen=True, kw_only=True)
class OwnBroker(Broker):
    process: Process
    directory: Path
    http: str
    grpc: str


@contextmanager
def own_broker(parent: Path | None = None) -> Iterator[OwnBroker]:
    """A broker in a new directory under `parent`, both gone afterwards."""
    try:
        place = tempfile.TemporaryDirectory(prefix="goqueue-bench-", dir=parent)
    except OSError as error:
        raise BenchFailed(f"cannot make a directory for the broker: {error.strerror}: {error.filename}") from error
    with place as name:
        directory = Path(name)
        with (directory / "stderr").open("wb") as errors:
            process = start_python("goqueue.cli.bench.broker", "serve_here", name, stderr=errors)
        with stopping(process):
            at = _wait_ready(process, directory)
            yield OwnBroker(
                address=at["kafka"],
                process=Process(process.pid),
                directory=directory,
                http=at["http"],
                grpc=at["grpc"],
            )


def start_python(module: str, function: str, *arguments: str, stderr: object = None) -> subprocess.Popen[bytes]:
    """Call a function of ours in a process of its own. Its stdin ends when this process does."""
    code = f"import sys; from {module} import {function}; {function}(*sys.argv[1:])"
    command = [sys.executable, "-P", "-c", code, *arguments]  # -P: what lies in the current directory is not imported
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)  # type: ignore[call-overload, no-any-return]  # noqa: S603


@contextmanager
def stopping(process: subprocess.Popen[bytes]) -> Iterator[None]:
    with process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_ready(process: subprocess.Popen[bytes], directory: Path) -> dict[str, str]:
    """Its addresses, by what is spoken there."""
    ready_file = directory / "ready.json"
    deadline = time.monotonic() + START_S_MAX
    while not ready_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            said = (directory / "stderr").read_text("utf-8", "replace").strip().splitlines() or ["without a word"]
            raise BenchFailed(f"its own broker did not start: {said[-1]}")
        time.sleep(0.01)
    addresses: dict[str, str] = json.loads(ready_file.read_text("utf-8"))
    return addresses


def serve_here(name: str) -> None:
    """What the broker's process runs."""
    from goqueue.node.process import serve

    threading.Thread(target=_stop_with_parent, daemon=True).start()
    directory = Path(name)
    free = Address("127.0.0.1", 0)
    ready_file = directory / "ready.json"
    serve(Settings(data_dir=directory / "data", dev=Switch.ON, ready_file=ready_file, kafka=free, http=free, grpc=free))


def _stop_with_parent() -> None:
    """A parent that was killed cannot stop its broker, but its end of our stdin is closed then."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)

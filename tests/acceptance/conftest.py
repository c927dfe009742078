"""The program as a user runs it: a process, its exit code, its words and its ready file."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

GOQUEUE = Path(sys.executable).with_name("goqueue")
READY = re.compile(r'"event": "ready"|GoQueue \S+ is running')
DEADLINE_S = 60.0
"""Far away: a slow machine is not a failure."""


def wait_until(is_done: Callable[[], bool], what: str) -> None:
    """The only place where a test waits for something outside its own process."""
    pause = threading.Event()
    for _ in range(int(DEADLINE_S / 0.01)):
        if is_done():
            return
        pause.wait(0.01)
    pytest.fail(f"{what} did not happen within {DEADLINE_S} s")


class Server:
    """A running `goqueue`."""

    def __init__(self, command: list[str | Path], directory: Path, variables: dict[str, str]) -> None:
        self.errors_file = directory / f"stderr-{len(list(directory.glob('stderr-*')))}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GOQUEUE_")}
        clean["GOQUEUE_KAFKA"] = clean["GOQUEUE_HTTP"] = clean["GOQUEUE_GRPC"] = (
            "127.0.0.1:0"  # several nodes run at once
        )
        with self.errors_file.open("w") as errors:
            self.process = subprocess.Popen(command, cwd=directory, stderr=errors, env=clean | variables)

    @property
    def errors(self) -> str:
        return self.errors_file.read_text("utf-8")

    @property
    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.errors.splitlines()]

    def event(self, name: str) -> dict[str, object]:
        (found,) = [event for event in self.events if event["event"] == name]
        return found

    def wait_ready(self) -> "Server":
        wait_until(lambda: self.process.poll() is not None or READY.search(self.errors) is not None, "start")
        assert self.process.poll() is None, self.errors
        return self

    def wait_exit(self) -> int:
        return self.process.wait(timeout=DEADLINE_S)

    def send(self, number: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.wait_exit()


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start `goqueue serve` in an empty directory; whatever still runs at the end of the test is killed."""
    started: list[Server] = []

    def start(*arguments: str | Path, **variables: str) -> Server:
        started.append(Server([GOQUEUE, "serve", *arguments], tmp_path, variables))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.wait_exit()

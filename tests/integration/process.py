"""The real `goqueue serve` as a process that a test may kill and start again on the same directory and port."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom

GOQUEUE = Path(sys.executable).with_name("goqueue")
DEADLINE_S = 60.0
"""Far away: a slow machine is not a failure."""
SHOWN_LINES = 80
_dice = SystemRandom()  # others are seeded alike in all workers


class Late(AssertionError):
    """Something did not happen within the far deadline."""


def wait_until(is_done: Callable[[], bool], what: str) -> None:
    """For what happens outside this process and cannot be waited on."""
    pause = threading.Event()
    give_up = time.monotonic() + DEADLINE_S
    while not is_done():
        if time.monotonic() > give_up:
            raise Late(f"{what} did not happen within {DEADLINE_S} s")
        pause.wait(0.01)


def own_host() -> str:
    """One of the sixteen million addresses that lead back to this machine: nobody else listens or is connected there,
    so that no port is taken, nor given away while its node is down.
    """
    return f"127.{_dice.randrange(1, 255)}.{_dice.randrange(256)}.{_dice.randrange(1, 255)}"


class Node:
    """A running `goqueue serve`, its data directory and its log."""

    def __init__(self, directory: Path, *arguments: str, is_closed: bool = False, host: str = "") -> None:
        """`is_closed`: as without any flag. Else it is open, if its arguments do not say what it is."""
        self._directory = directory
        self.arguments = arguments
        host = host or own_host()
        self._address, self._http_address, self._grpc_address = f"{host}:9092", f"{host}:8080", f"{host}:9000"
        self._process: subprocess.Popen[bytes] | None = None
        self.program = [str(GOQUEUE)]
        says = is_closed or "--authentication" in arguments or "--insecure" in arguments
        self._openness = () if says else ("--dev",)
        self.log_file = directory / "log"
        self.data_dir = directory / "data"

    @property
    def address(self) -> str:
        return self._address

    @property
    def url(self) -> str:
        """Of the HTTP door."""
        return f"http://{self._http_address}"

    @property
    def grpc(self) -> str:
        """The address of the gRPC door."""
        return self._grpc_address

    @property
    def first_key(self) -> str:
        """Of a closed node: its first admin's."""
        return (self._directory / "bootstrap.key").read_text("ascii").strip()

    @property
    def endpoint(self) -> tuple[str, int]:
        host, _, port = self._address.rpartition(":")
        return host, int(port)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_tail(self) -> str:
        lines = self.log_file.read_text("utf-8").splitlines() if self.log_file.exists() else []
        return "\n".join(lines[-SHOWN_LINES:])

    def start(self) -> "Node":
        """On its own ports, each time the same."""
        ready_file = self._directory / "ready.json"
        ready_file.unlink(missing_ok=True)
        command = [*self.program, "serve", *self._openness, "--data-dir", str(self.data_dir), "--kafka", self._address]
        command += ["--http", self._http_address, "--grpc", self._grpc_address]
        # Many tests send timestamps of years ago, which retention by age would rightly delete in the middle of a test.
        command += ["--ready-file", str(ready_file), "--retention-ms", "-1", *self.arguments]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GOQUEUE_")}
        with self.log_file.open("a") as log:
            process = self._process = subprocess.Popen(command, stderr=log, env=clean)
        wait_until(lambda: ready_file.exists() or process.poll() is not None, "the start of the node")
        assert process.poll() is None, f"the node ended with {process.returncode}:\n{self.log_tail}"
        ready = json.loads(ready_file.read_text("utf-8"))
        assert (ready["kafka"], ready["http"], ready["grpc"]) == (self._address, self._http_address, self._grpc_address)
        return self

    def kill(self) -> None:
        """kill -9: no handler runs, nothing is synced or closed."""
        assert self._process is not None
        self._process.kill()
        assert self._process.wait(DEADLINE_S) == -signal.SIGKILL

    def stop(self) -> None:
        """Ask to stop, and wait until everything is closed."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(DEADLINE_S) == 0

    def clean_up(self) -> None:
        if self._process is not None and self.is_running:
            self._process.kill()
            self._process.wait(DEADLINE_S)

"""A pseudo-terminal with the `goqueue` command in it: what a person would see, and keys that a person would press."""

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, GOQUEUE, Late

CTRL_C = b"\x03"


class Terminal:
    def __init__(self, process: "subprocess.Popen[bytes]", file: int) -> None:
        self.process = process
        self._file = file
        self.seen = ""

    def wait_for(self, text: str) -> None:
        """Until this was shown, after what was waited for before."""
        begin = len(self.seen)
        give_up = time.monotonic() + DEADLINE_S
        while text not in self.seen[begin:]:
            if not select.select([self._file], [], [], max(0.0, give_up - time.monotonic()))[0]:
                raise Late(f"{text!r} was not shown; this was: {self.seen!r}")
            if not self._read():
                raise AssertionError(f"it ended without showing {text!r}; this was: {self.seen!r}")

    def _read(self) -> bool:
        try:
            piece = os.read(self._file, 65536)
        except OSError:  # so a terminal tells that the other end is closed
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)

    def press(self, keys: bytes) -> None:
        os.write(self._file, keys)

    def end(self) -> int:
        """All that is left to see, and the exit code."""
        give_up = time.monotonic() + DEADLINE_S
        while select.select([self._file], [], [], max(0.0, give_up - time.monotonic()))[0]:
            if not self._read():
                break
        return self.process.wait(DEADLINE_S)


@contextmanager
def terminal(goqueue: Command, *words: str, program: str = str(GOQUEUE)) -> Iterator[Terminal]:
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [program, *words],
        env=goqueue.environment | {"TERM": "xterm"},
        cwd=goqueue.home,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509  no threads here, and Ctrl-C needs a terminal of its own
    )
    os.close(inner)
    try:
        yield Terminal(process, outer)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait(DEADLINE_S)
        os.close(outer)


def _take_terminal() -> None:
    """stdin becomes the terminal that controls the new session: keys such as Ctrl-C turn into signals there."""
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in what a shell starts in the background
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

"""Chromium with several pages, each asked what it sees: by the protocol of its own developer tools, through a pipe."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.browser import command
from tests.integration.process import DEADLINE_S


class Chromium:
    def __init__(self, profile: Path, *arguments: str) -> None:
        theirs_in, self._out = os.pipe()
        ours_in, theirs_out = os.pipe()
        line = command(profile, "--remote-debugging-pipe", *arguments, "about:blank")
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *line],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in = os.fdopen(ours_in, "rb")
        self._buffer = b""
        self._count = 0

    def ask(self, method: str, session: str = "", **params: Any) -> Any:
        self._count += 1
        said = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(said).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._count:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            piece = os.read(self._in.fileno(), 1 << 16)
            assert piece, "the browser has gone"
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(self, url: str) -> "Page":
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self.ask("Page.navigate", session, url=url)
        page.run("await new Promise((done) => document.readyState === 'complete' ? done() : onload = done)")
        return page

    def close(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)
        os.close(self._out)
        self._in.close()


class Page:
    def __init__(self, chromium: Chromium, session: str) -> None:
        self._chromium = chromium
        self._session = session

    def run(self, script: str) -> Any:
        """What a script returns that runs in the page, as one of its own would."""
        told = self._chromium.ask(
            "Runtime.evaluate",
            self._session,
            expression=f"(async () => {{ {script} }})()",
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")


@contextmanager
def chromium(profile: Path, *arguments: str) -> Iterator[Chromium]:
    running = Chromium(profile, *arguments)
    try:
        yield running
    finally:
        running.close()

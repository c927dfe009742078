"""Chromium with several pages, each asked what it sees: by the protocol of its own developer tools, through a pipe."""

import json
import os
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.browser import command
from tests.integration.process import DEADLINE_S

SLICE_MS = 1000
"""Of a wait, before somebody looks whether the page is well."""


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
        self._passed: set[str] = set()
        """Sessions whose virtual time has passed."""
        self._said: dict[str, list[str]] = {}
        """By session: what its page was told that it did wrong."""

    def ask(self, method: str, session: str = "", **params: Any) -> Any:
        self._count += 1
        said = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(said).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._count:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            self._note(told)

    def _note(self, told: Any) -> None:
        said = self._said.setdefault(told.get("sessionId", ""), [])
        if told.get("method") == "Emulation.virtualTimeBudgetExpired":
            self._passed.add(told["sessionId"])
        elif told.get("method") == "Runtime.exceptionThrown":
            details = told["params"]["exceptionDetails"]
            said.append(details.get("exception", {}).get("description") or details["text"])
        elif told.get("method") == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
            entry = told["params"]["entry"]
            if entry["source"] != "network":  # a request that was refused, or found nobody
                said.append(entry["text"])

    def said(self, session: str) -> list[str]:
        return self._said.get(session, [])

    def until_passed(self, session: str) -> None:
        while session not in self._passed:
            self._note(self._next())
        self._passed.discard(session)

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
        page = Page(self, session, target)
        for domain in ("Runtime", "Log"):
            self.ask(f"{domain}.enable", session)
        self.ask("Page.navigate", session, url=url)
        page.run("await new Promise((done) => document.readyState === 'complete' ? done() : onload = done)")
        return page

    def close(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)
        os.close(self._out)
        self._in.close()


class Page:
    def __init__(self, chromium: Chromium, session: str, target: str) -> None:
        self._chromium = chromium
        self._session = session
        self._target = target

    def close(self) -> None:
        self._chromium.ask("Target.closeTarget", targetId=self._target)

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

    def wait(self, condition: str, what: str) -> Any:
        """Until an expression of the page is true; returns it. A page that fails is not waited for."""
        script = (
            f"const look = () => {condition}; const begun = performance.now(); let found;"
            f"while (!(found = look()) && performance.now() - begun < {SLICE_MS})"
            " await new Promise((done) => setTimeout(done, 20)); return found instanceof Object || found"
        )
        give_up = time.monotonic() + DEADLINE_S
        while not (found := self.run(script)):
            assert not self.errors, self.errors
            assert time.monotonic() < give_up, f"not within {DEADLINE_S} s: {what}"
        return found

    @property
    def errors(self) -> list[str]:
        """What went wrong in it so far, by its own scripts or against its policy."""
        self.run("return 0")
        return self._chromium.said(self._session)

    def show(self, width: int, height: int, theme: str = "light") -> None:
        """As on a screen of this size, of somebody who likes this theme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._chromium.ask("Emulation.setDeviceMetricsOverride", self._session, **metrics)
        feature = {"name": "prefers-color-scheme", "value": theme}
        self._chromium.ask("Emulation.setEmulatedMedia", self._session, features=[feature])

    def picture(self, file: Path) -> None:
        told = self._chromium.ask("Page.captureScreenshot", self._session, format="png", optimizeForSpeed=False)
        file.write_bytes(b64decode(told["data"]))

    def press(self, key: str, *, control: bool = False) -> None:
        """A key of the keyboard, by its name: `Tab`, `Enter`, `k`."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}
        said = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())), "modifiers": 2 * control}
        if key == "Enter":
            said["text"] = "\r"
        self._chromium.ask("Input.dispatchKeyEvent", self._session, type="keyDown", **said)
        self._chromium.ask("Input.dispatchKeyEvent", self._session, type="keyUp", **said)

    def pass_ms(self, ms: int) -> None:
        """Of its own time, as fast as it can be. From then on its time stands still in between."""
        policy = {"policy": "pauseIfNetworkFetchesPending", "budget": ms, "maxVirtualTimeTaskStarvationCount": 100}
        self._chromium.ask("Emulation.setVirtualTimePolicy", self._session, **policy)
        self._chromium.until_passed(self._session)

    def write(self, text: str) -> None:
        """Into whatever has the focus."""
        self._chromium.ask("Input.insertText", self._session, text=text)

    def hide(self, *, is_hidden: bool) -> None:
        """As if another tab were in front of it."""
        state = "hidden" if is_hidden else "visible"
        self.run(
            f"Object.defineProperty(document, 'hidden', {{ configurable: true, get: () => {str(is_hidden).lower()} }});"
            f"Object.defineProperty(document, 'visibilityState', {{ configurable: true, get: () => '{state}' }});"
            "document.dispatchEvent(new Event('visibilitychange'));"
        )


@contextmanager
def chromium(profile: Path, *arguments: str) -> Iterator[Chromium]:
    running = Chromium(profile, *arguments)
    try:
        yield running
    finally:
        running.close()

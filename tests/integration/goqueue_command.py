"""The real `goqueue` command, asked as a script would: its exit code, what it says and where."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.integration.process import DEADLINE_S, GOQUEUE


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[list[str]]:
        """Of a table: the words of each row, without the titles."""
        return [line.split() for line in self.out.splitlines()[1:]]


class Command:
    """`goqueue` in a home of its own, and with one server to ask."""

    def __init__(self, home: Path, server: str | None = None) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GOQUEUE_")}
        self.environment = clean | {"HOME": str(home)} | ({} if server is None else {"GOQUEUE_SERVER": server})
        self.home = home

    def run(self, *words: str, stdin: str = "", code: int = 0) -> Said:
        done = subprocess.run(
            [str(GOQUEUE), *words],
            env=self.environment,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        said = Said(done.returncode, done.stdout, done.stderr)
        assert said.code == code, f"goqueue {' '.join(words)}: {said}"
        assert "Traceback" not in said.err
        assert "\x1b" not in said.out + said.err
        return said

    def table(self, *words: str, stdin: str = "") -> list[list[str]]:
        return self.run(*words, stdin=stdin).lines

    def json(self, *words: str, stdin: str = "", code: int = 0) -> Any:
        return json.loads(self.run(*words, "-o", "json", stdin=stdin, code=code).out)

    def json_lines(self, *words: str, stdin: str = "") -> list[Any]:
        return [json.loads(line) for line in self.run(*words, "-o", "json", stdin=stdin).out.splitlines()]

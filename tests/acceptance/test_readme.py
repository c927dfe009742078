"""The commands that the README shows are the commands that work."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.conftest import GOQUEUE, Serve

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS: list[list[str]] = [
    shlex.split(line, comments=True) for line in README.splitlines() if line.startswith("    .venv/bin/goqueue ")
]


def test_the_readme_shows_how_to_start_a_node() -> None:
    assert [".venv/bin/goqueue", "serve", "--dev", "--data-dir", "data"] in COMMANDS


@pytest.mark.parametrize("command", COMMANDS, ids=shlex.join)
def test_each_command_does_what_it_says(command: list[str], serve: Serve, tmp_path: Path) -> None:
    if command[1] == "serve" and "--help" not in command:
        # On a free port, because other nodes run at the same time.
        assert (
            serve(*command[2:], "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0").wait_ready().send(signal.SIGTERM)
            == 0
        )
        assert (tmp_path / command[command.index("--data-dir") + 1]).is_dir()
    else:
        result = subprocess.run([GOQUEUE, *command[1:]], capture_output=True, text=True, check=True)
        assert "goqueue" in result.stdout


@pytest.mark.parametrize(
    ("target", "command"),
    [("run", ".venv/bin/goqueue serve --dev --data-dir data"), ("test", ".venv/bin/python -m pytest")],
)
def test_each_make_target_runs_that(target: str, command: str) -> None:
    assert f"    make {target} " in README
    outside_make = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    planned = subprocess.run(
        ["make", "-n", target], cwd=ROOT, env=outside_make, capture_output=True, text=True, check=True
    )
    assert command in planned.stdout.splitlines()[-1]


def test_the_room_map_shows_which_rooms_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    here = {cells[1].strip(" `") for cells in rows if cells[3].strip() == "here"}
    assert here == {path.parent.name for path in (ROOT / "src" / "goqueue").glob("*/__init__.py")}

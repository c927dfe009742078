"""`tools/setup` on machines that lack something: it helps itself, or says in one sentence what to install."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED_TOOLS = ("cat", "dirname", "env", "mkdir", "touch")
TOOLS = ("kcat", "strace", "chromium")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class Machine:
    """A directory with a copy of the script, and a PATH on which only some commands exist."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        for directory in (self.bin, root / "tools"):
            directory.mkdir()
        shutil.copy(ROOT / "tools" / "setup", root / "tools" / "setup")
        for tool in NEEDED_TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or "")

    def add_command(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def add_python(self, *, ensurepip_needs: str = "/") -> None:
        """A Python without ensurepip until a file exists; the .venv it makes says yes to everything."""
        hide = f"import os,sys; os.path.exists('{ensurepip_needs}') or sys.modules.update(ensurepip=None)"
        self.add_command(
            "python3",
            f"""
            if [ "$1" = -c ]; then exec {sys.executable} -c "{hide}; exec(sys.argv[1])" "$2"; fi
            mkdir -p .venv/bin; printf '#!/bin/sh\\n' > .venv/bin/python; {shutil.which("chmod")} +x .venv/bin/python
            """,
        )

    def setup(self, kind: str = "run") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin)}
        command = ["/bin/sh", str(self.root / "tools" / "setup"), kind]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_python_the_message_says_what_to_install(machine: Machine) -> None:
    result = machine.setup()
    assert result.returncode == 1
    assert result.stderr == (
        "setup: no python3 here; install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3\n"
    )


def test_an_old_python_is_refused(machine: Machine) -> None:
    machine.add_command("python3", 'case "$2" in *print*) echo 3.10;; *) exit 1;; esac')
    result = machine.setup()
    assert result.returncode == 1
    assert result.stderr == (
        "setup: Python 3.11 or newer is needed, python3 is 3.10; name a newer one: make PYTHON=/path/to/python3\n"
    )


def test_a_missing_venv_is_installed_with_apt(machine: Machine) -> None:
    marker = machine.root / "installed"
    machine.add_python(ensurepip_needs=str(marker))
    machine.add_command("id", "echo 0")
    machine.add_command("apt-get", f'echo "$@" >> {machine.root}/apt; case "$*" in *install*) touch {marker};; esac')
    result = machine.setup()
    assert result.returncode == 0, result.stderr
    assert (
        machine.root / "apt"
    ).read_text() == f"-qq update\n-qq -y --no-install-recommends install python{VERSION}-venv\n"
    assert (machine.root / ".venv" / ".ready-run").exists()


def test_sudo_is_used_by_those_who_need_it(machine: Machine) -> None:
    machine.add_python(ensurepip_needs=str(machine.root / "never"))
    machine.add_command("id", "echo 1000")
    machine.add_command("apt-get", "exit 1")
    machine.add_command("sudo", f'echo "$@" >> {machine.root}/sudo; exit 1')
    assert machine.setup().returncode == 1
    assert (machine.root / "sudo").read_text() == "apt-get -qq update\n"


@pytest.mark.parametrize("has_apt", [False, True])
def test_what_cannot_be_installed_is_named(machine: Machine, has_apt: bool) -> None:
    machine.add_python(ensurepip_needs=str(machine.root / "never"))
    machine.add_command("id", "echo 1000")
    if has_apt:
        machine.add_command("apt-get", "exit 1")
    result = machine.setup()
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith(
        f"python3 has no venv; install the package python{VERSION}-venv and call make again"
    )


def test_the_tools_include_what_a_node_needs(machine: Machine) -> None:
    machine.add_python()
    for tool in TOOLS:
        machine.add_command(tool, "")
    result = machine.setup("dev")
    assert result.returncode == 0, result.stderr
    assert {path.name for path in (machine.root / ".venv").glob(".ready-*")} == {".ready-run", ".ready-dev"}


@pytest.mark.parametrize(("user", "installed"), [(0, TOOLS), (1, ())])
def test_tools_are_installed_for_the_tests_if_nobody_need_be_asked(
    machine: Machine, user: int, installed: tuple[str, ...]
) -> None:
    machine.add_python()
    machine.add_command("id", f"echo {user}")
    machine.add_command("apt-get", f'echo "$@" >> {machine.root}/apt')
    result = machine.setup("dev")
    assert result.returncode == 0, result.stderr
    log = machine.root / "apt"
    asked = [("-qq update", f"-qq -y --no-install-recommends install {tool}") for tool in installed]
    assert (log.read_text().splitlines() if log.exists() else []) == [line for pair in asked for line in pair]
    for tool in TOOLS:
        assert (f"install the package {tool}" in result.stderr) is (tool not in installed)

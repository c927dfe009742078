"""`pip install goqueue` in an empty environment: the client and the command line, and no package that nobody listed."""

import json
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.process import DEADLINE_S, Node
from tools.release import build_wheel, check_wheel

ROOT = Path(__file__).parents[2]
INSTALL_S_MAX = 300
LISTED = re.compile(r"^\| `([a-z0-9-]+)` \|", re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment into which nothing but the wheel was asked for, in the versions that we test with."""
    home = tmp_path_factory.mktemp("empty")
    venv.create(home, with_pip=False)
    found = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", f"--python={found}"]
    constraints = ["--constraint", str(ROOT / "requirements" / "run.txt")]
    subprocess.run([*pip, "install", "--no-compile", *constraints, str(wheel)], check=True, timeout=INSTALL_S_MAX)
    return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    running = Node(tmp_path).start()
    yield running
    running.clean_up()


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    check_wheel(wheel)
    assert wheel.name.startswith("goqueue-")


def test_no_package_comes_in_that_is_not_on_the_list(python: Path) -> None:
    ask = "import importlib.metadata as m, json; print(json.dumps([d.name for d in m.distributions()]))"
    came = {re.sub("[-_.]+", "-", name).lower() for name in json.loads(run([python, "-c", ask]).stdout)}
    page = (ROOT / "docs" / "packages.md").read_text("utf-8")
    assert came == {*LISTED.findall(page.partition("## What comes in")[2].partition("\n## ")[0]), "goqueue"}


def test_clients_work_without_the_server(python: Path, node: Node) -> None:
    done = run([python, "-I", ROOT / "tests" / "acceptance" / "bare_client.py", node.address, node.url])
    assert done.returncode == 0, done.stderr
    codecs = ["none", "gzip", "snap", "lz4l", "zstd"]
    assert json.loads(done.stdout) == {"read": codecs, "worked": sorted(codecs), "topics": ["bare"]}
    listed = run([python.with_name("goqueue"), "topic", "list", "--server", node.url, "-o", "json"])
    assert '"bare"' in listed.stdout, listed.stderr


@pytest.mark.parametrize(
    ("command", "extra"),
    [(["serve", "--dev"], "server"), (["bench", "produce"], "bench"), (["pipeline", "report"], "spark")],
)
def test_what_needs_more_says_what_to_install(python: Path, command: list[str], extra: str) -> None:
    done = run([python.with_name("goqueue"), *command])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(
        f"needs the extra {extra}; install it with: {python} -m pip install 'goqueue[{extra}]'\n"
    )

"""The Go SDK, built and run by the real Go."""

import subprocess
from pathlib import Path

import pytest

from tests.integration.process import Node
from tests.ops.behaviours import LIST, ROOT, expected, run
from tools.go_protos import TARGET, generate

MODULE = ROOT / "sdk" / "go"
BUILD_S_MAX = 240


def go(*arguments: str) -> str:
    command = ["go", *arguments]
    done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def behaviours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("go") / "behaviours"
    go("build", "-o", str(made), "./internal/behaviours")
    return made


def test_it_behaves_as_the_list_says(own_node: Node, behaviours: Path) -> None:
    command = [str(behaviours), "-list", str(LIST), "-grpc", own_node.grpc, "-http", own_node.url]
    assert run(command, own_node) == expected()


def test_the_code_is_formatted_and_vetted() -> None:
    files = [str(path) for path in MODULE.rglob("*.go")]
    done = subprocess.run(["gofmt", "-l", *files], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    go("vet", "./...")


def test_the_stubs_are_those_of_the_protos() -> None:
    assert {path.name: path.read_text("utf-8") for path in TARGET.glob("*.pb.go")} == generate()

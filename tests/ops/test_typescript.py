"""The TypeScript SDK, compiled by the real compiler and run by the real Node."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.integration.process import Node
from tests.ops.behaviours import LIST, ROOT, expected, run

PACKAGE = ROOT / "sdk" / "typescript"
PAGE = ROOT / "docs" / "typescript.md"
DOCS = PACKAGE / "docs"
BUILD_S_MAX = 240


def npm(*arguments: str) -> None:
    command = ["npm", *arguments]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def behaviours() -> Path:
    npm("install", "--no-audit", "--no-fund")
    (example,) = re.findall(r"```ts\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    DOCS.mkdir(exist_ok=True)
    # The address is read when it runs, so that it is compiled once.
    placed = example.replace("@goqueue/client", "../src/index.js").replace(
        '"http://127.0.0.1:8080"', "process.argv[2]!"
    )
    assert placed.count("process.argv") == 1
    (DOCS / "example.ts").write_text(placed, "utf-8")
    npm("run", "build")
    return PACKAGE / "dist" / "behaviours" / "main.js"


def test_it_behaves_as_the_list_says(own_node: Node, behaviours: Path) -> None:
    assert run(["node", str(behaviours), str(LIST), own_node.url], own_node) == expected()


def test_it_stands_servers_in_trouble(behaviours: Path) -> None:
    command = ["node", str(behaviours.with_name("trouble.js"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_the_example_of_the_page_runs(own_node: Node, behaviours: Path) -> None:
    example = behaviours.parents[1] / "docs" / "example.js"
    command = ["node", str(example), own_node.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert (done.stderr, done.stdout.splitlines()[0]) == ("", "101 letters sent")

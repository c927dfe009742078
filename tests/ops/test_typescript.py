"""The TypeScript SDK, compiled by the real compiler and run by the real Node."""

import subprocess
from pathlib import Path

import pytest

from tests.integration.process import Node
from tests.ops.behaviours import LIST, ROOT, expected, run

PACKAGE = ROOT / "sdk" / "typescript"
BUILD_S_MAX = 240


def npm(*arguments: str) -> None:
    command = ["npm", *arguments]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def behaviours() -> Path:
    npm("install", "--no-audit", "--no-fund")
    npm("run", "build")
    return PACKAGE / "dist" / "behaviours" / "main.js"


def test_it_behaves_as_the_list_says(own_node: Node, behaviours: Path) -> None:
    assert run(["node", str(behaviours), str(LIST), own_node.url], own_node) == expected()

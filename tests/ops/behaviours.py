"""One list of behaviours for all clients: a program of each does the steps, prints what came of them, and has the node
killed and started when a step says so.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.integration.process import Node

ROOT = Path(__file__).parents[2]
LIST = ROOT / "sdk" / "behaviours.json"


def expected() -> dict[str, Any]:
    return {each["name"]: each["expect"] for each in json.loads(LIST.read_text("utf-8"))}


def run(command: Sequence[str], node: Node, cwd: Path = ROOT) -> dict[str, Any]:
    """What came of each behaviour, by its name."""
    got: dict[str, Any] = {}
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            said = json.loads(line)
            if "node" in said:
                node.kill() if said["node"] == "kill" else node.start()
                print("done", file=process.stdin, flush=True)
            else:
                got[said["name"]] = said.get("failed", said["got"])
        assert process.wait() == 0, process.stderr.read()
    return got

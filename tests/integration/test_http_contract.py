"""The OpenAPI document is a contract: schemathesis reads it and tries to catch the node breaking it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.integration.process import DEADLINE_S, Node

HOOKS = Path(__file__).with_name("contract_hooks.py")
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
SEED = 20261116
EXAMPLES_MAX = 3
"""Of each operation, beside those that cover its schema: some fifty."""
NEVER_ENDS = "follow"
"""Its events go on until the client leaves: it has tests of its own."""
NOT_PROMISED = "positive_data_acceptance"
"""A schema cannot say that a receipt was never given, or that a group cannot take over from itself."""


def fill(client: httpx.Client) -> None:
    """So that not every answer is a 404."""

    def ask(method: str, path: str, **body: Any) -> Any:
        reply = client.request(method, path, json=body)
        assert reply.is_success, reply.text
        return reply.json()

    ask("POST", "/topics", name="orders", num_partitions=2)
    messages = [{"value": str(number), "key": "k", "partition": 0} for number in range(20)]
    ask("POST", "/topics/orders/messages", messages=[*messages, {"value": "later", "delay": "1h"}])
    ask("POST", "/groups/billing/join", topics=["orders"], client_id="contract")


def test_the_node_keeps_to_its_document(own_node: Node, tmp_path: Path) -> None:
    with httpx.Client(base_url=own_node.url, timeout=DEADLINE_S) as client:
        fill(client)
        operations = sum(map(len, client.get("/openapi.json").json()["paths"].values()))
    command = [str(SCHEMATHESIS), "run", f"{own_node.url}/openapi.json", "--url", own_node.url, "--no-color"]
    command += ["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", str(EXAMPLES_MAX)]
    command += ["--seed", str(SEED), "--generation-database", "none"]
    command += ["--exclude-path-regex", NEVER_ENDS, "--exclude-checks", NOT_PROMISED]
    command += ["--request-timeout", str(DEADLINE_S), "--warnings", "off", "--continue-on-failure"]
    command += ["--report", "json", "--report-json-path", str(tmp_path / "report.json")]
    print(f"seed {SEED}")
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS)},
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-20_000:] + result.stderr[-5000:]
    (tested,) = re.findall(r"^ +Tested: (\d+)$", result.stdout, re.MULTILINE)
    assert int(tested) == operations - len((NEVER_ENDS, "the document itself"))
    (generated,) = re.findall(r"(\d+) generated", result.stdout)
    assert int(generated) > 40 * operations
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert '"stack"' not in own_node.log_file.read_text("utf-8")

"""docs/http.md: its examples run as they stand there, and its tables say what the code says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from goqueue.doors.http.endpoint import QUERY_FIELDS_MAX, REQUEST_S_MAX
from goqueue.doors.http.errors import OWN_CODES, STATUS
from goqueue.doors.http.listener import HttpLimits
from goqueue.wire.rest.operation import BODY_BYTES_MAX, LARGE_BODY_BYTES_MAX
from tests.integration.process import DEADLINE_S, Node

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")
ADDRESS = "localhost:8080"


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_work(own_node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    (shell,), (python,) = examples("bash"), examples("python")
    assert ADDRESS in shell
    assert ADDRESS in python
    address = own_node.url.removeprefix("http://")
    command = ["bash", "-ec", shell.replace(ADDRESS, address).replace("curl -s", "echo; curl -sS --fail-with-body")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    created, published, read, received = map(json.loads, result.stdout.split("\n")[1:])
    assert created == {"name": "baskets", "partitions": 1, "created": True}
    assert [(each["delayed"], each["priority"]) for each in published["results"]] == [(False, "normal"), (True, "high")]
    assert [message["value"] for message in read["messages"]] == ["three apples"]
    assert [message["value"] for message in received["messages"]] == ["three apples"]
    exec(compile(python.replace(ADDRESS, address), "docs/http.md", "exec"), {})
    assert capsys.readouterr().out == "customer-7 three apples 1\n"


def test_the_codes_and_statuses_are_real() -> None:
    ours = {name: status for _, name, status in OWN_CODES} | {code.name: status for code, status in STATUS.items()}
    rows = re.findall(r"^\| ([\d, ]+) \| [^|]* \|([^|]*)\|$", PAGE, re.MULTILINE)
    told = {status.strip() for cell, _ in rows for status in cell.split(",")}
    assert {str(status) for status in ours.values()} <= told
    for cell, names in rows:
        for name in re.findall(r"`([A-Z_]+)`", names):
            if name in ours:
                assert str(ours[name]) in cell, name
            else:
                assert name in CODES


CODES = {
    code
    for path in (Path(__file__).parents[2] / "src" / "goqueue" / "doors" / "http").rglob("*.py")
    for code in re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', path.read_text("utf-8"))
}
"""That the door itself gives."""


def test_the_limits_are_those_of_the_code() -> None:
    limits, mib, kib = HttpLimits(), 1 << 20, 1 << 10
    said = dict(re.findall(r"^\| ([a-z][^|]*) \| ([^|]*) \|$", PAGE.partition("## Limits")[2], re.MULTILINE))
    assert said["body of a request"].startswith(f"{BODY_BYTES_MAX // mib} MiB; {LARGE_BODY_BYTES_MAX // mib} MiB")
    assert said["path and headers"].startswith(f"{limits.head_bytes_max // kib} KiB, within {limits.head_s_max} s")
    assert said["arrival of a body"] == f"{limits.body_s_max} s"
    assert said["an answer that its client does not read"].startswith(f"{limits.write_s_max} s")
    assert said["a connection without a request"] == f"{limits.idle_s_max} s"
    assert said["connections"] == f"{limits.connections_max:,}"
    assert said["fields of a query"] == str(QUERY_FIELDS_MAX)
    assert said["a request that does not wait"] == f"{REQUEST_S_MAX} s"

"""The examples of docs/grpc.md, run as they stand there, in order, on one node."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from goqueue.client.grpc.calls import METHODS
from tests.integration.process import DEADLINE_S, Node
from tests.integration.reflected import Reflected

PAGE = Path(__file__).parents[2] / "docs" / "grpc.md"
ADDRESS = "127.0.0.1:9000"
SERVICES = {method.containing_service.full_name for method in METHODS.values()}
GRPCURL = shutil.which("grpcurl")


class Line(NamedTuple):
    """One line with grpcurl, taken apart."""

    stdin: str
    data: str
    what: str


Answers = Callable[[Line], Iterator[Any]]
"""JSON of what the server answers, one after another; of `list`, the names of its services."""


def test_the_examples_of_the_grpc_page_run(own_node: Node) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        assert ADDRESS in example
        exec(compile(example.replace(ADDRESS, own_node.grpc), str(PAGE), "exec"), {})


def _lines() -> list[Line]:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    found = []
    for text in block.splitlines():
        before, _, command = text.rpartition(" | ")
        words = shlex.split(command)
        assert words[:2] == ["grpcurl", "-plaintext"]
        data = words[3] if words[2] == "-d" else ""
        stdin = ""
        if data == "@":
            echo, stdin = shlex.split(before)
            assert echo == "echo"
        assert words[-2] == ADDRESS
        found.append(Line(stdin, data, words[-1]))
    return found


def _in_python(address: str) -> Iterator[Answers]:
    with Reflected(address) as server:
        yield (
            lambda line: (
                iter(server.services()) if line.what == "list" else server.call(line.what, line.stdin or line.data)
            )
        )


def _with_grpcurl(address: str) -> Iterator[Answers]:
    assert GRPCURL is not None

    def answers(line: Line) -> Iterator[Any]:
        data = ["-d", line.data] if line.data else []
        command = [GRPCURL, "-plaintext", *data, address, line.what]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(line.stdin)
                process.stdin.close()
                yield from map(str.strip, process.stdout) if line.what == "list" else _objects(process.stdout)
                assert process.wait(DEADLINE_S) == 0
            finally:
                process.kill()

    yield answers


def _objects(lines: Any) -> Iterator[Any]:
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            yield json.loads(text)
            text = ""


WAYS = [_in_python, *([_with_grpcurl] if GRPCURL else [])]
"""grpcurl itself where it is installed. What it does with reflection is done in any case."""


@pytest.mark.parametrize("way", WAYS)
def test_the_lines_of_grpcurl_run(own_reflecting_node: Node, way: Callable[[str], Iterator[Answers]]) -> None:
    with contextmanager(way)(own_reflecting_node.grpc) as ask:
        listing, health, create, publish, stream, consume, subscribe = _lines()
        assert set(ask(listing)) >= {*SERVICES, "grpc.health.v1.Health"}
        assert list(ask(health)) == [{"status": "SERVING"}]
        assert list(ask(create)) == [{"name": "tickets", "partitions": 3}]
        (published,) = ask(publish)
        assert published.keys() >= {"topic", "timestamp"}
        assert len(list(ask(stream))) == 2
        read = [each for answer in ask(consume) for each in answer["messages"]["messages"]]
        assert {each["value"]: each["priority"] for each in read} == {"YXBwbGVz": 0, "cGVhcnM=": 2, "cGx1bXM=": 2}
        events = ask(subscribe)
        assert len(next(events)["assignment"]["partitions"]) == 3
        leased: dict[str, str] = {}
        while len(leased) < 3:
            for each in next(events).get("messages", {}).get("messages", []):
                leased[each["value"]] = each["receipt_handle"]
        events.close()  # type: ignore[attr-defined]
        assert leased.keys() == {each["value"] for each in read}


def test_the_page_names_every_method() -> None:
    text = PAGE.read_text("utf-8")
    assert [name for name in METHODS if f"`{name}`" not in text] == []

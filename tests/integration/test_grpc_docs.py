"""The examples of docs/grpc.md, run as they stand there, in order, on one node."""

import re
from pathlib import Path

from google.protobuf.json_format import Parse
from google.protobuf.message_factory import GetMessageClass

from goqueue.client.grpc.calls import METHODS
from tests.integration.process import Node

PAGE = Path(__file__).parents[2] / "docs" / "grpc.md"
ADDRESS = "127.0.0.1:9000"
LINE = re.compile(r"grpcurl -plaintext (?:-d '(.*)' )?127\.0\.0\.1:9000 (?:list|([\w.]+)/(\w+))")


def test_the_examples_of_the_grpc_page_run(own_node: Node) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        assert ADDRESS in example
        exec(compile(example.replace(ADDRESS, own_node.grpc), str(PAGE), "exec"), {})


def test_the_lines_of_grpcurl_name_what_there_is() -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    lines = [LINE.fullmatch(line) for line in block.splitlines()]
    assert len(lines) == 6
    for line in lines:
        assert line is not None
        data, service, method = line.groups()
        if service is not None and service.startswith("goqueue."):
            assert METHODS[method].containing_service.full_name == service
            Parse(data or "{}", GetMessageClass(METHODS[method].input_type)())


def test_the_page_names_every_method() -> None:
    text = PAGE.read_text("utf-8")
    assert [name for name in METHODS if f"`{name}`" not in text] == []

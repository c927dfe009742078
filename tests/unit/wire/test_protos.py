"""The .proto files and what was made of them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from google.protobuf.descriptor import FileDescriptor

from goqueue.wire.grpc import (
    ack_pb2,
    common_pb2,
    consume_pb2,
    group_pb2,
    health_pb2,
    offset_pb2,
    publish_pb2,
    topic_pb2,
    transaction_pb2,
)
from tools.protos import PROTOS, TARGET, generate

FILES: tuple[FileDescriptor, ...] = tuple(
    each.DESCRIPTOR
    for each in (
        ack_pb2,
        common_pb2,
        consume_pb2,
        group_pb2,
        health_pb2,
        offset_pb2,
        publish_pb2,
        topic_pb2,
        transaction_pb2,
    )
)
GIVEN_ZEROS = {"AckMode", "ConsumeStartPosition", "ServingStatus"}
"""Named by those who came before us: their zero is a value."""
BUF = shutil.which("buf")
GIVEN_METHODS = {"Subscribe", "Check", "Watch"}
"""Likewise: their messages are named otherwise."""


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def test_what_is_committed_is_what_protoc_gives() -> None:
    committed = {path.name: path.read_text("utf-8") for path in TARGET.glob("*_pb2.py*")}
    assert committed == generate(), "call `make protos`"
    assert {each.name for each in FILES} == {path.relative_to(PROTOS).as_posix() for path in PROTOS.rglob("*.proto")}


@pytest.mark.parametrize("file", FILES, ids=lambda file: Path(file.name).stem)
def test_the_rules_of_buf_are_followed(file: FileDescriptor) -> None:
    """STANDARD, but for what is named above and marked in the files."""
    assert file.package == "goqueue.v1"
    assert file.name == f"goqueue/v1/{snake(Path(file.name).stem)}.proto"
    assert len(file.services_by_name) <= 1
    for enum in file.enum_types_by_name.values():
        prefix = snake(enum.name).upper() + "_"
        assert all(value.name.startswith(prefix) for value in enum.values), enum.name
        is_standard = enum.values_by_number[0].name == f"{prefix}UNSPECIFIED"
        assert is_standard == (enum.name not in GIVEN_ZEROS), enum.name
    for service in file.services_by_name.values():
        assert service.name.endswith("Service")
        for method in service.methods:
            names = (method.input_type.name, method.output_type.name)
            is_standard = names == (f"{method.name}Request", f"{method.name}Response")
            assert is_standard == (method.name not in GIVEN_METHODS), method.name
    for message in file.message_types_by_name.values():
        assert all(snake(field.name) == field.name for field in message.fields), message.name
    if BUF is not None:  # it knows more rules, where it is installed
        done = subprocess.run(
            [BUF, "lint", "--path", file.name], cwd=PROTOS, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")


def test_each_message_has_one_method_but_for_what_was_given() -> None:
    """As an answer or as a request: else one cannot change without the other."""
    users: dict[str, set[str]] = {}
    for file in FILES:
        for service in file.services_by_name.values():
            for method in service.methods:
                for kind in (method.input_type, method.output_type):
                    users.setdefault(kind.name, set()).add(method.name)
    shared = {name: methods for name, methods in users.items() if len(methods) > 1}
    assert shared == {
        "ConsumeResponse": {"Consume", "Subscribe"},
        "HealthCheckRequest": {"Check", "Watch"},
        "HealthCheckResponse": {"Check", "Watch"},
    }

"""What programs of others rely on, as files in api/: the OpenAPI document, and a list of all messages and methods of
gRPC. `make api` writes them from the code, `make api RELEASE=1` also makes them the ones that must not be broken.
The pages of docs/ that list all operations and all commands are written with them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor, FileDescriptor

from goqueue.cli.reference import reference_page
from goqueue.doors.http.openapi import document
from goqueue.doors.http.routes.table import ROUTES
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
from goqueue.wire.rest.operations.table import OPERATIONS
from tools.error_codes import listed_codes

API = Path(__file__).parents[1] / "api"
DOCS = API.parent / "docs"
LISTED = "## All operations\n"
CODES = "## Error codes\n"
RELEASED = API / "released"
NAMES = ("openapi.json", "grpc.json")
WORDS = ("description", "summary", "example", "examples", "tags")
FILES = (ack_pb2, common_pb2, consume_pb2, group_pb2, health_pb2, offset_pb2, publish_pb2, topic_pb2, transaction_pb2)


def openapi() -> dict[str, Any]:
    return document(ROUTES, "1")


def grpc() -> dict[str, Any]:
    """Messages by name with their fields by number, enums with their values, methods with what they take and give."""
    listed: dict[str, Any] = {}
    for module in FILES:
        listed |= _of_file(module.DESCRIPTOR)
    return listed


def _of_file(file: FileDescriptor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    messages = list(file.message_types_by_name.values())
    while messages:
        message = messages.pop()
        messages += message.nested_types
        found[message.full_name] = {str(field.number): _field(field) for field in message.fields}
        for enum in message.enum_types:
            found[enum.full_name] = {str(value.number): value.name for value in enum.values}
    for enum in file.enum_types_by_name.values():
        found[enum.full_name] = {str(value.number): value.name for value in enum.values}
    for service in file.services_by_name.values():
        found[service.full_name] = {
            method.name: f"{method.input_type.full_name} -> {method.output_type.full_name}"
            f" {method.client_streaming:d}{method.server_streaming:d}"
            for method in service.methods
        }
    return found


def _field(field: FieldDescriptor) -> str:
    kind = field.message_type or field.enum_type
    told = kind.full_name if kind else str(field.type)
    return f"{field.name}: {'repeated ' if field.is_repeated else ''}{told}"


def generate() -> dict[str, str]:
    """Name and text of each file."""
    return {
        name: json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        for name, made in zip(NAMES, (openapi(), grpc()))
    }


def pages() -> dict[str, str]:
    """Name and text of each page; of http.md and limits.md all that comes before the list stays as it was written."""
    listed = {"http.md": (LISTED, _listed), "limits.md": (CODES, listed_codes)}
    made = {"cli.md": reference_page()}
    for name, (heading, rest) in listed.items():
        written, found, _ = (DOCS / name).read_text("utf-8").partition(heading)
        assert found, f"docs/{name} has no {heading!r}"
        made[name] = f"{written}{heading}{rest()}"
    return made


def _listed() -> str:
    parts = ["\nMade by `make api` from `src/goqueue/wire/rest/operations/`; a test compares.\n"]
    for tag in dict.fromkeys(each.tag for each in OPERATIONS):
        rows = [f"| `{each.method} {each.path}` | {each.summary} |" for each in OPERATIONS if each.tag == tag]
        parts += [f"\n### {tag}\n\n| operation | what it does |\n|---|---|\n", "\n".join(rows), "\n"]
    return "".join(parts)


def _without_words(value: Any) -> Any:
    """They may change, and are most of the document."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name not in WORDS or not isinstance(each, str | list)}
        return {name: _without_words(each) for name, each in kept.items()}
    return [_without_words(each) for each in value] if isinstance(value, list) else value


def main(arguments: list[str]) -> int:
    for name, text in generate().items():
        (API / name).write_text(text, "utf-8")
        if "--release" in arguments:
            RELEASED.mkdir(exist_ok=True)
            (RELEASED / name).write_text(json.dumps(_without_words(json.loads(text)), sort_keys=True) + "\n", "utf-8")
    for name, text in pages().items():
        (DOCS / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

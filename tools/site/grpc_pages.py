"""The gRPC services, from the comments of api/proto: every service with its methods, every message with its fields."""

import re
from pathlib import Path

PROTOS = Path(__file__).parents[2] / "api" / "proto" / "goqueue" / "v1"
BLOCK = re.compile(r"^(service|message|enum) (\w+) \{")
METHOD = re.compile(r"^rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\)")
FIELD = re.compile(r"^(?:(repeated|optional) )?([\w.<>, ]+?) (\w+) = (\d+)")
VALUE = re.compile(r"^(\w+) = (\d+)")
HEADS = {"service": "method | takes | gives", "message": "field | type | number", "enum": "value | number |"}


def grpc_page() -> str:
    lines = [
        "# gRPC services",
        "",
        "Made from the protos in `api/proto`. [The gRPC API](../grpc.md) says how it is used, with examples.",
        "",
    ]
    for proto in sorted(PROTOS.glob("*.proto")):
        lines += [f"## {proto.name}", "", *_file(proto.read_text("utf-8"))]
    return "\n".join(lines)


def _file(text: str) -> list[str]:
    lines: list[str] = []
    comment: list[str] = []
    rows: list[str] = []
    kind = ""
    for raw in text.splitlines():
        line, _, beside = (part.strip() for part in raw.strip().partition("//"))
        if not line:
            comment = [*comment, beside] if beside else []
            continue
        words = " ".join([*comment, beside] if beside else comment).replace("|", "\\|")
        comment = []
        if begun := BLOCK.match(line):
            kind = begun[1]
            lines += [f"### {begun[2]}", "", *([words, ""] if words else [])]
            rows = [f"| {HEADS[kind]} | |", "|---|---|---|---|"]
            if line.endswith("}"):
                kind = ""
        elif line == "}" and kind:
            lines += [*(rows if len(rows) > 2 else []), ""]
            kind = ""
        elif row := _row(kind, line, words):
            rows.append(row)
    return lines


def _row(kind: str, line: str, words: str) -> str:
    if kind == "service" and (found := METHOD.match(line)):
        name, in_stream, takes, out_stream, gives = found.groups()
        told = [f"a stream of {of}" if is_stream else of for is_stream, of in ((in_stream, takes), (out_stream, gives))]
        return f"| `{name}` | {told[0]} | {told[1]} | {words} |"
    if kind == "message" and (found := FIELD.match(line)):
        label, of, name, number = found.groups()
        return f"| `{name}` | {f'{label} ' if label else ''}{of} | {number} | {words} |"
    if kind == "enum" and (found := VALUE.match(line)):
        return f"| `{found[1]}` | {found[2]} | | {words} |"
    return ""

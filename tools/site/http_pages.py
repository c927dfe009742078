"""The HTTP API, one page for each part of it, from api/openapi.json: what is sent, what comes back, and its errors."""

import json
import re
from pathlib import Path
from typing import Any

API = Path(__file__).parents[2] / "api" / "openapi.json"
METHODS = ("get", "put", "post", "patch", "delete", "head")
OF_ALL = {"400", "401", "403", "421", "429", "503", "504"}
"""Statuses that every operation may have; reference/http/index.md has them."""


def http_pages() -> dict[str, str]:
    document: dict[str, Any] = json.loads(API.read_text("utf-8"))
    by_tag: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                by_tag.setdefault(item[method]["tags"][0], []).append((method.upper(), path, item[method]))
    schemas = document["components"]["schemas"]
    pages = {f"reference/http/{slug(tag)}.md": _page(tag, found, schemas) for tag, found in by_tag.items()}
    names = [each["name"] for each in document["tags"] if each["name"] in by_tag]
    pages["reference/http/index.md"] = _index(names, by_tag)
    return pages


def slug(tag: str) -> str:
    return tag.lower().replace(" ", "-")


def _index(names: list[str], by_tag: dict[str, list[Any]]) -> str:
    statuses: dict[str, str] = {}
    for found in by_tag.values():
        for _, _, operation in found:
            statuses |= {code: each["description"] for code, each in operation["responses"].items() if code in OF_ALL}
    rows = [f"| [{name}]({slug(name)}.md) | {len(by_tag[name])} |" for name in names]
    codes = [f"| {code} | {statuses[code]} |" for code in sorted(statuses)]
    return "\n".join(
        [
            "# HTTP operations",
            "",
            "Made from the OpenAPI document, which every node serves at `/openapi.json`.",
            "[The HTTP API](../../http.md) says how it is used, with examples.",
            "",
            "| part | operations |",
            "|---|---|",
            *rows,
            "",
            "## Statuses that every operation may have",
            "",
            "| status | |",
            "|---|---|",
            *codes,
            "",
        ]
    )


def _page(tag: str, operations: list[tuple[str, str, dict[str, Any]]], schemas: dict[str, Any]) -> str:
    lines = [f"# HTTP: {tag}", ""]
    for method, path, operation in operations:
        lines += [f"## {method} {_path(path)}", "", operation["summary"] + ".", ""]
        if operation.get("description"):
            lines += [operation["description"], ""]
        lines += _fields(operation, schemas)
        lines += _replies(operation, schemas)
    return "\n".join(lines)


def _path(path: str) -> str:
    return path.replace("{", "\\{").replace("}", "\\}")


def _fields(operation: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    rows = []
    for each in operation.get("parameters", []):
        words = each.get("description") or each["schema"].get("description", "")
        rows.append(_row(each["name"], each["in"], each["schema"], words, is_required=each.get("required", False)))
    for name, schema, is_required in _properties(_content(operation.get("requestBody", {})), schemas):
        rows.append(_row(name, "body", schema, schema.get("description", ""), is_required=is_required))
    return ["| sent | in | type | |", "|---|---|---|---|", *rows, ""] if rows else []


def _row(name: str, where: str, schema: dict[str, Any], words: str, *, is_required: bool) -> str:
    told = " ".join(words.split()).replace("|", "\\|")
    needed = "" if is_required else "; may be left out"
    return f"| `{name}` | {where} | {_type(schema)}{needed} | {told} |"


def _replies(operation: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for code, reply in operation["responses"].items():
        if code in OF_ALL:
            continue
        fields = list(_properties(_content(reply), schemas)) if code.startswith("2") else []
        lines += [f"**{code}** {reply['description']}", ""]
        if fields:
            rows = [f"| `{name}` | {_type(each)} | {_words(each)} |" for name, each, _ in fields]
            lines += ["| told | type | |", "|---|---|---|", *rows, ""]
    return lines


def _words(schema: dict[str, Any]) -> str:
    return " ".join(str(schema.get("description", "")).split()).replace("|", "\\|")


def _content(part: dict[str, Any]) -> dict[str, Any]:
    for each in part.get("content", {}).values():
        found: dict[str, Any] = each.get("schema", {})
        return found
    return {}


def _properties(schema: dict[str, Any], schemas: dict[str, Any]) -> list[tuple[str, dict[str, Any], bool]]:
    schema = _resolved(schema, schemas)
    needed = set(schema.get("required", ()))
    return [(name, each, name in needed) for name, each in schema.get("properties", {}).items()]


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return re.sub(r"(?<!^)(?=[A-Z])", " ", schema["$ref"].rpartition("/")[2]).lower()
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_type(schema['additionalProperties'])}"
    return str(kind)

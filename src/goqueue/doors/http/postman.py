"""A Postman collection (format 2.1), made from the OpenAPI document: import it and send."""

from collections.abc import Mapping
from typing import Any

import msgspec

SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
DEPTH_MAX = 4


def collection(told: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    """A folder for each tag. `baseUrl` and the usual path parameters are variables of the collection."""
    schemas = told["components"]["schemas"]
    folders: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in told["tags"]}
    variables: dict[str, str] = {"baseUrl": base_url}
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    variables.setdefault(parameter["name"], _text(example(parameter["schema"], schemas)))
            folders[operation["tags"][0]].append(_item(method.upper(), path, operation, schemas))
    return {
        "info": {
            "name": f"{told['info']['title']} {told['info']['version']}",
            "description": told["info"]["summary"],
            "schema": SCHEMA,
        },
        "item": [{"name": name, "item": items} for name, items in folders.items() if items],
        "variable": [{"key": key, "value": value} for key, value in variables.items()],
    }


def _item(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    parameters = operation.get("parameters", ())
    slots = [each["name"] for each in parameters if each["in"] == "path"]
    query = [
        {
            "key": each["name"],
            "value": _text(example(each["schema"], schemas)),
            "description": each["schema"].get("description", ""),
            "disabled": not each["required"],
        }
        for each in parameters
        if each["in"] == "query"
    ]
    words = path[1:]
    for name in slots:
        words = words.replace("{" + name + "}", ":" + name)
    raw = "{{baseUrl}}/" + words
    needed = "&".join(f"{each['key']}={each['value']}" for each in query if not each["disabled"])
    url: dict[str, Any] = {
        "raw": f"{raw}?{needed}" if needed else raw,
        "host": ["{{baseUrl}}"],
        "path": words.split("/") if words else [],
    }
    if query:
        url["query"] = query
    if slots:
        url["variable"] = [{"key": name, "value": "{{" + name + "}}"} for name in slots]
    request: dict[str, Any] = {
        "method": method,
        "url": url,
        "header": [],
        "description": operation.get("description", operation["summary"]),
    }
    body = operation.get("requestBody")
    if body is not None:
        request["header"] = [{"key": "Content-Type", "value": "application/json"}]
        content = example(body["content"]["application/json"]["schema"], schemas)
        request["body"] = {"mode": "raw", "raw": _json(content), "options": {"raw": {"language": "json"}}}
    return {"name": operation["summary"], "request": request, "response": []}


def example(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that the schema allows: its own example, its default, or the least that will do."""
    found = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for given in (schema, found):
        if "examples" in given:
            return given["examples"][0]
    if found.get("default") is not None or "enum" in found:
        return found["enum"][0] if found.get("default") is None else found["default"]
    if "anyOf" in found:
        return example(next(each for each in found["anyOf"] if each.get("type") != "null"), schemas, depth)
    return _least(found, schemas, depth)


def _least(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    if kind == "array":
        return [] if depth > DEPTH_MAX else [example(schema.get("items", {}), schemas, depth + 1)]
    if kind == "object":
        return {} if depth > DEPTH_MAX else _example_object(schema, schemas, depth)
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 0), 1)
    return {"boolean": False, "string": "text"}.get(str(kind))


def _example_object(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int) -> dict[str, Any]:
    names = list(schema.get("properties", ()))
    wanted = schema.get("required", ()) or names[: 2 if depth else 3]
    return {name: example(schema["properties"][name], schemas, depth + 1) for name in names if name in wanted}


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()  # json leaves garbage when it indents


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)

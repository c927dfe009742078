"""The OpenAPI 3.1 document, made from the operations: what it says is what is checked."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from goqueue.doors.http.errors import UNSUPPORTED_MEDIA_TYPE
from goqueue.doors.http.field_words import describe_fields
from goqueue.doors.http.operation import Route
from goqueue.model.access import OPEN
from goqueue.wire.rest.common import ErrorReply
from goqueue.wire.rest.operation import JSON, Operation

REFERENCE = "#/components/schemas/{name}"
MEANINGS = {
    400: "What was sent cannot be understood or cannot be done",
    401: "Nobody has shown who asks, or what was shown is wrong or over",
    403: "Not yours, or not for web pages of other origins",
    404: "There is no such thing",
    405: "This path does not take this method",
    409: "It contradicts what there is",
    410: "It is gone",
    413: "Too large",
    415: "The body is not sent as application/json",
    421: "The node is not called what the header Host says",
    422: "Understood, and not acceptable",
    429: "Too many requests, or too many of something",
    503: "Not now; try again later",
    504: "Not done in time; it may be done later all the same",
}
SCHEMES: dict[str, dict[str, Any]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key (gqk_...), or a token of the issuer"},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "basic": {"type": "http", "scheme": "basic", "description": "A user, or the id and the secret of a key"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-gq",
        "description": "Of a browser: POST /session sets it. What is not GET needs X-GoQueue-CSRF too",
    },
}
"""One of them; or none, where a node is open to everybody."""
ALWAYS = (400, 403, 421, 429, 503, 504)
MODELS = "goqueue.wire.rest."
_SLOT = re.compile(r"\{(\w+)\}")


def document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    listed = list(routes)
    chosen = [each.operation for each in listed]
    types: list[Any] = [ErrorReply, *{operation.error_type for operation in chosen}]
    for operation in chosen:
        types += [kind for kind in (operation.body_type, operation.path_type, operation.query_type) if kind]
        types.append(operation.reply)
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    _end_patterns([schemas, components])
    by_type = dict(zip(map(id, types), schemas))
    for struct in _structs(Struct):
        if struct.__name__ in components:
            describe_fields(struct, components[struct.__name__]["properties"])
    paths: dict[str, dict[str, Any]] = {}
    parameters: set[str] = set()
    for route in listed:
        operation = route.operation
        for kind in (operation.path_type, operation.query_type):
            parameters |= {kind.__name__} if kind else set()
        said = _operation(operation, by_type, components) | _needs(route)
        paths.setdefault(operation.path, {})[operation.method.lower()] = said
    for name in parameters:  # they are told where they are used
        components.pop(name, None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "GoQueue",
            "version": version,
            "summary": "One durable, partitioned log, read as a stream and as a queue",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/v1"}, {"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in chosen)],
        "paths": paths,
        "security": [{name: []} for name in SCHEMES] + [{}],
        "components": {"schemas": components, "securitySchemes": SCHEMES},
    }


def _end_patterns(told: Any) -> None:
    """Python's `$` would let a newline behind it through; in JSON Schema `$` is the end, and `\\Z` is nothing."""
    for each in told.values() if isinstance(told, dict) else told:
        if isinstance(each, dict) and isinstance(each.get("pattern"), str):
            each["pattern"] = each["pattern"].replace(r"\Z", "$")
        if isinstance(each, dict | list):
            _end_patterns(each)


def _needs(route: Route) -> dict[str, Any]:
    """What its client must be allowed: of each kind of name, the operations of a rule."""
    if route.permission is OPEN:
        return {"security": []}
    said = {str(kind): [each.name.lower() for each in needed] for kind, needed in route.permission.needs.items()}
    return {"x-permission": said}


def _structs(base: type[Struct]) -> Iterator[type[Struct]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith(MODELS):
            yield kind
        yield from _structs(kind)


def _operation(operation: Operation[Any], by_type: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"operationId": operation.name, "tags": [operation.tag], "summary": operation.summary}
    if operation.description:
        said["description"] = operation.description
    slots = set(_SLOT.findall(operation.path))
    parameters = [
        *_parameters(operation.path_type, "path", components, slots),
        *_parameters(operation.query_type, "query", components, None),
    ]
    if parameters:
        said["parameters"] = parameters
    if operation.body_type is not None:
        schema = by_type[id(operation.body_type)]
        is_needed = bool(components[operation.body_type.__name__].get("required"))
        said["requestBody"] = {"required": is_needed, "content": {JSON: {"schema": schema}}}
    said["responses"] = _responses(operation, by_type)
    return said


def _parameters(
    kind: type[Struct] | None, where: str, components: dict[str, Any], wanted: set[str] | None
) -> list[dict[str, Any]]:
    if kind is None:
        return []
    schema = components[kind.__name__]
    names = schema["properties"]
    assert wanted is None or wanted == names.keys(), f"{kind.__name__} does not name the slots of its path"
    return [
        {
            "name": name,
            "in": where,
            "required": where == "path" or name in schema.get("required", ()),
            "schema": each,
        }
        for name, each in names.items()
    ]


def _responses(operation: Operation[Any], by_type: dict[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {str(operation.status): {"description": "Done", "content": _content(operation, by_type)}}
    for status, meaning in operation.other_replies:
        found[str(status)] = {"description": meaning, "content": _content(operation, by_type)}
    error = {JSON: {"schema": by_type[id(operation.error_type)]}}
    bodies = () if operation.body_type is None else (UNSUPPORTED_MEDIA_TYPE,)
    for status in sorted({*operation.errors, *ALWAYS, *bodies}):
        found.setdefault(str(status), {"description": MEANINGS[status], "content": error})
    return found


def _content(operation: Operation[Any], by_type: dict[int, Any]) -> dict[str, Any]:
    is_json = operation.media_type == JSON
    return {operation.media_type: {"schema": by_type[id(operation.reply)] if is_json else {"type": "string"}}}

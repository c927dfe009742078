"""Defaults of an Avro schema, made into values: `fastavro` gives them back as the JSON that they are in the schema,
where a timestamp is a number and bytes are text.
"""

from typing import Any

from fastavro.read import LOGICAL_READERS

RECORDS = ("record", "error")


def make_defaults(root: Any, named: dict[str, Any]) -> None:
    """In place, of all records in a parsed schema."""
    made = [
        (field, _value(field["type"], field["default"], named))
        for schema in _records(root, named)
        for field in schema["fields"]
        if "default" in field
    ]
    for field, value in made:
        field["default"] = value


def _records(root: Any, named: dict[str, Any]) -> list[Any]:
    found = {id(one): one for one in (root, *named.values()) if isinstance(one, dict) and one.get("type") in RECORDS}
    return list(found.values())


def _value(schema: Any, default: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    if isinstance(schema, list):  # the default is one of its first branch
        return None if default is None else _value(schema[0], default, named)
    kind = schema["type"]
    if isinstance(kind, list | dict):
        return _value(kind, default, named)
    if kind in RECORDS:
        return {
            field["name"]: _value(field["type"], default.get(field["name"], field.get("default")), named)
            for field in schema["fields"]
        }
    if kind == "array":
        return [_value(schema["items"], each, named) for each in default]
    if kind == "map":
        return {name: _value(schema["values"], each, named) for name, each in default.items()}
    return _plain(named.get(kind, schema), kind, default)


def _plain(schema: Any, kind: str, default: Any) -> Any:
    if kind in ("bytes", "fixed"):
        default = default.encode("latin-1")
    read = LOGICAL_READERS.get(f"{kind}-{schema.get('logicalType')}")
    return default if read is None else read(default, schema, schema)

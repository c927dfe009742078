"""Avro schemas as `fastavro` gives them, looked at without caring whether a type stands there or only its name."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from goqueue.broker.schemas.formats.parsed import TooComplex
from goqueue.model.again import Again
from goqueue.model.schemas import InvalidSchema

NAMED = frozenset(("record", "error", "enum", "fixed"))
KINDS = NAMED | {"array", "map"}
PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
FIXED_BYTES_MAX = 1 << 30
FIELDS_MAX = 100_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Names:
    def __init__(self, root: Any, named: Mapping[str, Any]) -> None:
        self.root = root
        self._named = named

    def records(self) -> list[Any]:
        """Those that have a name, which all have."""
        return [each for each in self._named.values() if isinstance(each, dict) and each.get("type") == "record"]

    def look_up(self, schema: Any) -> tuple[str, Any]:
        """The kind of a schema, and all that it says: a list for a union, else a mapping."""
        for _ in range(2):  # a name stands for a type, {"type": {...}} for what is in it
            if isinstance(schema, str) and schema in self._named:
                schema = self._named[schema]
            elif isinstance(schema, dict) and isinstance(schema["type"], dict | list):
                schema = schema["type"]
        if isinstance(schema, list):
            return "union", schema
        if isinstance(schema, str):
            return schema, {"type": schema}
        kind = schema["type"]
        if kind in self._named and kind not in KINDS:  # a record may be called "record"
            return self.look_up(kind)
        return ("record" if kind == "error" else kind), schema


def short_name(schema: Mapping[str, Any]) -> str:
    name: str = schema["name"]
    return name.rpartition(".")[2]


def all_names(schema: Mapping[str, Any]) -> set[str]:
    """Short ones: its own and those of the past."""
    return {short_name(schema), *(str(each).rpartition(".")[2] for each in schema.get("aliases", ()))}


def check_types(names: Names) -> None:
    """What the specification asks for and `fastavro` lets pass. InvalidSchema says what is wrong."""
    seen: set[int] = set()
    left = [names.root]
    while left:
        kind, said = names.look_up(left.pop())
        if id(said) in seen:
            continue
        seen.add(id(said))
        if kind == "union":
            _check_union(names, said)
            left += said
            continue
        if kind in NAMED:
            _check_names(kind, str(said["name"]).split("."))
            if short_name(said) in PRIMITIVES:
                raise InvalidSchema(f"not an Avro schema: a {kind} cannot be called {short_name(said)!r}")
        if kind == "record":
            _check_names("field", [field["name"] for field in said["fields"]], unique=True)
            left += [field["type"] for field in said["fields"]]
        elif kind == "enum":
            symbols = said["symbols"]
            if not isinstance(symbols, list):
                raise InvalidSchema("not an Avro schema: the symbols of an enum are a list")
            _check_names("symbol", symbols, unique=True)
        elif kind == "fixed" and not (isinstance(said["size"], int) and 0 <= said["size"] <= FIXED_BYTES_MAX):
            raise InvalidSchema(f"not an Avro schema: a fixed of {said['size']!r} bytes")
        elif kind in ("array", "map"):
            left.append(said["items" if kind == "array" else "values"])


def check_fields(names: Names) -> None:
    """TooComplex: a value would have more fields than anybody can read, though it may take no bytes. Records that hold
    each other twice, level by level, double them.
    """
    counts: dict[int, int] = {}

    def count(again: Again, schema: Any) -> int:
        kind, said = names.look_up(schema)
        if kind != "record":  # a union, an array or a map takes a byte at least, and may hold nothing
            return 1
        if id(said) not in counts:
            counts[id(said)] = 1  # one that holds itself has no value at all
            counts[id(said)] = 1 + sum(again(field["type"]) for field in said["fields"])
            if counts[id(said)] > FIELDS_MAX:
                what = f"not an Avro schema that can be used: every {short_name(said)}"
                raise TooComplex(f"{what} has more than {FIELDS_MAX} fields, one inside the other")
        return counts[id(said)]

    for each in names.records():
        Again(count)(each)


def _check_names(what: str, names: Iterable[Any], *, unique: bool = False) -> None:
    found = list(names)
    for name in found:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidSchema(f"not an Avro schema: {name!r} is no name for a {what}")
    if unique and len(set(found)) < len(found):
        raise InvalidSchema(f"not an Avro schema: a {what} stands there twice")


def _check_union(names: Names, branches: list[Any]) -> None:
    kinds = []
    for branch in branches:
        kind, said = names.look_up(branch)
        if kind == "union":
            raise InvalidSchema("not an Avro schema: a union stands in a union")
        kinds.append(said["name"] if kind in NAMED else kind)
    if len(set(kinds)) < len(kinds):
        raise InvalidSchema(f"not an Avro schema: a union of {', '.join(kinds)} has one of them twice")

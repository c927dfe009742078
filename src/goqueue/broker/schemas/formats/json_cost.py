"""What it may cost to check a value against a JSON schema, seen from the schema alone.

A check meets a place of the value once for every way that leads to it. Where references fork, each level may double the
ways: forty levels fit into 4 KB. Most schemas do nothing of the kind and are checked as they are. Those that might
are rewritten so that every reference is counted, and a check that takes too many of them is given up.
"""

from collections.abc import Iterator
from typing import Any

from goqueue.broker.schemas.formats.json_evolution import Documents

WAYS_MAX = 64
"""To one place of a value: a choice of fifty messages is nothing unusual. More is counted."""
COUNT = "gq-count"

_EACH = ("allOf", "anyOf", "oneOf")
_ONE = ("not", "if", "then", "else")
_BY_NAME = ("dependentSchemas", "dependencies")
_ITEMS = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_REST = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LITERAL = frozenset(("const", "enum", "default", "examples"))
_BESIDE_REFERENCE = frozenset(("$schema", "$id", "id", "definitions", "$defs", "$comment", "title", "description"))
_BOTH_COUNT = ("2019-09", "2020-12")
"""Drafts in which what stands beside a reference counts too; before them it is ignored."""

_HERE, _ANY, _ITEM = 0, 1, 2
Label = int | str
"""Where an inner schema looks: at the same place, at any property, at an item, or at the property of that name. Other
properties than those that have a name are a place of their own.
"""


def is_costly(documents: Documents) -> bool:
    """Whether some value of moderate size may take very many steps."""
    try:
        return _Ways(documents).are_many()
    except (RecursionError, LookupError):  # nested beyond what can be followed, or a reference that only others resolve
        return True


class _Ways:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._ways: dict[int, int] = {}
        self._order: dict[int, int] = {}
        """By schema: when it was met first."""
        self._reach: dict[int, int] = {}
        """By schema: the earliest one on the way to it that it leads back to."""
        self._path: list[tuple[int, list[tuple[Label, int]]]] = []
        self._on_path: set[int] = set()
        self._loops = False

    def are_many(self) -> bool:
        root = self._documents.root
        return self._visit(root, root) > WAYS_MAX or self._loops

    def _visit(self, schema: Any, root: Any) -> int:
        """Tarjan's algorithm for loops, and the ways as it comes back."""
        key = id(schema)
        if not isinstance(schema, dict):
            return 0
        if key in self._order:
            return self._ways.get(key, 1)
        self._order[key] = self._reach[key] = len(self._order)
        edges: list[tuple[Label, int]] = []
        self._path.append((key, edges))
        self._on_path.add(key)
        here, places = 0, dict[Label, int]()
        for label, inner, inner_root in self._inner(schema, root):
            ways = self._visit(inner, inner_root)
            if id(inner) in self._on_path:
                edges.append((label, id(inner)))
                self._reach[key] = min(self._reach[key], self._reach[id(inner)])
            if label == _HERE:
                here += ways
            else:
                places[label] = places.get(label, 0) + ways
        own = 0 if "$ref" in schema else 1
        found = here + max(own, places.pop(_ANY, 0) + max(places.values(), default=0))
        self._ways[key] = min(found, WAYS_MAX + 1)
        if self._reach[key] == self._order[key]:
            self._close_loop(key)
        return self._ways[key]

    def _close_loop(self, first: int) -> None:
        members = []
        while True:
            key, edges = self._path.pop()
            self._on_path.discard(key)
            members.append((key, edges))
            if key == first:
                break
        inside = {key for key, _ in members}
        self._loops |= any(_forks([label for label, target in edges if target in inside]) for _, edges in members)

    def _inner(self, schema: dict[str, Any], root: Any) -> Iterator[tuple[Label, Any, Any]]:
        for keyword in _EACH:
            yield from ((_HERE, each, root) for each in _list(schema.get(keyword)))
        yield from ((_HERE, schema[keyword], root) for keyword in _ONE if keyword in schema)
        for keyword in _BY_NAME:
            yield from ((_HERE, each, root) for each in _map(schema.get(keyword)).values())
        yield from ((name, each, root) for name, each in _map(schema.get("properties")).items())
        yield from ((_ANY, each, root) for each in _map(schema.get("patternProperties")).values())
        yield from ((f"{keyword}/", schema[keyword], root) for keyword in _REST if keyword in schema)
        for keyword in _ITEMS:
            inner = schema.get(keyword)
            yield from ((_ITEM, each, root) for each in (inner if isinstance(inner, list) else [inner]) if each)
        if any(keyword in schema for keyword in _REFERENCES[1:]):
            raise LookupError("it depends on who refers to it")
        if isinstance(schema.get("$ref"), str):
            yield _HERE, *self._documents.follow(schema["$ref"], root)


def _forks(labels: list[Label]) -> bool:
    """Whether two ways lead round a loop from one schema and one place."""
    here, anywhere = labels.count(_HERE), labels.count(_ANY)
    others = [label for label in labels if label not in (_HERE, _ANY)]
    return here > 1 or (here + anywhere > 0 and len(labels) > 1) or len(set(others)) < len(others)


def counted(document: Any) -> Any:
    """The same schema, with COUNT before every reference."""
    said = str(document.get("$schema", "")) if isinstance(document, dict) else ""
    return _counted(document, any(draft in said for draft in _BOTH_COUNT))


def _counted(document: Any, both_count: bool) -> Any:
    if isinstance(document, list):
        return [_counted(each, both_count) for each in document]
    if not isinstance(document, dict):
        return document
    references = {name: document[name] for name in _REFERENCES if isinstance(document.get(name), str)}
    made = {
        name: each if name in _LITERAL else _counted(each, both_count)
        for name, each in document.items()
        if name not in references and (both_count or not references or name in _BESIDE_REFERENCE)
    }
    if references:
        # Behind what is there: others may refer to it by its place.
        made["allOf"] = [*_list(made.get("allOf")), {"allOf": [{COUNT: True}, references]}]
    return made


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _map(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}
